package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
)

// env is what a case works with.
type env struct {
	*testing.T
	d     Driver
	place Place
	ttl   time.Duration
	ctx   context.Context
	store backends.Store
}

const (
	group = "group"
	lasts = 20 // ttls that a lasting session lives
)

func newEnv(t *testing.T, d Driver) *env {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute+200*d.TTL)
	t.Cleanup(cancel)
	e := &env{T: t, d: d, place: d.Place(t), ttl: d.TTL, ctx: ctx}
	e.store = e.handle()
	return e
}

// handle opens one more store over the data.
func (e *env) handle() backends.Store {
	e.Helper()
	s := e.place.Open(e.T)
	e.Cleanup(func() { closeStore(e.T, s) })
	return s
}

// session opens a session of the usual group.
func (e *env) session() backends.Session { e.Helper(); return e.sessionIn(e.store, group) }

// lasting opens a session that a case need not renew, however slow the store is.
func (e *env) lasting() backends.Session {
	e.Helper()
	h, err := e.store.Open(e.ctx, backends.SessionOptions{Group: group, Node: "node", TTL: lasts * e.ttl})
	if err != nil {
		e.Fatalf("opening a session: %v", err)
	}
	return h
}

func (e *env) sessionIn(s backends.Store, groupName string) backends.Session {
	e.Helper()
	h, err := s.Open(e.ctx, backends.SessionOptions{Group: groupName, Node: "node", TTL: e.ttl})
	if err != nil {
		e.Fatalf("opening a session: %v", err)
	}
	return h
}

// commit carries out transactions in the incarnation in which the session was opened.
func (e *env) commit(h backends.Session, txns ...backends.Txn) []backends.Result {
	e.Helper()
	r, err := h.Commit(e.ctx, backends.CommitRequest{Incarnation: h.Opened().Incarnation, Txns: txns})
	if err != nil {
		e.Fatalf("commit: %v", err)
	}
	if len(r.Results) != len(txns) {
		e.Fatalf("%d results for %d transactions", len(r.Results), len(txns))
	}
	return r.Results
}

// must carries out one transaction, which must be applied, and gives the versions of its puts.
func (e *env) must(h backends.Session, t backends.Txn) map[string]int64 {
	e.Helper()
	r := e.commit(h, t)[0]
	if r.Err != nil {
		e.Fatalf("commit of %+v: %v", t, r.Err)
	}
	for _, p := range t.Puts {
		if r.Versions[p.Key] <= 0 {
			e.Fatalf("put of %q was applied with version %d", p.Key, r.Versions[p.Key])
		}
	}
	return r.Versions
}

// put writes one unbound entry and gives its version.
func (e *env) put(h backends.Session, key, value string) int64 {
	e.Helper()
	return e.must(h, backends.Txn{Puts: []backends.Put{{Key: key, Value: []byte(value)}}})[key]
}

// bind writes one bound entry and gives its version.
func (e *env) bind(h backends.Session, key string) int64 {
	e.Helper()
	return e.must(h, bindTxn(key))[key]
}

func bindTxn(key string, checks ...backends.Check) backends.Txn {
	return backends.Txn{Checks: checks, Puts: []backends.Put{{Key: key, Value: []byte("bound"), Bound: true}}}
}

func (e *env) read(h backends.Session, r backends.ReadRequest) backends.ReadReply {
	e.Helper()
	reply, err := h.Read(e.ctx, r)
	if err != nil {
		e.Fatalf("read: %v", err)
	}
	return reply
}

// get reads one key; nil when it is absent.
func (e *env) get(h backends.Session, key string) *backends.Entry {
	e.Helper()
	r := e.read(h, backends.ReadRequest{Keys: []string{key}})
	if len(r.Entries) == 0 {
		return nil
	}
	return &r.Entries[0]
}

// names reads the keys below a prefix.
func (e *env) names(h backends.Session, prefix string) []string {
	e.Helper()
	var names []string
	for _, entry := range e.read(h, backends.ReadRequest{Prefixes: []string{prefix}, NamesOnly: true}).Entries {
		names = append(names, entry.Key)
	}
	return names
}

func (e *env) renew(h backends.Session, r backends.RenewRequest) backends.RenewReply {
	e.Helper()
	if r.Incarnation == "" {
		r.Incarnation = h.Opened().Incarnation
	}
	reply, err := h.Renew(e.ctx, r)
	if err != nil {
		e.Fatalf("renewal: %v", err)
	}
	return reply
}

// poll calls f until it gives true; it fails the test when that takes longer than the case may.
func (e *env) poll(what string, f func() bool) {
	e.Helper()
	for !f() {
		select {
		case <-e.ctx.Done():
			e.Fatalf("waited in vain until %s", what)
		case <-time.After(max(time.Millisecond, e.ttl/200)):
		}
	}
}

// until waits until the store's clock has reached t, as told by replies to h.
func (e *env) until(h backends.Session, t time.Time) {
	e.Helper()
	e.poll("the store's clock reached "+t.String(), func() bool {
		return !e.read(h, backends.ReadRequest{Keys: []string{"clock"}}).Time.Before(t)
	})
}

// expire lets a session run out, without renewing it; by is another session of the group, which is kept alive.
func (e *env) expire(h, by backends.Session) {
	e.Helper()
	end := e.read(by, backends.ReadRequest{}).Time.Add(h.TTL() + e.d.Slack)
	e.poll("a session ended", func() bool {
		return !e.renew(by, backends.RenewRequest{}).Time.Before(end)
	})
}

// wantErr fails unless err matches want.
func (e *env) wantErr(what string, err, want error) {
	e.Helper()
	if !errors.Is(err, want) {
		e.Fatalf("%s: got %v, want %v", what, err, want)
	}
}
