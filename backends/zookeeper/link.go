package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
)

var (
	// errOver is the error of calls through a link whose session has ended, or that was given up.
	errOver = errors.New("the session at ZooKeeper has ended")
	// errBehind says that a server broke the handshake off: it has seen less than this client.
	errBehind = errors.New("the server has broken off the handshake: it lags behind, or lost data")
)

// link is one session at ZooKeeper and the connection that carries it. The client library connects again by itself, to
// another server too, until the session has ended: it would then begin another session, and send what was meant for the first one
// under it. The link gives it no connection for that.
type link struct {
	s      *Store
	seen   atomic.Int64 // the generation of the store's data that what it sees is of
	conn   *zk.Conn
	ctx    context.Context // ends when the link is given up
	cancel context.CancelFunc
	quit   chan struct{} // closed when the library's goroutines have ended

	authing chan struct{} // held by who authenticates

	mu      sync.Mutex
	calls   sync.WaitGroup
	changed chan struct{} // closed, and replaced, when something below changes
	wire    *wire
	up      bool
	gone    bool // ended, or given up
	behind  bool // a handshake was broken off since it was last asked for
	authed  bool
	last    error // why the last attempt to connect failed
	granted time.Duration
	session int64
	direct  time.Time // when the last handshake that succeeded was begun
}

// newLink begins to connect, and returns at once.
func (s *Store) newLink(timeout time.Duration) (*link, error) {
	l := &link{s: s, changed: make(chan struct{}), quit: make(chan struct{}), authing: make(chan struct{}, 1)}
	l.ctx, l.cancel = context.WithCancel(s.ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		l.cancel()
		return nil, errClosed
	}
	l.seen.Store(s.generation)
	timeout = min(max(timeout, time.Millisecond), 24*time.Hour)
	conn, events, err := zk.Connect(s.cfg.servers, timeout, zk.WithDialer(l.dial), zk.WithHostProvider(&hosts{}),
		zk.WithEventCallback(l.event), zk.WithLogger(silence{}), zk.WithLogInfo(false))
	if err != nil {
		l.cancel()
		return nil, err
	}
	l.conn = conn
	s.links[l] = true
	go func() {
		for range events { // what they say came through the callback
		}
		close(l.quit)
	}()
	return l, nil
}

type silence struct{}

func (silence) Printf(string, ...any) {}

// hosts gives the servers in turn, and lets the library pause after it tried all of them in vain. Names are resolved
// at each attempt.
type hosts struct {
	mu            sync.Mutex
	servers       []string
	next, attempt int
}

func (h *hosts) Init(servers []string) error { h.servers = servers; return nil }
func (h *hosts) Len() int                    { return len(h.servers) }

func (h *hosts) Next() (string, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	server := h.servers[h.next]
	h.next = (h.next + 1) % len(h.servers)
	pause := h.attempt >= len(h.servers)
	if pause {
		h.attempt = 0
	}
	h.attempt++
	return server, pause
}

func (h *hosts) Connected() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.attempt = 0
}

// dialPatience bounds one attempt, and the handshake after it.
const dialPatience = 2 * time.Second

func (l *link) dial(network, address string, _ time.Duration) (net.Conn, error) {
	l.mu.Lock()
	gone := l.gone
	l.mu.Unlock()
	if gone {
		return nil, errOver
	}
	ctx, cancel := context.WithTimeout(l.ctx, dialPatience)
	defer cancel()
	conn, err := l.s.cfg.open(ctx, network, address)
	if err != nil {
		l.change(func() { l.last = err })
		return nil, err
	}
	w := newWire(l, conn, address, dialPatience)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone {
		_ = conn.Close()
		return nil, errOver
	}
	l.wire = w
	return w, nil
}

// change changes the state and wakes who waits for it.
func (l *link) change(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
	close(l.changed)
	l.changed = make(chan struct{})
}

// event is called by the library, which waits for it.
func (l *link) event(e zk.Event) {
	if e.Type != zk.EventSession {
		return
	}
	switch e.State {
	case zk.StateHasSession:
		l.change(func() { l.up, l.behind, l.last = !l.gone, false, nil })
	case zk.StateDisconnected:
		l.change(func() { l.up = false })
	case zk.StateExpired:
		l.change(func() { l.up, l.gone = false, true })
		l.s.background(l.abandon)
	}
}

func (l *link) shook(w *wire, granted time.Duration, session int64) {
	l.change(func() {
		if session == 0 || l.session != 0 && l.session != session {
			l.gone = true // before the library asks for another connection
			return
		}
		l.session, l.granted, l.direct = session, granted, w.opened
	})
}

func (l *link) brokenOff(w *wire, err error) {
	l.change(func() {
		l.last = fmt.Errorf("%s did not answer: %w", w.server, err)
		if errors.Is(err, io.EOF) {
			l.behind = l.session != 0
		}
	})
}

// ready waits until the link is connected. errOver: never again. errBehind: a server broke the handshake off, which is told once.
func (l *link) ready(ctx context.Context) error {
	for {
		l.mu.Lock()
		up, gone, behind, authed, changed, last := l.up, l.gone, l.behind, l.authed || l.s.cfg.digest == "", l.changed, l.last
		l.behind = false
		l.mu.Unlock()
		switch {
		case gone:
			return errOver
		case up && !authed:
			if err := l.auth(ctx); err != nil && !unanswered(err) {
				return err
			}
			continue
		case up:
			return nil
		case behind:
			return errBehind
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if last != nil {
				return fmt.Errorf("not connected: %w; the last attempt: %w", ctx.Err(), last)
			}
			return fmt.Errorf("not connected: %w", ctx.Err())
		}
	}
}

// auth authenticates, once: the library does it again by itself over each later connection.
func (l *link) auth(ctx context.Context) error {
	select {
	case l.authing <- struct{}{}:
		defer func() { <-l.authing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	l.mu.Lock()
	done := l.authed
	l.mu.Unlock()
	if done {
		return nil
	}
	_, err := call(ctx, l, func(c *zk.Conn) (struct{}, error) {
		return struct{}{}, c.AddAuth("digest", []byte(l.s.cfg.digest))
	})
	if err == nil {
		l.mu.Lock()
		l.authed = true
		l.mu.Unlock()
	}
	return err
}

// call makes a call of the library, which knows no contexts, and leaves it alone when ctx ends first.
func call[T any](ctx context.Context, l *link, f func(*zk.Conn) (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	l.mu.Lock()
	if l.gone {
		l.mu.Unlock()
		return *new(T), errOver
	}
	l.calls.Add(1)
	l.mu.Unlock()
	done := make(chan result, 1)
	go func() {
		defer l.calls.Done()
		v, err := f(l.conn)
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		if errors.Is(r.err, zk.ErrSessionExpired) {
			l.change(func() { l.gone = true })
			l.s.background(l.abandon)
			return r.value, errOver
		}
		return r.value, r.err
	case <-ctx.Done():
		return *new(T), ctx.Err()
	}
}

// unanswered tells whether an error means that no answer came: what was asked for may have happened or not.
func unanswered(err error) bool {
	var n net.Error
	return errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, zk.ErrNoServer) || errors.Is(err, zk.ErrClosing) || errors.Is(err, zk.ErrSessionMoved) ||
		errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &n)
}

// current is the connection in use, to be given to kick.
func (l *link) current() *wire {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wire
}

// kick closes a connection over which no answer came, so that the next try goes over another, to another server if there is one.
func (l *link) kick(w *wire) {
	if w != nil && l.current() == w {
		_ = w.Close()
	}
}

// abandon gives the link up without a word to the server, where the session ends by its timeout. It waits for the library.
func (l *link) abandon() {
	l.mu.Lock()
	l.gone, l.up = true, false
	w := l.wire
	l.mu.Unlock()
	l.change(func() {})
	l.cancel()
	if w != nil {
		_ = w.Close()
	}
	l.end()
}

// finish ends the session at the server, if it can be reached.
func (l *link) finish() {
	l.conn.Close()
	l.abandon()
}

func (l *link) end() {
	l.conn.Close()
	<-l.quit
	l.calls.Wait()
	l.s.mu.Lock()
	delete(l.s.links, l)
	l.s.mu.Unlock()
}

// timeout is what the server granted.
func (l *link) timeout() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.granted
}

// heardAt is when the leader heard of the session directly: as it was made, or moved.
func (l *link) heardAt() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.direct
}
