package storetest

import (
	"errors"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
)

var sessionCases = []testCase{
	{"OpenRefusesATTLItCannotDo", nil, openRefusesATTL},
	{"OpenNeedsAGroup", nil, openNeedsAGroup},
	{"OpenGrantsATTLAndStampsTheReply", nil, openGrants},
	{"SessionIDsAreUnique", nil, idsAreUnique},
	{"SessionLivesUntilItsTTLAfterTheLastRenewal", nil, livesUntilTTL},
	{"RenewalAfterTheEndIsRefusedForGood", nil, renewAfterEnd},
	{"RenewalInAnotherIncarnationExtendsNothing", nil, renewOtherIncarnation},
	{"RenewalReportsNamedKeys", nil, renewReportsKeys},
	{"RenewalReportsDigests", nil, renewReportsDigests},
	{"RenewalSweepsWhatEndedSessionsLeft", []Ability{Rows}, renewSweeps},
	{"CloseEndsTheSessionAtOnce", nil, closeEndsSession},
	{"CloseIsIdempotentAndFineAfterTheEnd", nil, closeTwice},
	{"BoundEntriesVanishExactlyAtTheEnd", nil, vanishExactly},
	{"CommitAfterTheEndIsRefused", nil, commitAfterEnd},
	{"EmptyNodeNameIsAllowed", nil, emptyNode},
}

func openRefusesATTL(e *env) {
	for _, ttl := range []time.Duration{0, -time.Second} {
		_, err := e.store.Open(e.ctx, backends.SessionOptions{Group: group, TTL: ttl})
		e.wantErr("a session with ttl "+ttl.String(), err, backends.ErrFatal)
	}
}

func openNeedsAGroup(e *env) {
	_, err := e.store.Open(e.ctx, backends.SessionOptions{TTL: e.ttl})
	e.wantErr("a session of no group", err, backends.ErrInvalid)
}

func emptyNode(e *env) {
	h, err := e.store.Open(e.ctx, backends.SessionOptions{Group: group, TTL: e.ttl})
	if err != nil {
		e.Fatal(err)
	}
	e.bind(h, "k")
}

func openGrants(e *env) {
	h := e.session()
	o := h.Opened()
	if h.TTL() <= 0 || o.Incarnation == "" || o.Time.IsZero() {
		e.Fatalf("ttl %v, stamp %+v", h.TTL(), o)
	}
	r := e.renew(h, backends.RenewRequest{})
	read := e.read(h, backends.ReadRequest{})
	reply, err := h.Commit(e.ctx, backends.CommitRequest{Incarnation: o.Incarnation, Txns: []backends.Txn{{}}})
	if err != nil || reply.Results[0].Err != nil {
		e.Fatal(reply, err)
	}
	last := o
	for i, s := range []backends.Stamp{r.Stamp, read.Stamp, reply.Stamp} {
		if s.Incarnation != o.Incarnation || !s.Since.Equal(o.Since) || s.Time.Before(last.Time) {
			e.Fatalf("stamp %d is %+v after %+v", i, s, last)
		}
		last = s
	}
}

func idsAreUnique(e *env) {
	seen := map[string]bool{"": true}
	for range 20 {
		id := e.session().ID()
		if seen[id] {
			e.Fatalf("session id %q came twice, or is empty", id)
		}
		seen[id] = true
	}
}

func livesUntilTTL(e *env) {
	h, other := e.session(), e.session()
	version := e.bind(h, "k")
	var last backends.Stamp
	for end := h.Opened().Time.Add(2 * h.TTL()); last.Time.Before(end); { // well past the first TTL
		last = e.renew(h, backends.RenewRequest{}).Stamp
		entry := e.get(other, "k")
		if entry == nil || entry.Version != version || entry.Session != h.ID() || entry.Left > h.TTL() {
			e.Fatalf("entry of a session that is renewed: %+v", entry)
		}
		e.until(h, last.Time.Add(h.TTL()/4))
	}
	e.poll("the entry vanished", func() bool { return e.get(other, "k") == nil })
	if r := e.read(other, backends.ReadRequest{}); r.Time.Before(last.Time.Add(h.TTL())) {
		e.Fatalf("the session ended %v before its TTL", last.Time.Add(h.TTL()).Sub(r.Time))
	}
}

func renewAfterEnd(e *env) {
	h, other := e.session(), e.session()
	e.expire(h, other)
	for range 3 {
		r, err := h.Renew(e.ctx, backends.RenewRequest{Incarnation: h.Opened().Incarnation})
		e.wantErr("a renewal after the end", err, backends.ErrSessionLost)
		if r.Incarnation != h.Opened().Incarnation || r.Time.Before(h.Opened().Time.Add(h.TTL())) {
			e.Fatalf("stamp of the refusal: %+v", r.Stamp)
		}
	}
}

func renewOtherIncarnation(e *env) {
	h, other := e.session(), e.session()
	end := e.renew(h, backends.RenewRequest{}).Time.Add(h.TTL())
	e.bind(h, "k")
	e.poll("the session ended in spite of renewals under another incarnation", func() bool {
		r, err := h.Renew(e.ctx, backends.RenewRequest{Incarnation: "another"})
		if errors.Is(err, backends.ErrSessionLost) {
			return true
		}
		e.wantErr("a renewal in another incarnation", err, backends.ErrIncarnation)
		if r.Incarnation != h.Opened().Incarnation || r.Time.IsZero() {
			e.Fatalf("stamp of the refusal: %+v", r.Stamp)
		}
		if r.Time.After(end.Add(e.d.Slack)) {
			e.Fatal("a refused renewal extended the session")
		}
		return false
	})
	if e.get(other, "k") != nil {
		e.Fatal("the entry outlived its session")
	}
}

func renewReportsKeys(e *env) {
	h, other := e.session(), e.session()
	bound, free := e.bind(other, "bound"), e.put(h, "free", "v")
	e.bind(other, "not asked for")
	r := e.renew(h, backends.RenewRequest{Keys: []string{"bound", "free", "absent"}})
	if len(r.Keys) != 2 {
		e.Fatalf("states %+v, want those of the two keys that are there", r.Keys)
	}
	if k := r.Keys["free"]; k.Version != free || k.Session != "" || k.Left >= 0 {
		e.Fatalf("unbound key: %+v, want version %d", k, free)
	}
	if k := r.Keys["bound"]; k.Version != bound || k.Session != other.ID() || k.Left == 0 || k.Left > other.TTL() {
		e.Fatalf("bound key: %+v, want version %d of %s", k, bound, other.ID())
	}
	if err := other.Close(e.ctx); err != nil {
		e.Fatal(err)
	}
	if r := e.renew(h, backends.RenewRequest{Keys: []string{"bound"}}); len(r.Keys) != 0 {
		e.Fatalf("a renewal reports the key of an ended session: %+v", r.Keys)
	}
}

func renewReportsDigests(e *env) {
	h, dying := e.session(), e.session()
	e.put(h, "a/1", "v")
	e.bind(h, "a/2")
	e.bind(dying, "a/3")
	e.put(h, "b/1", "v")
	for _, prefix := range []string{"a/", "b/", "none/", ""} {
		got := e.renew(h, backends.RenewRequest{Digests: []string{prefix}}).Digests[prefix]
		read := e.read(h, backends.ReadRequest{Prefixes: []string{prefix}})
		e.sameDigest(prefix, got, read.Digests[prefix])
		e.sameDigest(prefix, got, backends.DigestOf(read.Entries))
	}
	before := e.renew(h, backends.RenewRequest{Digests: []string{"a/"}}).Digests["a/"]
	if before.Left <= 0 || before.Left > dying.TTL() {
		e.Fatalf("least time left is %v", before.Left)
	}
	e.expire(dying, h)
	after := e.renew(h, backends.RenewRequest{Digests: []string{"a/"}}).Digests["a/"]
	if after.Count != before.Count-1 || after.Sum == before.Sum {
		e.Fatalf("digest with the entry of an ended session: %+v, before %+v", after, before)
	}
	e.put(h, "a/1", "v")
	if changed := e.renew(h, backends.RenewRequest{Digests: []string{"a/"}}).Digests["a/"]; changed.Sum == after.Sum {
		e.Fatal("a put does not change the digest")
	}
}

// sameDigest compares what does not depend on the moment.
func (e *env) sameDigest(prefix string, a, b backends.Digest) {
	e.Helper()
	if a.Sum != b.Sum || a.Count != b.Count || (a.Left < 0) != (b.Left < 0) {
		e.Fatalf("digests of %q differ: %+v and %+v", prefix, a, b)
	}
}

func renewSweeps(e *env) {
	h := e.session()
	e.bind(h, "mine")
	rows := e.place.Rows(e.T)
	for _, key := range []string{"a", "b"} {
		dying := e.session()
		e.bind(dying, key)
	}
	e.expire(e.session(), h)
	e.renew(h, backends.RenewRequest{Sweep: true})
	if got := e.place.Rows(e.T); got != rows {
		e.Fatalf("%d rows are left after a sweep, want %d", got, rows)
	}
	if e.get(h, "mine") == nil {
		e.Fatal("the sweep removed an entry of a live session")
	}
}

func closeEndsSession(e *env) {
	h, other := e.session(), e.session()
	e.bind(h, "k")
	free := e.put(h, "free", "v")
	if err := h.Close(e.ctx); err != nil {
		e.Fatal(err)
	}
	if e.get(other, "k") != nil {
		e.Fatal("the entry outlived its session")
	}
	if entry := e.get(other, "free"); entry == nil || entry.Version != free {
		e.Fatalf("an entry that is not bound went with the session: %+v", entry)
	}
	_, err := h.Renew(e.ctx, backends.RenewRequest{Incarnation: h.Opened().Incarnation})
	e.wantErr("a renewal after Close", err, backends.ErrSessionLost)
	e.bind(other, "k")
}

func closeTwice(e *env) {
	h, other := e.session(), e.session()
	for range 2 {
		if err := h.Close(e.ctx); err != nil {
			e.Fatalf("Close: %v", err)
		}
	}
	h = e.session()
	e.expire(h, other)
	if err := h.Close(e.ctx); err != nil {
		e.Fatalf("Close of a session that had ended: %v", err)
	}
}

func vanishExactly(e *env) {
	h, other := e.session(), e.session()
	e.bind(h, "k")
	end := e.renew(h, backends.RenewRequest{}).Time.Add(h.TTL())
	e.poll("the entry vanished", func() bool {
		e.renew(other, backends.RenewRequest{})
		r := e.read(other, backends.ReadRequest{Keys: []string{"k"}, Prefixes: []string{"k"}})
		there := len(r.Entries) == 1
		if there != (r.Digests["k"].Count == 1) {
			e.Fatalf("entries %+v, digest %+v", r.Entries, r.Digests)
		}
		if !there && r.Time.Before(end) {
			e.Fatalf("the entry vanished %v before the end", end.Sub(r.Time))
		}
		if there && !r.Time.Before(end.Add(e.d.Slack)) {
			e.Fatalf("the entry is there %v after the end", r.Time.Sub(end))
		}
		if there && e.d.Slack == 0 {
			if off := end.Sub(r.Time) - r.Entries[0].Left; off < -time.Millisecond || off > time.Millisecond {
				e.Fatalf("Left is wrong by %v", off)
			}
		}
		return !there
	})
	if len(e.renew(other, backends.RenewRequest{Keys: []string{"k"}}).Keys) != 0 {
		e.Fatal("a renewal still reports the entry")
	}
	e.must(other, bindTxn("k", backends.Check{Key: "k"}))
}

func commitAfterEnd(e *env) {
	h, other := e.session(), e.session()
	e.expire(h, other)
	if r := e.commit(h, backends.Txn{Puts: []backends.Put{{Key: "k"}}}); !errors.Is(r[0].Err, backends.ErrSessionLost) {
		e.Fatalf("a commit after the end: %v", r[0].Err)
	}
	if e.get(other, "k") != nil {
		e.Fatal("a commit after the end was applied")
	}
}
