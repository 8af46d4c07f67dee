package group

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/coord"
)

// storeCalls carries out the machine's requests, each in a goroutine of its own, so that none delays another, least of all
// a renewal. Each is answered by exactly one event, at its deadline at the latest.
type storeCalls struct {
	store backends.Store
	group string
	node  string
	post  func(coord.Event)
	tell  *probes

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	hints  *hints
	about  inspection

	mu       sync.Mutex
	sessions map[string]*openSession
	last     *openSession

	claiming sync.Map // for probes: by request, which transactions of a commit under way are claims

	// incarnation is the one that the machine has accepted, as its last request says.
	incarnation atomic.Pointer[string]
}

// openSession is a session and the life of what listens through it.
type openSession struct {
	backends.Session
	ctx context.Context
	end context.CancelFunc
}

func newStoreCalls(ctx context.Context, cfg *Config, post func(coord.Event)) *storeCalls {
	c := &storeCalls{
		store: cfg.Store, group: cfg.Name, node: cfg.Node, post: post,
		hints:    &hints{waiting: map[string]bool{}, kick: make(chan struct{}, 1)},
		sessions: map[string]*openSession{},
	}
	c.ctx, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	c.incarnation.Store(new(string))
	return c
}

// do makes a call and posts its answer: what call returns, or late when the deadline passes first; what comes after that is dropped. what
// names the call for probes; "" when it is none of the store.
func (c *storeCalls) do(what string, timeout time.Duration, call func(context.Context) coord.Event, late coord.Event) {
	c.doUnder(c.ctx, what, timeout, call, late)
}

func (c *storeCalls) doUnder(ctx context.Context, what string, timeout time.Duration, call func(context.Context) coord.Event, late coord.Event) {
	c.wg.Add(1)
	go func() {
		defer c.wg.Done()
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		began := time.Now()
		var answered atomic.Bool
		timer := time.AfterFunc(timeout, func() {
			if answered.CompareAndSwap(false, true) {
				c.told(what, began, late, true)
				c.post(late)
			}
		})
		defer timer.Stop()
		if ev := call(ctx); answered.CompareAndSwap(false, true) {
			c.told(what, began, ev, false)
			c.post(ev)
		}
	}()
}

// session returns nil and an event's error for a session that is not open here.
func (c *storeCalls) session(id string) (*openSession, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.sessions[id]; s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("%w: session %q is not open here", backends.ErrSessionLost, id)
}

// latest is the session that claims are made under, and its ttl.
func (c *storeCalls) latest() (backends.Session, time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last.Session, c.last.TTL()
}

func (c *storeCalls) open(a coord.OpenSession) {
	ttl := time.Duration(a.TTL)
	timeout := ttl / 2
	call := func(ctx context.Context) coord.Event {
		s, err := c.store.Open(ctx, backends.SessionOptions{Group: c.group, Node: c.node, TTL: ttl})
		if err == nil && ctx.Err() != nil {
			c.discard(s)
			err = ctx.Err()
		}
		if err != nil {
			return coord.Opened{Req: a.Req, Code: codeOf(err, coord.Failed), Err: err}
		}
		o := &openSession{Session: s}
		o.ctx, o.end = context.WithCancel(c.ctx)
		c.mu.Lock()
		c.sessions[s.ID()] = o
		c.last = o
		c.mu.Unlock()
		stamp := stampOf(s.Opened())
		c.accept(stamp.Incarnation)
		c.inspect(timeout)
		return coord.Opened{Req: a.Req, Session: s.ID(), TTL: coord.Duration(s.TTL()), Stamp: stamp}
	}
	c.do(CallOpen, timeout, call, coord.Opened{Req: a.Req, Code: coord.Failed, Err: deadline("open session", timeout)})
}

// inspect asks the store about its set-up, beside everything else.
func (c *storeCalls) inspect(timeout time.Duration) {
	c.wg.Add(1)
	go func() {
		defer c.wg.Done()
		ctx, cancel := context.WithTimeout(c.ctx, timeout)
		defer cancel()
		c.about.ask(ctx, c.store)
	}()
}

// discard closes a session that was opened too late to be used.
func (c *storeCalls) discard(s backends.Session) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), closeTimeout)
	defer cancel()
	_ = s.Close(ctx) // it expires if this fails
}

func (c *storeCalls) closeSession(a coord.CloseSession) {
	c.mu.Lock()
	s := c.sessions[a.Session]
	delete(c.sessions, a.Session)
	c.mu.Unlock()
	call := func(ctx context.Context) coord.Event {
		if s != nil {
			s.end()
			_ = s.Close(ctx) // it expires if this fails
		}
		return coord.Closed{Req: a.Req}
	}
	// The end of the node does not end it: it is often the last thing that a node asks for, and frees what others wait for.
	c.doUnder(context.WithoutCancel(c.ctx), CallClose, closeTimeout, call, coord.Closed{Req: a.Req})
}

func (c *storeCalls) renew(a coord.Renew) {
	c.accept(a.Incarnation)
	timeout := time.Duration(a.Timeout)
	call := func(ctx context.Context) coord.Event {
		s, err := c.session(a.Session)
		var r backends.RenewReply
		if err == nil {
			r, err = s.Renew(ctx, backends.RenewRequest{Incarnation: a.Incarnation, Keys: a.Keys, Digests: a.Digests, Sweep: a.Sweep})
		}
		return coord.Renewed{
			Req: a.Req, Code: codeOf(err, coord.Unknown), Err: err,
			Stamp: stampOf(r.Stamp), Keys: keyStatesOf(r.Keys), Digests: digestsOf(r.Digests),
		}
	}
	c.do(CallRenew, timeout, call, coord.Renewed{Req: a.Req, Code: coord.Unknown, Err: deadline("renewal", timeout)})
}

func (c *storeCalls) supersede(a coord.Supersede) {
	timeout := time.Duration(a.Timeout)
	call := func(ctx context.Context) coord.Event {
		s, err := c.session(a.Session)
		var r backends.Superseded
		if err == nil {
			r, err = s.Supersede(ctx, a.Node)
		}
		return coord.Superseded{Req: a.Req, Code: codeOf(err, coord.Unknown), Older: r.Older, Err: err, Stamp: stampOf(r.Stamp)}
	}
	c.do(CallSupersede, timeout, call, coord.Superseded{Req: a.Req, Code: coord.Unknown, Err: deadline("take-over of the static name", timeout)})
}

func (c *storeCalls) read(a coord.Read) {
	timeout := time.Duration(a.Timeout)
	call := func(ctx context.Context) coord.Event {
		s, err := c.session(a.Session)
		var r backends.ReadReply
		if err == nil {
			r, err = s.Read(ctx, backends.ReadRequest{Prefixes: a.Prefixes, Keys: a.Keys})
		}
		return coord.ReadDone{
			Req: a.Req, Code: codeOf(err, coord.Failed), Err: err,
			Stamp: stampOf(r.Stamp), Entries: entriesOf(r.Entries), Digests: digestsOf(r.Digests),
		}
	}
	c.do(CallRead, timeout, call, coord.ReadDone{Req: a.Req, Code: coord.Failed, Err: deadline("read", timeout)})
}

func (c *storeCalls) commit(a coord.Commit) {
	c.accept(a.Incarnation)
	c.asked(a)
	timeout := time.Duration(a.Timeout)
	call := func(ctx context.Context) coord.Event {
		s, err := c.session(a.Session)
		var r backends.CommitReply
		if err == nil {
			r, err = s.Commit(ctx, backends.CommitRequest{Incarnation: a.Incarnation, Txns: txnsOf(a.Txns)})
		}
		return coord.Committed{
			Req: a.Req, Code: codeOf(err, coord.Unknown), Err: err,
			Stamp: stampOf(r.Stamp), Results: resultsOf(r.Results),
		}
	}
	c.do(CallCommit, timeout, call, coord.Committed{Req: a.Req, Code: coord.Unknown, Err: deadline("commit", timeout)})
}

// list asks for the discovered resources and puts them into the source's form.
func (c *storeCalls) list(a coord.List, cfg *Config) {
	call := func(ctx context.Context) coord.Event {
		names, err := discover(ctx, cfg.Resources.list)
		if err == nil {
			names, err = canonical(cfg.Source, names)
		}
		return coord.Listed{Req: a.Req, Names: names, Err: err}
	}
	c.do("", listTimeout, call, coord.Listed{Req: a.Req, Err: deadline("discovery of resources", listTimeout)})
}

// discover calls the user's code; a panic is an error.
func discover(ctx context.Context, list func(context.Context) ([]string, error)) (names []string, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &panicError{r, debug.Stack()}
		}
	}()
	return list(ctx)
}

func (c *storeCalls) accept(incarnation string) {
	if *c.incarnation.Load() != incarnation {
		c.incarnation.Store(&incarnation)
	}
}

// close ends all calls, but for the closing of sessions, and waits for them; not long for a driver that breaks its contract
// and hangs.
func (c *storeCalls) close() (clean bool) {
	c.cancel()
	done := make(chan struct{})
	go func() { c.wg.Wait(); close(done) }()
	return !sleep(done, 2*closeTimeout)
}

func deadline(what string, timeout time.Duration) error {
	return fmt.Errorf("%s: no answer within %v: %w", what, timeout, context.DeadlineExceeded)
}
