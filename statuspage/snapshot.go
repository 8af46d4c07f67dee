package statuspage

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// snapshot is a group as it was last seen, in the form in which it is sent.
type snapshot struct {
	version          int64 // grows with each change that is to be seen; 0: nothing was seen
	head             []byte
	nodes, resources table
	past             []byte
	pastAt           int64     // the version in which it changed
	readAt           time.Time // of the last read that succeeded
	err              string    // why the last one did not

	whole   *body // all of it, made when it is first asked for
	dirtied bool  // since next was called
}

// body is an answer to be sent.
type body struct{ plain, zipped []byte }

// next makes a change, and reports whether there is a new version.
func (s *snapshot) next(change func(*snapshot)) bool {
	before := s.err
	s.dirtied = false
	change(s)
	if !s.dirtied && s.err == before && s.version > 0 {
		return false
	}
	s.version++
	s.whole = nil
	return true
}

// take replaces the rows.
func (s *snapshot) take(h head, list []past, nodes, resources []named) error {
	raw, err := json.Marshal(h)
	if err != nil {
		return err
	}
	history, err := json.Marshal(list)
	if err != nil {
		return err
	}
	if !bytes.Equal(history, s.past) {
		s.past, s.pastAt, s.dirtied = history, s.version+1, true
	}
	s.dirtied = s.dirtied || !bytes.Equal(raw, s.head)
	s.head = raw
	for _, t := range []struct {
		*table
		now []named
	}{{&s.nodes, nodes}, {&s.resources, resources}} {
		changed, err := t.update(s.version+1, t.now)
		if err != nil {
			return err
		}
		s.dirtied = s.dirtied || changed
	}
	return nil
}

// message is what the page is sent.
type message struct {
	Version string `json:"version"`
	// Since is the version that this is added to; without, it replaces all.
	Since string          `json:"since,omitempty"`
	Error string          `json:"error,omitempty"`
	Head  json.RawMessage `json:"head,omitempty"`
	// History are the last changes, when there is a new one.
	History json.RawMessage `json:"history,omitempty"`
	// Those that changed, and the names of those that are no more.
	Nodes         []json.RawMessage `json:"nodes"`
	NodesGone     []string          `json:"nodesGone,omitempty"`
	Resources     []json.RawMessage `json:"resources"`
	ResourcesGone []string          `json:"resourcesGone,omitempty"`
}

// answer is what to send to one who has a version; without a body when nothing changed.
type answer struct {
	*body
	readAt time.Time
}

// answer must be called under the lock.
func (w *watch) answer(have string) *answer {
	s := &w.snap
	a := &answer{readAt: s.readAt}
	if s.version == 0 || have == w.name() {
		return a
	}
	since := w.versionOf(have)
	if since < max(s.nodes.floor, s.resources.floor) {
		since = 0
	}
	if since == 0 && s.whole != nil {
		a.body = s.whole
		return a
	}
	m := message{Version: w.name(), Error: s.err, Head: s.head}
	if since > 0 {
		m.Since = have
	}
	if since == 0 || s.pastAt > since {
		m.History = s.past
	}
	m.Nodes, m.NodesGone = s.nodes.since(since)
	m.Resources, m.ResourcesGone = s.resources.since(since)
	a.body = pack(m)
	if since == 0 {
		s.whole = a.body
	}
	return a
}

// versionOf is a version of this watch, 0 when it is another's.
func (w *watch) versionOf(name string) int64 {
	id, n, _ := strings.Cut(name, "-")
	v, err := strconv.ParseInt(n, 10, 64)
	if err != nil || id != w.id || v < 0 || v > w.snap.version {
		return 0
	}
	return v
}

func pack(m message) *body {
	plain, err := json.Marshal(m)
	if err != nil { // it consists of strings and of what was marshalled before
		plain = []byte("{}")
	}
	return &body{plain: plain, zipped: zipped(plain)}
}
