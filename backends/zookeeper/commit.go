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

// carryOut carries out one transaction: it reads what its keys hold, and makes a multi that fails when that has changed.
func (c *commit) carryOut(ctx context.Context, t *backends.Txn) backends.Result {
	h := c.h
	bound := slices.ContainsFunc(t.Puts, func(p backends.Put) bool { return p.Bound })
	verified := false // the guards held before the last reading
	for try := 0; ; try++ {
		if err := h.ready(ctx); err != nil {
			return c.notSent(err)
		}
		if try > 3 {
			if err := pause(ctx, time.Duration(min(try, 50))*time.Millisecond); err != nil {
				return c.notSent(err)
			}
		}
		rec := h.s.mark().rec
		ops := h.guards(c.incarnation, bound)
		guards := len(ops)
		st, err := c.read(ctx, t)
		if err != nil {
			return c.notSent(err)
		}
		old := rec.id != c.incarnation
		young := t.Grace > 0 && !rec.since.IsZero() && c.now.Before(rec.since.Add(t.Grace))
		current, holds := st.compare(rec, t)
		if verified && !old {
			if young {
				c.mu.Lock()
				c.young = true
				c.mu.Unlock()
				return backends.Result{Err: backends.ErrGrace}
			}
			if !holds {
				return backends.Result{Err: backends.ErrConflict, Versions: current}
			}
		}
		refused := old || young || !holds
		if !refused {
			ops = st.write(ops, h, t)
			c.mu.Lock()
			c.sent = true
			c.mu.Unlock()
		}
		m := h.s.mark()
		sent := time.Now()
		stat, failed, err := h.via().multi(ctx, ops)
		switch {
		case err == nil && refused:
			verified = true
			if old {
				if _, err := h.s.look(ctx, h.via()); err != nil {
					return c.notSent(err)
				}
			}
		case err == nil && stat != nil && m.undone(stat.Mzxid):
			h.s.background(func() { _, _ = h.s.look(h.ctx, h.via()) })
			return backends.Result{Err: fmt.Errorf("%w: the store lost data", backends.ErrUnknown)}
		case err == nil:
			h.lease.add(sent)
			return c.applied(rec, t, stat)
		case failed >= 0 && failed < guards:
			return c.guarded(ctx, ops[failed].guard)
		case failed < 0 && (ctx.Err() != nil || unanswered(err) || errors.Is(err, errOver)):
			if refused {
				if ctx.Err() != nil {
					return c.notSent(ctx.Err())
				}
				continue
			}
			return backends.Result{Err: fmt.Errorf("%w: %w", backends.ErrUnknown, err)}
		case errors.Is(err, zk.ErrNoNode):
			if err := st.makeBuckets(ctx, h.via(), h.dir); err != nil {
				return c.notSent(err)
			}
		case !errors.Is(err, zk.ErrBadVersion) && !errors.Is(err, zk.ErrNodeExists):
			return c.notSent(err)
		}
	}
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
