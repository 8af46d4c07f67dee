package storetest

import (
	"errors"
	"sync"

	"github.com/rebalancer-go/rebalancer/backends"
)

var lossCases = []testCase{
	{"LossBeginsAnIncarnation", []Ability{Lose}, lossBegins},
	{"LossRefusesWhoAcceptedTheEarlierData", []Ability{Lose}, lossRefuses},
	{"LossStartsTheGrace", []Ability{Lose}, lossStartsGrace},
	{"AllAgreeOnTheIncarnation", []Ability{Lose, TwoHandles}, allAgree},
	{"RollBackBeginsAnIncarnation", []Ability{RollBack}, rollBackBegins},
	{"RollBackRefusesRenewalsAndExtendsNothing", []Ability{RollBack}, rollBackRefuses},
	{"RollBackBringsNoClosedSessionBack", []Ability{RollBack}, rollBackAfterClose},
	{"IncarnationStaysWhileNothingIsLost", []Ability{TwoHandles}, incarnationStays},
}

// lost tells whether an error says that the session or the data is not what it was.
func lost(err error) bool {
	return errors.Is(err, backends.ErrSessionLost) || errors.Is(err, backends.ErrIncarnation)
}

func lossBegins(e *env) {
	first := e.session()
	e.put(first, "k", "v")
	before := e.renew(first, backends.RenewRequest{}).Stamp
	e.place.Lose(e.T)
	h := e.session()
	after := h.Opened()
	if after.Incarnation == before.Incarnation || after.Incarnation == "" {
		e.Fatalf("incarnation %q after the loss, %q before", after.Incarnation, before.Incarnation)
	}
	if after.Since.IsZero() || after.Since.After(after.Time) {
		e.Fatalf("since %v, at %v", after.Since, after.Time)
	}
	if got := e.names(h, ""); len(got) != 0 {
		e.Fatalf("%q are left", got)
	}
	if again := e.renew(h, backends.RenewRequest{}).Stamp; again.Incarnation != after.Incarnation || !again.Since.Equal(after.Since) {
		e.Fatalf("the incarnation changed again: %+v, then %+v", after, again)
	}
	e.bind(h, "k")
}

func lossRefuses(e *env) {
	h := e.session()
	inc := h.Opened().Incarnation
	e.bind(h, "k")
	e.place.Lose(e.T)
	r, err := h.Renew(e.ctx, backends.RenewRequest{Incarnation: inc})
	if !lost(err) {
		e.Fatalf("a renewal after the loss: %v", err)
	}
	if r.Incarnation == inc || r.Incarnation == "" {
		e.Fatalf("the stamp of the refusal is %+v", r.Stamp)
	}
	c, err := h.Commit(e.ctx, backends.CommitRequest{Incarnation: inc, Txns: []backends.Txn{bindTxn("k")}})
	if err != nil || !lost(c.Results[0].Err) {
		e.Fatalf("a commit after the loss: %v, %+v", err, c)
	}
	other := e.session()
	if got := e.names(other, ""); len(got) != 0 {
		e.Fatalf("%q are there", got)
	}
	_, err = h.Renew(e.ctx, backends.RenewRequest{Incarnation: other.Opened().Incarnation})
	e.wantErr("a renewal of a session that was forgotten, in the new incarnation", err, backends.ErrSessionLost)
}

func lossStartsGrace(e *env) {
	e.put(e.session(), "k", "v")
	e.place.Lose(e.T)
	if h := e.session(); h.Opened().Since.IsZero() {
		e.Fatal("lost data is passed off as proof that nobody works")
	}
	graceHoldsBack(e)
}

func allAgree(e *env) {
	e.put(e.session(), "k", "v")
	stores := []backends.Store{e.store, e.handle(), e.handle()}
	e.place.Lose(e.T)
	stamps := make([]backends.Stamp, len(stores))
	var wg sync.WaitGroup
	for i, s := range stores {
		wg.Go(func() {
			h, err := s.Open(e.ctx, backends.SessionOptions{Group: group, TTL: e.ttl})
			if err != nil {
				e.Errorf("opening a session after the loss: %v", err)
				return
			}
			r, err := h.Renew(e.ctx, backends.RenewRequest{Incarnation: h.Opened().Incarnation})
			if err != nil {
				e.Errorf("renewal after the loss: %v", err)
			}
			stamps[i] = r.Stamp
		})
	}
	wg.Wait()
	for _, s := range stamps {
		if s.Incarnation != stamps[0].Incarnation || !s.Since.Equal(stamps[0].Since) {
			e.Fatalf("they differ: %+v", stamps)
		}
	}
}

func rollBackBegins(e *env) {
	h := e.session()
	old := e.put(h, "k", "old")
	restore := e.place.RollBack(e.T)
	e.put(h, "k", "new")
	e.put(h, "l", "new")
	restore(e.T)
	again := e.session()
	if o := again.Opened(); o.Incarnation == h.Opened().Incarnation || o.Since.IsZero() {
		e.Fatalf("stamp after the rollback: %+v", o)
	}
	r := e.read(again, backends.ReadRequest{Prefixes: []string{""}})
	if len(r.Entries) != 1 || r.Entries[0].Version != old || string(r.Entries[0].Value) != "old" {
		e.Fatalf("entries after the rollback: %+v", r.Entries)
	}
}

func rollBackRefuses(e *env) {
	h := e.session()
	inc := h.Opened().Incarnation
	version := e.bind(h, "k")
	restore := e.place.RollBack(e.T)
	restore(e.T)
	end := h.Opened().Time.Add(h.TTL())
	other := e.session()
	e.poll("the session ended in spite of refused renewals", func() bool {
		e.renew(other, backends.RenewRequest{})
		r, err := h.Renew(e.ctx, backends.RenewRequest{Incarnation: inc})
		if !lost(err) {
			e.Fatalf("a renewal in a rolled back store: %v", err)
		}
		if errors.Is(err, backends.ErrIncarnation) && r.Time.After(end.Add(e.d.Slack)) {
			e.Fatal("a refused renewal extended the session")
		}
		if entry := e.get(other, "k"); entry != nil && (entry.Version != version || entry.Session != h.ID()) {
			e.Fatalf("entry %+v", entry)
		}
		return errors.Is(err, backends.ErrSessionLost)
	})
}

// rollBackAfterClose: the process that closed its session knows that it has ended, whatever the data says.
func rollBackAfterClose(e *env) {
	h := e.session()
	restore := e.place.RollBack(e.T)
	if err := h.Close(e.ctx); err != nil {
		e.Fatal(err)
	}
	restore(e.T)
	inc := e.session().Opened().Incarnation
	_, err := h.Renew(e.ctx, backends.RenewRequest{Incarnation: inc})
	e.wantErr("renewal", err, backends.ErrSessionLost)
	r, err := h.Commit(e.ctx, backends.CommitRequest{Incarnation: inc, Txns: []backends.Txn{bindTxn("k")}})
	if err != nil {
		e.Fatal(err)
	}
	e.wantErr("commit", r.Results[0].Err, backends.ErrSessionLost)
	_, err = h.Supersede(e.ctx, "node")
	e.wantErr("supersede", err, backends.ErrSessionLost)
}

func incarnationStays(e *env) {
	first := e.session().Opened()
	other := e.handle()
	if o := e.sessionIn(other, group).Opened(); o.Incarnation != first.Incarnation || !o.Since.Equal(first.Since) {
		e.Fatalf("another store sees %+v, the first %+v", o, first)
	}
}
