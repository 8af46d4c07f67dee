package pickup

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/rebalancer-go/rebalancer"
)

func pack(t *testing.T, s string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, s); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// source is a body with an end of its own.
type source struct {
	io.Reader
	end    error
	closed int
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err == io.EOF {
		err = s.end
	}
	return n, err
}
func (s *source) Close() error { s.closed++; return nil }

func stream(s *source) func(context.Context) (io.ReadCloser, error) {
	return func(context.Context) (io.ReadCloser, error) { return s, nil }
}

// unpack gives a message to Gunzip and reads what the handler is given.
func unpack(t *testing.T, m *rebalancer.Message) (body string, err error) {
	t.Helper()
	failed := Gunzip(func(ctx context.Context, m *rebalancer.Message) error {
		rc, err := m.Open(ctx)
		if err != nil {
			return err
		}
		b, err := io.ReadAll(rc)
		body = string(b)
		return errors.Join(err, rc.Close())
	})(t.Context(), m)
	return body, failed
}

func TestGunzip(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("all work and no play\n", 10_000)
	whole := pack(t, long)
	broken := errors.New("connection lost")
	flipped := bytes.Clone(whole)
	flipped[len(flipped)-6] ^= 1 // in the checksum
	for what, c := range map[string]struct {
		key  string
		data []byte
		end  error
		want string
		err  error // nil: none
	}{
		"packed":              {key: "a.csv.gz", data: whole, want: long},
		"capitals":            {key: "A.CSV.GZ", data: whole, want: long},
		"two parts":           {key: "a.gz", data: append(pack(t, "one "), pack(t, "two")...), want: "one two"},
		"not packed":          {key: "a.csv", data: []byte("plain"), want: "plain"},
		"only the suffix":     {key: ".gz", data: []byte("plain"), want: "plain"},
		"nothing":             {key: "a.gz", err: io.ErrUnexpectedEOF},
		"cut in the head":     {key: "a.gz", data: whole[:5], err: io.ErrUnexpectedEOF},
		"cut in the middle":   {key: "a.gz", data: whole[:len(whole)/2], err: io.ErrUnexpectedEOF},
		"cut at the end":      {key: "a.gz", data: whole[:len(whole)-1], err: io.ErrUnexpectedEOF},
		"corrupted":           {key: "a.gz", data: flipped, err: gzip.ErrChecksum},
		"no gzip":             {key: "a.gz", data: []byte("plain text, and enough of it"), err: gzip.ErrHeader},
		"followed by rubbish": {key: "a.gz", data: append(bytes.Clone(whole), "and more of it"...), err: gzip.ErrHeader},
		"changed at its end":  {key: "a.gz", data: whole, end: rebalancer.ErrChanged, err: rebalancer.ErrChanged},
		"broken off":          {key: "a.gz", data: whole[:100], end: broken, err: broken},
	} {
		s := &source{Reader: bytes.NewReader(c.data), end: c.end}
		if s.end == nil {
			s.end = io.EOF
		}
		got, err := unpack(t, &rebalancer.Message{Key: c.key, Size: int64(len(c.data)), Stream: stream(s)})
		if c.err == nil && (err != nil || got != c.want) || c.err != nil && !errors.Is(err, c.err) {
			t.Errorf("%s: %d bytes, %v; want %d, %v", what, len(got), err, len(c.want), c.err)
		}
		if s.closed != 1 {
			t.Errorf("%s: what was packed was closed %d times", what, s.closed)
		}
	}
}

func TestGunzipLeavesTheMessageAlone(t *testing.T) {
	t.Parallel()
	m := &rebalancer.Message{Key: "a.gz", Body: pack(t, "body"), Size: 7, Members: []rebalancer.Member{
		{Key: "b.gz", Size: 3, Stream: stream(&source{Reader: bytes.NewReader(pack(t, "member")), end: io.EOF})},
		{Key: "c", Size: 4, Stream: stream(&source{Reader: strings.NewReader("none"), end: io.EOF})},
	}}
	err := Gunzip(func(ctx context.Context, got *rebalancer.Message) error {
		if got == m || got.Size != -1 || got.Body != nil || got.Members[0].Size != -1 || got.Members[1].Size != 4 {
			t.Errorf("the handler was given %+v", got)
		}
		all := ""
		for _, open := range []func(context.Context) (io.ReadCloser, error){got.Open, got.Members[0].Open, got.Members[1].Open} {
			rc, err := open(ctx)
			if err != nil {
				return err
			}
			b, err := io.ReadAll(rc)
			if err != nil {
				return err
			}
			all += string(b) + ";"
		}
		if all != "body;member;none;" {
			t.Errorf("read %q", all)
		}
		return nil
	})(t.Context(), m)
	if err != nil || m.Size != 7 || m.Body == nil || m.Members[0].Size != 3 {
		t.Errorf("the message is %+v; %v", m, err)
	}
	failed := errors.New("no connection")
	m = &rebalancer.Message{Key: "a.gz", Stream: func(context.Context) (io.ReadCloser, error) { return nil, failed }}
	if _, err := unpack(t, m); !errors.Is(err, failed) {
		t.Errorf("open failed, and the handler was told %v", err)
	}
}

func TestActions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a    Action
		kind Kind
		text string
	}{
		{Action{}, None, "none"}, {Delete(), Deletes, "Delete()"}, {MoveTo("x"), Moves, `MoveTo("x")`}, {Keep(), Keeps, "Keep()"},
		{Tag("k", "v"), Tags, `Tag("k", "v")`},
	} {
		if c.a.Kind() != c.kind || c.a.String() != c.text {
			t.Errorf("%v has Kind %d, want %s, %d", c.a, c.a.Kind(), c.text, c.kind)
		}
	}
	if key, value := Tag("k", "v").Label(); key != "k" || value != "v" || MoveTo("x").Folder() != "x" {
		t.Error("an action has forgotten what it was given")
	}
}
