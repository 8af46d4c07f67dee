//go:build linux

package linear

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
)

// keys are all that there are. Those below claim/ are bound and always guarded, those below cas/ are not bound and always guarded, free/0 is written by whoever
// likes to; who holds leader writes assign/0 and assign/1 under its guard, in one transaction. Transactions make a part of leader and assign.
var keys = []string{"assign/0", "assign/1", "cas/0", "cas/1", "claim/0", "claim/1", "free/0", "leader"}

// client makes random calls, one at a time, and notes them.
type client struct {
	group   string
	number  int
	node    string // two clients may share a name
	store   backends.Store
	ttl     time.Duration
	rnd     *rand.Rand
	to      recorder
	opening sync.Locker // of the node's name: which of its sessions is the newest must be known

	calls, commits int
	session        backends.Session // nil: there is none
	older          backends.Session // one that the client has superseded, and still uses
	incarnation    string
	renewed        time.Time
	known          map[string]int64 // versions that were seen with their values, or written
	lost           bool             // the last call was not answered
}

// run makes calls until ctx ends. pace is the mean time between two.
func (c *client) run(ctx context.Context, pace time.Duration) {
	c.known = map[string]int64{}
	for ctx.Err() == nil {
		c.pause(ctx, time.Duration(c.rnd.ExpFloat64()*float64(pace)))
		switch {
		case c.session == nil:
			c.open()
		case c.lost && c.rnd.IntN(5) > 0 || time.Since(c.renewed) > c.ttl/6: // after a loss mostly this: the search doubles with each unknown outcome
			c.renew(c.session)
		default:
			c.act()
		}
	}
}

func (c *client) pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(min(d, time.Second))
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

func (c *client) act() {
	switch n := c.rnd.IntN(100); {
	case n < 8:
		c.renew(c.session)
	case n < 36:
		c.read(c.session)
	case n < 92:
		c.commit(c.session)
	case n < 94:
		c.close()
	case n < 96:
		c.replace()
	case c.older == nil:
		c.read(c.session)
	case n < 98:
		c.renew(c.older)
	default:
		c.commit(c.older)
	}
}

// call notes an event around a call, which gets some time.
func (c *client) call(e event, do func(ctx context.Context, e *event)) event {
	c.calls++
	e.Client, e.Number = c.number, c.calls
	patience := time.Second
	switch {
	case e.Kind == opened: // an answer that is lost leaves a session that nobody knows: no harm, but no use either
		patience *= 10
	case c.rnd.IntN(20) == 0:
		patience /= 8
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	e.Call = now()
	c.to.note(e)
	do(ctx, &e)
	e.Return = now()
	c.to.note(e)
	c.lost = e.Outcome == unknown || e.Outcome == nothingDone || slices.ContainsFunc(e.Results, func(r result) bool { return r.Outcome == unknown })
	return e
}

func (c *client) open() {
	c.opening.Lock()
	defer c.opening.Unlock()
	c.call(event{Kind: opened, Node: c.node}, func(ctx context.Context, e *event) {
		s, err := c.store.Open(ctx, backends.SessionOptions{Group: c.group, Node: c.node, TTL: c.ttl})
		e.Outcome = outcomeOf(err, unknown)
		if err == nil {
			e.Session, e.Stamp, e.TTL = s.ID(), s.Opened(), s.TTL().Nanoseconds()
			c.session, c.incarnation, c.renewed = s, s.Opened().Incarnation, time.Now()
		}
	})
}

// replace opens another session of the same node, which takes over; the older one is still used now and then.
func (c *client) replace() {
	older := c.session
	c.open()
	if c.session == older {
		return
	}
	c.older = older
	c.call(event{Kind: superseded, Node: c.node, Session: c.session.ID()}, func(ctx context.Context, e *event) {
		r, err := c.session.Supersede(ctx, c.node)
		e.Outcome, e.Stamp, e.Ended = outcomeOf(err, unknown), r.Stamp, r.Ended
	})
}

func (c *client) renew(s backends.Session) {
	some := c.some()
	e := c.call(event{Kind: renewed, Session: s.ID(), Incarnation: c.incarnation, Keys: some}, func(ctx context.Context, e *event) {
		began := time.Now()
		r, err := s.Renew(ctx, backends.RenewRequest{Incarnation: c.incarnation, Keys: some, Sweep: c.rnd.IntN(4) == 0})
		e.Outcome, e.Stamp, e.States = outcomeOf(err, unknown), r.Stamp, r.Keys
		if err == nil && s == c.session {
			c.renewed = began
		}
	})
	c.heed(s, e.Outcome, e.Stamp)
}

// heed does what a node does after a refusal.
func (c *client) heed(s backends.Session, o outcome, stamp backends.Stamp) {
	switch {
	case o == another:
		c.incarnation = stamp.Incarnation
	case o != lost && o != overtook:
	case s == c.older:
		c.older = nil
	case s == c.session:
		c.session = nil
	}
}

func (c *client) read(s backends.Session) {
	request := backends.ReadRequest{Keys: c.some(), NamesOnly: c.rnd.IntN(8) == 0}
	asked := slices.Clone(request.Keys)
	if c.rnd.IntN(2) == 0 {
		request.Prefixes = []string{[]string{"", "claim/", "assign/", "cas/"}[c.rnd.IntN(4)]}
		for _, k := range keys {
			if strings.HasPrefix(k, request.Prefixes[0]) && !slices.Contains(asked, k) {
				asked = append(asked, k)
			}
		}
	}
	c.look(s, request, asked)
}

// look reads, and remembers what it saw.
func (c *client) look(s backends.Session, request backends.ReadRequest, asked []string) bool {
	e := c.call(event{Kind: read, Session: s.ID(), Keys: asked, NamesOnly: request.NamesOnly}, func(ctx context.Context, e *event) {
		r, err := s.Read(ctx, request)
		e.Outcome, e.Stamp, e.Entries = outcomeOf(err, unknown), r.Stamp, r.Entries
	})
	if e.Outcome != done || request.NamesOnly {
		return e.Outcome == done
	}
	for _, k := range asked {
		delete(c.known, k)
	}
	for _, entry := range e.Entries {
		c.known[entry.Key] = entry.Version
	}
	return true
}

// some are one to three keys.
func (c *client) some() []string {
	all := slices.Clone(keys)
	c.rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:1+c.rnd.IntN(3)]
}

func (c *client) commit(s backends.Session) {
	var txns []backends.Txn
	for range 1 + c.rnd.IntN(2)*c.rnd.IntN(3) {
		txns = append(txns, c.txn(len(txns)))
	}
	c.commits++
	e := c.call(event{Kind: committed, Session: s.ID(), Incarnation: c.incarnation, Txns: txns}, func(ctx context.Context, e *event) {
		r, err := s.Commit(ctx, backends.CommitRequest{Incarnation: c.incarnation, Txns: txns})
		e.Outcome, e.Stamp = outcomeOf(err, nothingDone), r.Stamp
		if err != nil {
			e.Outcome, e.Why = nothingDone, err.Error()
		}
		for _, one := range r.Results {
			e.Results = append(e.Results, result{outcomeOf(one.Err, unknown), one.Versions})
		}
	})
	for i, r := range e.Results {
		c.learn(txns[i], r)
		if r.Outcome != done {
			c.heed(s, r.Outcome, e.Stamp)
		}
	}
}

// learn remembers what became of a transaction.
func (c *client) learn(txn backends.Txn, r result) {
	switch r.Outcome {
	case done:
		for _, k := range txn.Deletes {
			delete(c.known, k)
		}
		for k, v := range r.Versions {
			c.known[k] = v
		}
	case conflict, unknown: // to be read again
		for _, k := range keysOf(txn) {
			delete(c.known, k)
		}
	}
}

// txn is a random transaction on one part of the keys.
func (c *client) txn(n int) backends.Txn {
	key := keys[c.rnd.IntN(len(keys))]
	value := func(key string) []byte { return fmt.Appendf(nil, "%d.%d.%d %s", c.number, c.commits, n, key) }
	guard := func(key string) backends.Check { return backends.Check{Key: key, Version: c.known[key]} }
	switch place, _, _ := strings.Cut(key, "/"); {
	case place == "free" && c.rnd.IntN(4) == 0:
		return backends.Txn{Deletes: []string{key}}
	case place == "free":
		return backends.Txn{Puts: []backends.Put{{Key: key, Value: value(key), Bound: c.rnd.IntN(2) == 0}}}
	case place == "assign" && c.known["leader"] != 0:
		t := backends.Txn{Checks: []backends.Check{guard("leader")}}
		for _, k := range []string{"assign/0", "assign/1"} {
			if c.rnd.IntN(6) == 0 {
				t.Deletes = append(t.Deletes, k)
			} else {
				t.Puts = append(t.Puts, backends.Put{Key: k, Value: value(k)})
			}
		}
		if c.rnd.IntN(2) == 0 {
			t.Checks = append(t.Checks, guard(key))
		}
		return t
	case place == "assign":
		key = "leader"
	}
	if c.known[key] != 0 && c.rnd.IntN(3) == 0 {
		return backends.Txn{Checks: []backends.Check{guard(key)}, Deletes: []string{key}}
	}
	return backends.Txn{Checks: []backends.Check{guard(key)}, Puts: []backends.Put{{Key: key, Value: value(key), Bound: !strings.HasPrefix(key, "cas/")}}}
}

func (c *client) close() {
	s := c.session
	c.call(event{Kind: closed, Session: s.ID()}, func(ctx context.Context, e *event) { e.Outcome = outcomeOf(s.Close(ctx), unknown) })
	c.session = nil
}

// last reads everything, when all faults are over. It tells whether it could.
func (c *client) last(ctx context.Context) bool {
	c.known = map[string]int64{}
	for ctx.Err() == nil {
		if c.session == nil {
			c.open()
		} else if c.look(c.session, backends.ReadRequest{Prefixes: []string{""}}, keys) {
			return true
		}
		c.pause(ctx, 50*time.Millisecond)
	}
	return false
}
