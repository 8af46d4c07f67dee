package zookeeper

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/storereq"
)

// session is a node's life: two ephemeral znodes of one session at ZooKeeper. It lives while the first is there, and may
// renew and bind while the second is.
type session struct {
	s        *Store
	l        *link
	dir      groupDir
	id, node string
	data     []byte // of the first znode
	lease    lease
	opened   backends.Stamp
	ctx      context.Context // ends with the session, as far as this process knows
	cancel   context.CancelFunc
	cache    cache
	beats    beats
	sweep    chan struct{} // held by who sweeps
	refusals atomic.Int64  // handshakes in a row that were broken off since the incarnation is another one

	mu       sync.Mutex
	accepted string      // the incarnation in which it was last heard
	ends     time.Time   // it is closed then unless it is renewed
	watchdog *time.Timer // nil before it was opened, and after its end
}

// who is in the data of a session's first znode.
type who struct {
	Node    string `json:"node"`
	Timeout int64  `json:"timeout"` // ms
}

// nodeMark ends the names of the sessions of one node, so that they are found without reading all.
func nodeMark(node string) string {
	sum := sha256.Sum256([]byte(node))
	return "." + hex.EncodeToString(sum[:6])
}

// Open opens a session, over a connection of its own. The TTL is less by a fifth than the timeout that the server grants (2 to 20 ticks, unless
// it is configured otherwise): see Session.TTL in doc.go.
func (s *Store) Open(ctx context.Context, o backends.SessionOptions) (backends.Session, error) {
	if err := storereq.Open(o, 0); err != nil {
		return nil, err
	}
	if err := errors.Join(s.open(), ctx.Err()); err != nil {
		return nil, err
	}
	l, err := s.newLink(o.TTL)
	if err != nil {
		return nil, s.wrap(err)
	}
	h, err := s.start(ctx, l, o)
	if err != nil {
		s.background(l.finish)
		return nil, s.wrap(err)
	}
	return h, nil
}

func (s *Store) start(ctx context.Context, l *link, o backends.SessionOptions) (*session, error) {
	h := &session{s: s, l: l, dir: s.group(o.Group), id: rand.Text() + nodeMark(o.Node), node: o.Node, sweep: make(chan struct{}, 1)}
	h.cache.filling = make(chan struct{}, 1)
	v := via{l, l.ready}
	for {
		r, err := s.look(ctx, v)
		if err != nil {
			return nil, err
		}
		h.lease.timeout = l.timeout()
		if h.data, err = json.Marshal(who{o.Node, h.lease.timeout.Milliseconds()}); err != nil {
			return nil, err
		}
		stat, failed, err := v.multi(ctx, []op{
			{request: check(s.incarnationPath(r.id), -1)},
			{request: &zk.CreateRequest{Path: h.dir.alive(h.id), Data: h.data, Acl: s.cfg.acl, Flags: zk.FlagEphemeral}},
			{request: &zk.CreateRequest{Path: h.dir.allowed(h.id), Acl: s.cfg.acl, Flags: zk.FlagEphemeral}},
			{request: &zk.SetDataRequest{Path: s.cfg.root + "/clock", Version: -1}},
		})
		switch {
		case err == nil:
			h.accepted, h.opened = r.id, backends.Stamp{Time: s.clock.set(stat.Mtime), Incarnation: r.id, Since: r.since}
			return h, h.live()
		case failed > 0 && errors.Is(err, zk.ErrNoNode):
			for _, dir := range []string{"/s", "/u", "/e", "/h"} {
				if err := v.make(ctx, string(h.dir)+dir); err != nil {
					return nil, err
				}
			}
		case failed == 0 && errors.Is(err, zk.ErrNoNode):
		case ctx.Err() == nil && unanswered(err):
			h.id = rand.Text() + nodeMark(o.Node) // what was asked for may have happened
		default:
			return nil, err
		}
	}
}

// live begins the session's life in this process.
func (h *session) live() error {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	if h.s.closed {
		return backends.ErrClosed
	}
	h.s.sessions[h] = true
	h.ctx, h.cancel = context.WithCancel(h.s.ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ends = time.Now().Add(h.patience())
	h.watchdog = time.AfterFunc(h.patience(), h.expire)
	return nil
}

// patience is how long a session lives after an answer to a renewal: a little longer than the TTL, so that nobody sees it end too soon.
func (h *session) patience() time.Duration { return h.TTL() + h.lease.early()/4 }

func (h *session) ID() string             { return h.id }
func (h *session) TTL() time.Duration     { return h.lease.ttl() }
func (h *session) Opened() backends.Stamp { return h.opened }

func (h *session) over() bool { return h.ctx.Err() != nil }

// expire ends the session when it was not renewed. The library's pings would keep it alive for ever.
func (h *session) expire() {
	h.mu.Lock()
	if h.watchdog == nil {
		h.mu.Unlock()
		return
	}
	if left := time.Until(h.ends); left > 0 {
		h.watchdog.Reset(left)
		h.mu.Unlock()
		return
	}
	h.watchdog = nil // with the lock held: no renewal is answered well after this
	h.mu.Unlock()
	h.forget()
	h.s.background(func() {
		ctx, cancel := context.WithTimeout(h.s.ctx, dialPatience)
		defer cancel()
		_ = h.remove(ctx) // else it ends by its timeout
		h.l.finish()
	})
}

// detach makes this process take the session for ended; false when it has before.
func (h *session) detach() bool {
	h.mu.Lock()
	live := h.watchdog != nil
	if live {
		h.watchdog.Stop()
		h.watchdog = nil
	}
	h.mu.Unlock()
	if live {
		h.forget()
	}
	return live
}

func (h *session) forget() {
	h.cancel()
	h.s.mu.Lock()
	delete(h.s.sessions, h)
	h.s.mu.Unlock()
}

// lost is for a session that ZooKeeper says, or is proved, to have ended.
func (h *session) lost() {
	if h.detach() {
		h.s.background(h.l.abandon)
	}
}

// remove ends the session at the store.
func (h *session) remove(ctx context.Context) error {
	v := via{h.l, h.l.ready}
	for _, p := range []string{h.dir.alive(h.id), h.dir.allowed(h.id)} { // the second means nothing without the first
		_, err := ask(ctx, v, func(c *zk.Conn) (struct{}, error) { return struct{}{}, c.Delete(p, -1) })
		if err != nil && !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, errOver) {
			return err
		}
	}
	return nil
}

// Close ends the session at once. When the servers cannot be reached it gives an error, and the session ends by its timeout.
func (h *session) Close(ctx context.Context) error {
	if err := h.s.open(); err != nil {
		return err
	}
	if !h.detach() {
		return nil
	}
	err := h.remove(ctx)
	h.s.background(h.l.finish)
	return h.s.wrap(err)
}

// ready waits until the session can be used. Where a server refused it, which may be behind, or have lost data, it looks.
func (h *session) ready(ctx context.Context) error {
	for {
		if h.over() {
			return errOver
		}
		err := h.l.ready(ctx)
		if err == nil {
			h.refusals.Store(0)
		}
		if errors.Is(err, errOver) || errors.Is(err, errBehind) && h.refused(ctx) {
			h.lost()
			return errOver
		}
		if !errors.Is(err, errBehind) {
			return err
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%w: %w", errBehind, err)
		}
	}
}

// refused tells whether the session is lost, after a server broke a handshake off: one that begins to serve does that too. When the
// incarnation is another one, and as many in a row did as there are and one more, none will take it back: it has seen what they lost.
func (h *session) refused(ctx context.Context) bool {
	v, err := h.s.controlled(ctx)
	if err != nil {
		return false
	}
	r, err := h.s.look(ctx, v)
	if err != nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return r.id != h.accepted && int(h.refusals.Add(1)) > len(h.s.cfg.servers)
}

// via is the connection of a live session.
func (h *session) via() via { return via{h.l, h.ready} }

// reader is the connection to read through: the session's own, and after its end the store's.
func (h *session) reader(ctx context.Context) (via, error) {
	if !h.over() {
		return h.via(), nil
	}
	return h.s.controlled(ctx)
}

// ended is the stamp of a refusal after the session's end, with what the store says now.
func (h *session) ended(ctx context.Context) backends.Stamp {
	v, err := h.s.controlled(ctx)
	if err == nil {
		_, _ = h.s.look(ctx, v)
	}
	return h.s.stamp()
}
