package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"sync"
)

// ears are the listeners of this process by token, and what was heard for them.
type ears struct {
	mu       sync.Mutex
	at       map[string]map[*listener]bool // by token
	channels map[string]int                // with the number of their listeners
	live     map[string]bool               // channels on which the connection listens
	off      bool                          // too many processes listen
	open     chan struct{}                 // closed while the connection is to wait for notifications
	waiting  map[string]bool               // tokens that were heard
	signal   chan struct{}
}

type listener struct {
	ctx   context.Context
	ended <-chan struct{}
	hint  func()
}

func newEars() *ears {
	return &ears{at: map[string]map[*listener]bool{}, channels: map[string]int{}, live: map[string]bool{}, open: make(chan struct{}),
		waiting: map[string]bool{}, signal: make(chan struct{}, 1)}
}

// channel is that of a group.
func channel(schema, group string) string {
	sum := sha256.Sum256([]byte(schema + "\x00" + group))
	return "rebalancer " + base64.RawURLEncoding.EncodeToString(sum[:12])
}

// token stands for an address of a group, in 11 characters.
func token(group, address string) string {
	sum := sha256.Sum256([]byte(group + "\x00" + address))
	return base64.RawURLEncoding.EncodeToString(sum[:8])
}

func (e *ears) add(t, channel string, l *listener) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.at[t] == nil {
		e.at[t] = map[*listener]bool{}
	}
	e.at[t][l] = true
	e.channels[channel]++
	e.turn()
}

func (e *ears) drop(t, channel string, l *listener) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.at[t][l] {
		return
	}
	delete(e.at[t], l)
	if len(e.at[t]) == 0 {
		delete(e.at, t)
	}
	if e.channels[channel]--; e.channels[channel] == 0 {
		delete(e.channels, channel)
	}
	e.turn()
}

// turn opens or shuts what the connection waits on.
func (e *ears) turn() {
	wanted := len(e.channels) > 0 && !e.off
	select {
	case <-e.open:
		if !wanted {
			e.open = make(chan struct{})
		}
	default:
		if wanted {
			close(e.open)
		}
	}
}

// opened is closed while the connection is to wait for notifications.
func (e *ears) opened() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.open
}

// missing are the channels that have listeners, and on which the connection does not listen yet.
func (e *ears) missing() (names []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for name := range e.channels {
		if !e.live[name] {
			names = append(names, name)
		}
	}
	return names
}

// listens notes that the connection listens; none: on nothing any more.
func (e *ears) listens(names ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(names) == 0 {
		clear(e.live)
	}
	for _, name := range names {
		e.live[name] = true
	}
}

func (e *ears) isLive(channel string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.live[channel]
}

func (e *ears) anyLive() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.live) > 0
}

func (e *ears) isOff() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.off
}

func (e *ears) none() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.channels) == 0
}

// switchOff stops or resumes listening; it tells whether that is news.
func (e *ears) switchOff(off bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	news := e.off != off
	e.off = off
	e.turn()
	return news
}

// hear notes tokens for deliver. It does not block.
func (e *ears) hear(tokens ...string) {
	e.mu.Lock()
	for _, t := range tokens {
		if len(e.at[t]) > 0 {
			e.waiting[t] = true
		}
	}
	e.mu.Unlock()
	select {
	case e.signal <- struct{}{}:
	default:
	}
}

// all hints to everybody: what was sent while nobody listened is lost.
func (e *ears) all() {
	e.mu.Lock()
	tokens := make([]string, 0, len(e.at))
	for t := range e.at {
		tokens = append(tokens, t)
	}
	e.mu.Unlock()
	e.hear(tokens...)
}

// deliver calls the listeners of what was heard, without a lock, until the store is closed.
func (e *ears) deliver(ctx context.Context) {
	for {
		select {
		case <-e.signal:
		case <-ctx.Done():
			return
		}
		for _, l := range e.take() {
			select {
			case <-l.ended: // it goes with its context
				continue
			default:
			}
			if l.ctx.Err() == nil && ctx.Err() == nil {
				l.hint()
			}
		}
	}
}

func (e *ears) take() (due []*listener) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for t := range e.waiting {
		for l := range e.at[t] {
			due = append(due, l)
		}
	}
	clear(e.waiting)
	return due
}
