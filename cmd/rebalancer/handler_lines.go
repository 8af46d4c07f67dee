package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/rebalancer-go/rebalancer"
)

// maxLineBody is the longest body that stands in a line.
const maxLineBody = 64 << 10

// lines writes each message as a line of JSON.
type lines struct {
	w           io.Writer
	group, node string
	path        func(*rebalancer.Message) string
	whole       bool                    // the line is all that is left of a message: what does not fit into it fails
	stop        context.CancelCauseFunc // called when w is closed

	mu sync.Mutex // one line at a time
}

// line is a message on standard output. A text that is not UTF-8 is in the field with _base64 instead.
type line struct {
	Group      string            `json:"group"`
	Node       string            `json:"node"`
	Resource   string            `json:"resource"`
	ID         *string           `json:"id,omitempty"`
	ID64       []byte            `json:"id_base64,omitempty"`
	Key        *string           `json:"key,omitempty"`
	Key64      []byte            `json:"key_base64,omitempty"`
	Attempt    int               `json:"attempt"`
	Fence      int64             `json:"fence"`
	Published  *time.Time        `json:"published,omitempty"`
	Size       *int64            `json:"size,omitempty"`
	Path       *string           `json:"path,omitempty"`
	Path64     []byte            `json:"path_base64,omitempty"`
	Headers    map[string]string `json:"headers,omitempty"`
	Body       *string           `json:"body,omitempty"`
	Body64     []byte            `json:"body_base64,omitempty"`
	BodyTooBig bool              `json:"body_too_big,omitempty"`
}

// handle is a rebalancer.Handler: a message is worked when its line is written.
func (l *lines) handle(ctx context.Context, m *rebalancer.Message) error {
	v := line{
		Group: l.group, Node: l.node, Resource: m.Resource, Attempt: m.Attempt, Fence: m.Fence, Headers: m.Headers,
	}
	v.ID, v.ID64 = text([]byte(m.ID))
	if m.Key != "" {
		v.Key, v.Key64 = text([]byte(m.Key))
	}
	if !m.Published.IsZero() {
		t := m.Published.UTC()
		v.Published = &t
	}
	if m.Size >= 0 {
		v.Size = &m.Size
	}
	if l.path != nil {
		if p := l.path(m); p != "" {
			v.Path, v.Path64 = text([]byte(p))
		}
	}
	body, err := small(ctx, m)
	if err != nil {
		return err
	}
	if body == nil && l.whole {
		return rebalancer.Permanent(fmt.Errorf("payload of more than %d bytes does not fit into a line, and it would be deleted: "+
			"use --on-success move:DIR, or a command", maxLineBody))
	}
	if v.BodyTooBig = body == nil; !v.BodyTooBig {
		v.Body, v.Body64 = text(body)
	}
	return l.write(append(jsonOf(v), '\n'))
}

func (l *lines) write(b []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := l.w.Write(b); err != nil {
		broken := &outputError{err}
		l.stop(broken)
		return broken
	}
	return nil
}

// small reads a body that may stand in a line; nil when it is too long.
func small(ctx context.Context, m *rebalancer.Message) ([]byte, error) {
	if m.Size > maxLineBody {
		return nil, nil
	}
	r, err := m.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, maxLineBody+1))
	switch {
	case err != nil:
		return nil, err
	case len(b) > maxLineBody:
		return nil, nil
	case b == nil:
		b = []byte{}
	}
	return b, nil
}

// text is b as a string, or as bytes when it is not UTF-8.
func text(b []byte) (*string, []byte) {
	if !utf8.Valid(b) {
		return nil, b
	}
	s := string(b)
	return &s, nil
}

// jsonOf is v in one line of JSON, "<" and "&" left as they are.
func jsonOf(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil { // only our own types come here, and each of them can be encoded
		return []byte("null")
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
