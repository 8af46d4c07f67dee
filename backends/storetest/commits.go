package storetest

import (
	"errors"
	"fmt"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
)

var commitCases = []testCase{
	{"CommitAppliesAllOrNothing", nil, allOrNothing},
	{"ConflictReturnsCurrentVersions", nil, conflictVersions},
	{"CheckOfVersionZeroMeansAbsent", nil, checkAbsent},
	{"EachTransactionIsOnItsOwn", nil, eachOnItsOwn},
	{"DeleteRemovesAndSparesWhatIsAbsent", nil, deletes},
	{"PutChangesWhatAnEntryIsBoundTo", nil, rebinding},
	{"CommitInAnotherIncarnationIsRefused", nil, commitOtherIncarnation},
	{"CommitChecksEntriesOfEndedSessionsAsAbsent", nil, checksSeeTheEnd},
	{"BatchOf256Transactions", nil, batch256},
	{"EmptyCommitsAreFine", nil, emptyCommits},
	{"GraceHoldsBackYoungData", nil, graceHoldsBack},
	{"CommitWithAnEndedContextAppliesNothing", nil, endedContext},
	{"DeadlinesAreKept", nil, deadlinesAreKept},
}

func allOrNothing(e *env) {
	h := e.lasting()
	a := e.put(h, "a", "1")
	e.put(h, "gone", "1")
	r := e.commit(h, backends.Txn{
		Checks:  []backends.Check{{Key: "a", Version: a}, {Key: "b", Version: 7}},
		Puts:    []backends.Put{{Key: "a", Value: []byte("2")}, {Key: "c", Value: []byte("2")}},
		Deletes: []string{"gone"},
	})[0]
	e.wantErr("a transaction with a check that does not hold", r.Err, backends.ErrConflict)
	if got := e.get(h, "a"); got.Version != a || string(got.Value) != "1" || e.get(h, "c") != nil || e.get(h, "gone") == nil {
		e.Fatal("a transaction was applied in part")
	}
	e.must(h, backends.Txn{
		Checks:  []backends.Check{{Key: "a", Version: a}, {Key: "b"}},
		Puts:    []backends.Put{{Key: "a", Value: []byte("2")}, {Key: "c", Value: []byte("2")}},
		Deletes: []string{"gone"},
	})
	if got := e.get(h, "a"); got.Version <= a || string(got.Value) != "2" || e.get(h, "c") == nil || e.get(h, "gone") != nil {
		e.Fatal("a transaction was not applied whole")
	}
}

func conflictVersions(e *env) {
	h := e.lasting()
	a, b := e.put(h, "a", "1"), e.bind(h, "b")
	r := e.commit(h, backends.Txn{Checks: []backends.Check{{Key: "a", Version: a}, {Key: "b", Version: b + 1}, {Key: "c", Version: 5}}})[0]
	e.wantErr("the transaction", r.Err, backends.ErrConflict)
	if len(r.Versions) != 3 || r.Versions["a"] != a || r.Versions["b"] != b || r.Versions["c"] != 0 {
		e.Fatalf("current versions %v, want a %d, b %d, c 0", r.Versions, a, b)
	}
}

func checkAbsent(e *env) {
	h := e.lasting()
	first := e.must(h, bindTxn("k", backends.Check{Key: "k"}))["k"]
	r := e.commit(h, bindTxn("k", backends.Check{Key: "k"}))[0]
	e.wantErr("a second put of an absent key", r.Err, backends.ErrConflict)
	if r.Versions["k"] != first {
		e.Fatalf("current version %d, want %d", r.Versions["k"], first)
	}
}

func eachOnItsOwn(e *env) {
	h, other := e.lasting(), e.lasting()
	e.bind(other, "stuck")
	var txns []backends.Txn
	for i := range 20 {
		key := fmt.Sprintf("k%d", i)
		if i == 7 {
			key = "stuck"
		}
		txns = append(txns, bindTxn(key, backends.Check{Key: key}))
	}
	for i, r := range e.commit(h, txns...) {
		if i == 7 {
			e.wantErr("the stuck one", r.Err, backends.ErrConflict)
		} else if r.Err != nil || r.Versions[txns[i].Puts[0].Key] == 0 {
			e.Fatalf("transaction %d beside a stuck one: %+v", i, r)
		}
	}
	if n := len(e.names(h, "k")); n != 19 {
		e.Fatalf("%d of 19 were applied", n)
	}
}

func deletes(e *env) {
	h := e.lasting()
	e.put(h, "a", "v")
	e.bind(h, "b")
	if v := e.must(h, backends.Txn{Deletes: []string{"a", "b", "absent"}}); len(v) != 0 {
		e.Fatalf("deletes have versions: %v", v)
	}
	if got := e.names(h, ""); len(got) != 0 {
		e.Fatalf("%q are left", got)
	}
	if got := e.renew(h, backends.RenewRequest{Digests: []string{""}}).Digests[""]; got.Count != 0 || got.Left >= 0 {
		e.Fatalf("digest of nothing is %+v", got)
	}
}

func rebinding(e *env) {
	h, other := e.lasting(), e.lasting()
	e.bind(h, "to free")
	e.bind(h, "to other")
	e.put(h, "to bound", "v")
	e.put(other, "to free", "v")
	e.bind(other, "to other")
	e.bind(h, "to bound")
	if err := h.Close(e.ctx); err != nil {
		e.Fatal(err)
	}
	if e.get(other, "to free") == nil || e.get(other, "to other") == nil || e.get(other, "to bound") != nil {
		e.Fatalf("left after the session's end: %q", e.names(other, ""))
	}
	if got := e.get(other, "to other"); got.Session != other.ID() {
		e.Fatalf("the entry is bound to %q", got.Session)
	}
}

func commitOtherIncarnation(e *env) {
	h := e.lasting()
	r, err := h.Commit(e.ctx, backends.CommitRequest{Incarnation: "another", Txns: []backends.Txn{bindTxn("k"), bindTxn("l")}})
	if err != nil {
		e.Fatal(err)
	}
	for _, res := range r.Results {
		e.wantErr("a commit in another incarnation", res.Err, backends.ErrIncarnation)
	}
	if r.Incarnation != h.Opened().Incarnation || len(e.names(h, "")) != 0 {
		e.Fatal("it was applied, or its stamp is wrong")
	}
}

func checksSeeTheEnd(e *env) {
	h, other := e.session(), e.session()
	version := e.bind(h, "k")
	e.expire(h, other)
	r := e.commit(other, bindTxn("k", backends.Check{Key: "k", Version: version}))[0]
	e.wantErr("a check of an entry whose session ended", r.Err, backends.ErrConflict)
	if v, ok := r.Versions["k"]; !ok || v != 0 {
		e.Fatalf("current versions %v, want absent", r.Versions)
	}
	e.must(other, backends.Txn{Deletes: []string{"k"}})
	if again := e.must(other, bindTxn("k", backends.Check{Key: "k"}))["k"]; again <= version {
		e.Fatalf("version %d after %d", again, version)
	}
	if got := e.get(other, "k"); got == nil || got.Session != other.ID() {
		e.Fatalf("entry %+v", got)
	}
}

func batch256(e *env) {
	h := e.lasting()
	var txns []backends.Txn
	for i := range 256 {
		key := fmt.Sprintf("k%03d", i)
		txns = append(txns, bindTxn(key, backends.Check{Key: key}, backends.Check{Key: "none"}))
	}
	for i, r := range e.commit(h, txns...) {
		if r.Err != nil || len(r.Versions) != 1 {
			e.Fatalf("transaction %d: %+v", i, r)
		}
	}
	e.renew(h, backends.RenewRequest{})
	for i, r := range e.commit(h, txns...) {
		if !errors.Is(r.Err, backends.ErrConflict) || len(r.Versions) != 2 {
			e.Fatalf("transaction %d, again: %+v", i, r)
		}
	}
	if n := len(e.names(h, "k")); n != 256 {
		e.Fatalf("%d of 256 keys are there", n)
	}
}

func emptyCommits(e *env) {
	h := e.lasting()
	if r := e.commit(h); len(r) != 0 {
		e.Fatal(r)
	}
	e.must(h, backends.Txn{})
}

func graceHoldsBack(e *env) {
	h := e.lasting()
	grace := e.ttl
	old := e.renew(h, backends.RenewRequest{}).Since.IsZero()
	request := backends.CommitRequest{Incarnation: h.Opened().Incarnation, Txns: []backends.Txn{{Grace: grace}, {}}}
	e.poll("the grace was over", func() bool {
		e.renew(h, backends.RenewRequest{})
		r, err := h.Commit(e.ctx, request)
		if err != nil {
			e.Fatal(err)
		}
		young := !old && r.Time.Before(r.Since.Add(grace))
		if young {
			e.wantErr("a commit in young data", r.Results[0].Err, backends.ErrGrace)
		} else if r.Results[0].Err != nil {
			e.Fatalf("a commit in data of %v at %v: %v", r.Since, r.Time, r.Results[0].Err)
		}
		if r.Results[1].Err != nil {
			e.Fatalf("a commit that asks for no grace: %v", r.Results[1].Err)
		}
		return !young
	})
}

func endedContext(e *env) {
	h := e.lasting()
	ctx, cancel := newCtx(e)
	cancel()
	r, err := h.Commit(ctx, backends.CommitRequest{Incarnation: h.Opened().Incarnation, Txns: []backends.Txn{bindTxn("k")}})
	if err == nil {
		e.Fatalf("a commit with an ended context: %+v", r)
	}
	if _, err := h.Renew(ctx, backends.RenewRequest{Incarnation: h.Opened().Incarnation}); err == nil {
		e.Fatal("a renewal with an ended context succeeded")
	}
	if _, err := h.Read(ctx, backends.ReadRequest{}); err == nil {
		e.Fatal("a read with an ended context succeeded")
	}
	if _, err := e.store.Open(ctx, backends.SessionOptions{Group: group, TTL: e.ttl}); err == nil {
		e.Fatal("a session was opened with an ended context")
	}
	if err := h.Listen(ctx, "a", func() {}); err == nil {
		e.Fatal("it listens with an ended context")
	}
	if e.get(h, "k") != nil {
		e.Fatal("an error says that nothing was applied")
	}
}

// deadlinesAreKept races commits with their deadlines: each ends soon, and what it says of the outcome is true.
func deadlinesAreKept(e *env) {
	h := e.lasting()
	for i := range e.d.Rounds {
		e.renew(h, backends.RenewRequest{})
		key := fmt.Sprintf("k%d", i)
		ctx, cancel := newCtx(e)
		time.AfterFunc(time.Duration(i)*100*time.Microsecond, cancel)
		start := time.Now()
		r, err := h.Commit(ctx, backends.CommitRequest{Incarnation: h.Opened().Incarnation, Txns: []backends.Txn{bindTxn(key)}})
		cancel()
		if took := time.Since(start); took > 20*time.Second {
			e.Fatalf("a call returned %v after its context had ended", took)
		}
		there := e.get(h, key) != nil
		switch {
		case err != nil && there:
			e.Fatalf("round %d: error %v, but the commit was applied", i, err)
		case err == nil && r.Results[0].Err == nil && !there:
			e.Fatalf("round %d: applied, but nothing is there", i)
		case err == nil && r.Results[0].Err != nil && !errors.Is(r.Results[0].Err, backends.ErrUnknown):
			e.Fatalf("round %d: %v", i, r.Results[0].Err)
		}
	}
}
