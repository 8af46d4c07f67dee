package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/storereq"
)

// packet is the greatest size of a transaction: jute.maxbuffer of a server that was not told otherwise, less what frames it.
const packet = 1<<20 - 1 - 16<<10

// Commit makes each transaction one multi, many of them under way at once: two round trips, one to read what its keys hold.
func (h *session) Commit(ctx context.Context, r backends.CommitRequest) (backends.CommitReply, error) {
	if err := storereq.Commit(r); err != nil {
		return backends.CommitReply{}, err
	}
	for i := range r.Txns {
		if n := h.size(&r.Txns[i]); n > packet {
			return backends.CommitReply{}, fmt.Errorf("%w: transaction %d of %d has %d bytes with its paths; ZooKeeper takes %d", backends.ErrInvalid,
				i+1, len(r.Txns), n, packet)
		}
	}
	if err := errors.Join(h.s.open(), ctx.Err()); err != nil {
		return backends.CommitReply{}, err
	}
	c := &commit{h: h, incarnation: r.Incarnation, now: h.s.clock.now(), results: make([]backends.Result, len(r.Txns))}
	if !h.over() {
		_ = each(len(r.Txns), func(i int) error { c.results[i] = c.carryOut(ctx, &r.Txns[i]); return nil })
	} else {
		for i := range c.results {
			c.results[i].Err = backends.ErrSessionLost
		}
	}
	if h.s.open() != nil && !c.sent {
		return backends.CommitReply{}, backends.ErrClosed
	}
	if err := c.unsent(); err != nil {
		return backends.CommitReply{}, h.s.wrap(err)
	}
	return backends.CommitReply{Stamp: c.stamp(ctx), Results: c.results}, nil
}

// commit is one call of Commit under way.
type commit struct {
	h           *session
	incarnation string
	now         time.Time // by which the grace is judged
	results     []backends.Result

	mu     sync.Mutex
	sent   bool  // something may have been applied
	young  bool  // something was refused for its grace
	latest int64 // ms, of the server's clock
}

// errUnsent marks a transaction that was not sent.
var errUnsent = errors.New("not sent")

// unsent is an error when no transaction was sent, and not all were refused.
func (c *commit) unsent() error {
	for i := range c.results {
		r := &c.results[i]
		if !errors.Is(r.Err, errUnsent) {
			continue
		}
		if !c.sent {
			return r.Err
		}
		r.Err = fmt.Errorf("%w: %w", backends.ErrUnknown, r.Err) // beside others that were
	}
	return nil
}

func (c *commit) stamp(ctx context.Context) backends.Stamp {
	if slices.ContainsFunc(c.results, func(r backends.Result) bool { return errors.Is(r.Err, backends.ErrSessionLost) }) {
		return c.h.ended(ctx)
	}
	switch {
	case c.young:
		return c.h.s.stampAt(c.now)
	case c.latest > 0:
		return c.h.s.stampAt(time.UnixMilli(c.latest))
	}
	return c.h.s.stamp()
}

// size is about how many bytes a transaction has as a packet.
func (h *session) size(t *backends.Txn) int {
	n := 1 << 10
	for _, c := range t.Checks {
		n += 3*len(c.Key) + len(h.dir) + 200
	}
	for _, p := range t.Puts {
		n += 3*len(p.Key) + 2*len(h.dir) + len(p.Value) + 300
	}
	for _, k := range t.Deletes {
		n += 3*len(k) + 2*len(h.dir) + 200
	}
	for _, a := range t.Wake {
		n += 3*len(a) + len(h.dir) + 100
	}
	return n
}

// attempt is a transaction as a multi, made of what its keys held when they were read.
type attempt struct {
	st      *states
	rec     *record
	current map[string]int64 // the versions of the checked keys
	ops     []op
	guards  int  // how many of ops are guards
	old     bool // the node has accepted another incarnation than is known here
	young   bool // the data is too young for the grace that is asked for
	holds   bool // the checks hold
}

// refused attempts are sent as their guards alone, which decide what the node is told, and whether what was read was new enough.
func (a *attempt) refused() bool { return a.old || a.young || !a.holds }

// carryOut carries out one transaction: it reads what its keys hold, and makes a multi that fails when that has changed.
func (c *commit) carryOut(ctx context.Context, t *backends.Txn) backends.Result {
	v := c.h.via()
	verified := false // the guards held before the last reading
	for try := 0; ; try++ {
		a, err := c.prepare(ctx, t, try)
		if err != nil {
			return c.notSent(err)
		}
		if verified && a.refused() && !a.old {
			return c.refuse(a)
		}
		m, sent := c.h.s.mark(), time.Now()
		stat, failed, err := v.multi(ctx, a.ops)
		switch {
		case err == nil && a.refused():
			verified = true
			if a.old {
				_, err = c.h.s.look(ctx, v)
			}
		case err == nil && stat != nil && m.undone(stat.Mzxid):
			c.h.s.background(func() { _, _ = c.h.s.look(c.h.ctx, v) })
			return backends.Result{Err: fmt.Errorf("%w: the store lost data", backends.ErrUnknown)}
		case err == nil:
			c.h.lease.add(sent)
			return c.applied(a.rec, t, stat)
		case failed >= 0 && failed < a.guards:
			return c.guarded(ctx, a.ops[failed].guard)
		case failed < 0 && (ctx.Err() != nil || unanswered(err) || errors.Is(err, errOver)):
			if !a.refused() {
				return backends.Result{Err: fmt.Errorf("%w: %w", backends.ErrUnknown, err)}
			}
			err = ctx.Err()
		case errors.Is(err, zk.ErrNoNode):
			err = a.st.makeBuckets(ctx, v, c.h.dir)
		case errors.Is(err, zk.ErrBadVersion), errors.Is(err, zk.ErrNodeExists):
			err = nil
		}
		if err != nil {
			return c.notSent(err)
		}
	}
}

// prepare reads what a transaction needs to know.
func (c *commit) prepare(ctx context.Context, t *backends.Txn, try int) (*attempt, error) {
	h := c.h
	if try > 3 { // others want the same
		if err := pause(ctx, time.Duration(min(try, 50))*time.Millisecond); err != nil {
			return nil, err
		}
	}
	if err := h.ready(ctx); err != nil {
		return nil, err
	}
	a := &attempt{rec: h.s.mark().rec}
	a.ops = h.guards(c.incarnation, slices.ContainsFunc(t.Puts, func(p backends.Put) bool { return p.Bound }))
	a.guards = len(a.ops)
	var err error
	if a.st, err = c.read(ctx, t); err != nil {
		return nil, err
	}
	a.old = a.rec.id != c.incarnation
	a.young = t.Grace > 0 && !a.rec.since.IsZero() && c.now.Before(a.rec.since.Add(t.Grace))
	a.current, a.holds = a.st.compare(a.rec, t)
	if !a.refused() {
		a.ops = a.st.write(a.ops, h, t)
		c.mu.Lock()
		c.sent = true
		c.mu.Unlock()
	}
	return a, nil
}

// refuse is the result of a transaction whose guards hold, and that is not to be applied.
func (c *commit) refuse(a *attempt) backends.Result {
	if !a.young {
		return backends.Result{Err: backends.ErrConflict, Versions: a.current}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.young = true
	return backends.Result{Err: backends.ErrGrace}
}

// notSent is the result of a transaction that was not applied for want of a connection, for certain.
func (c *commit) notSent(err error) backends.Result {
	if errors.Is(err, errOver) || errors.Is(err, backends.ErrSessionLost) {
		c.h.lost()
		return backends.Result{Err: backends.ErrSessionLost}
	}
	return backends.Result{Err: fmt.Errorf("%w: %w", errUnsent, err)}
}

// guarded is the result of a transaction that one of the guards refused.
func (c *commit) guarded(ctx context.Context, err error) backends.Result {
	switch {
	case errors.Is(err, backends.ErrSessionLost):
		c.h.lost()
	case errors.Is(err, backends.ErrIncarnation):
		_, _ = c.h.s.look(ctx, c.h.via()) // so that the reply tells the one in force
	}
	return backends.Result{Err: err}
}

// applied is the result of a transaction that was applied.
func (c *commit) applied(rec *record, t *backends.Txn, stat *zk.Stat) backends.Result {
	c.mu.Lock()
	defer c.mu.Unlock()
	versions := make(map[string]int64, len(t.Puts))
	if stat != nil {
		c.h.s.clock.set(stat.Mtime)
		c.latest = max(c.latest, stat.Mtime)
		for _, p := range t.Puts {
			versions[p.Key] = rec.version(stat.Mzxid)
		}
	}
	return backends.Result{Versions: versions}
}
