package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
)

var raceCases = []testCase{
	{"OneOfManyPutsAnAbsentKey", nil, oneWins},
	{"OneOfManyPutsAtAVersion", nil, oneWinsAtVersion},
	{"CommitsThatExcludeEachOtherAreNotBothApplied", nil, writeSkew},
	{"TakeOverAndRenewalNeverBothSucceed", nil, takeOverRace},
	{"DeleteAndTakeNeverBothSucceed", nil, releaseRace},
}

// racers runs f once for each session, all at once.
func racers(sessions []backends.Session, f func(i int, h backends.Session)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i, h := range sessions {
		wg.Go(func() { <-start; f(i, h) })
	}
	close(start)
	wg.Wait()
}

// raceSessions opens n sessions, over two handles where there are two.
func (e *env) raceSessions(n int) []backends.Session {
	second := e.store
	if _, one := e.place.Cannot[TwoHandles]; !one {
		second = e.handle()
	}
	var sessions []backends.Session
	for i := range n {
		s := e.store
		if i%2 == 1 {
			s = second
		}
		sessions = append(sessions, e.sessionIn(s, group))
	}
	return sessions
}

// try commits one transaction; it may be called from any goroutine.
func (e *env) try(h backends.Session, t backends.Txn) (backends.CommitReply, error) {
	r, err := h.Commit(e.ctx, backends.CommitRequest{Incarnation: h.Opened().Incarnation, Txns: []backends.Txn{t}})
	if err != nil {
		e.Errorf("commit: %v", err)
		return r, err
	}
	return r, r.Results[0].Err
}

func oneWins(e *env) {
	sessions := e.raceSessions(8)
	for round := range e.d.Rounds {
		key := fmt.Sprintf("k%d", round)
		var wins atomic.Int64
		var winner atomic.Value
		racers(sessions, func(_ int, h backends.Session) {
			_, err := e.try(h, bindTxn(key, backends.Check{Key: key}))
			if err == nil {
				wins.Add(1)
				winner.Store(h.ID())
			} else if !errors.Is(err, backends.ErrConflict) {
				e.Errorf("result %v", err)
			}
			if _, err := h.Renew(e.ctx, backends.RenewRequest{Incarnation: h.Opened().Incarnation}); err != nil {
				e.Errorf("renewal: %v", err)
			}
		})
		if wins.Load() != 1 {
			e.Fatalf("round %d: %d sessions put the absent key", round, wins.Load())
		}
		if e.get(sessions[0], key).Session != winner.Load() {
			e.Fatalf("round %d: the key is another session's than the one that was told that it put it", round)
		}
	}
}

func oneWinsAtVersion(e *env) {
	sessions := e.raceSessions(8)
	version := e.put(sessions[0], "k", "v")
	for round := range e.d.Rounds {
		var next atomic.Int64
		racers(sessions, func(_ int, h backends.Session) {
			r, err := e.try(h, backends.Txn{Checks: []backends.Check{{Key: "k", Version: version}}, Puts: []backends.Put{{Key: "k"}}})
			if err == nil && !next.CompareAndSwap(0, r.Results[0].Versions["k"]) {
				e.Errorf("round %d: two writers at version %d", round, version)
			}
			if _, err := h.Renew(e.ctx, backends.RenewRequest{Incarnation: h.Opened().Incarnation}); err != nil {
				e.Errorf("renewal: %v", err)
			}
		})
		if version = next.Load(); version == 0 {
			e.Fatalf("round %d: nobody wrote", round)
		}
	}
}

// writeSkew: each of two commits puts a key and depends on the other's: on its absence, or on its version. They are in some order,
// so the later one finds that what it depends on has changed.
func writeSkew(e *env) {
	sessions := e.raceSessions(2)
	keys := []string{"a", "b"}
	var versions [2]int64 // 0: absent
	for round := range e.d.Rounds {
		var wins atomic.Int64
		racers(sessions, func(i int, h backends.Session) {
			_, err := e.try(h, bindTxn(keys[i], backends.Check{Key: keys[1-i], Version: versions[1-i]}))
			if err == nil {
				wins.Add(1)
			} else if !errors.Is(err, backends.ErrConflict) {
				e.Errorf("result %v", err)
			}
			if _, err := h.Renew(e.ctx, backends.RenewRequest{Incarnation: h.Opened().Incarnation}); err != nil {
				e.Errorf("renewal: %v", err)
			}
		})
		if wins.Load() != 1 {
			e.Fatalf("round %d: %d of two commits that exclude each other were applied", round, wins.Load())
		}
		versions = [2]int64{}
		if round%2 == 0 { // the next time they are there
			versions = [2]int64{e.put(sessions[0], "a", "v"), e.put(sessions[0], "b", "v")}
		} else {
			e.must(sessions[0], backends.Txn{Deletes: keys})
		}
	}
}

// takeOverRace: sessions are renewed about when they end, while others take what is bound to them. A renewal or commit
// that succeeded at one time, and a take-over before that session's end, must not both have happened.
func takeOverRace(e *env) {
	const pairs = 12
	seed := uint64(time.Now().UnixNano())
	e.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	rounds := max(1, e.d.Rounds/10)
	var raced atomic.Int64
	for round := range rounds {
		takers := e.raceSessions(pairs)
		owners := e.raceSessions(pairs)
		delays := make([]time.Duration, pairs)
		for i, h := range owners {
			delays[i] = h.TTL() - h.TTL()/50 + time.Duration(rng.Int64N(int64(h.TTL()/25)))
		}
		racers(owners, func(i int, owner backends.Session) {
			if e.raceForOne(owner, takers[i], fmt.Sprintf("%d/%d", round, i), delays[i]) {
				raced.Add(1)
			}
		})
	}
	if raced.Load() == 0 {
		e.Errorf("in %d rounds no session lasted until its race: the store is too slow for a TTL of %v", rounds, e.ttl)
	}
}

// raceForOne tells whether there was a race: on a busy machine the owner may have ended before.
func (e *env) raceForOne(owner, taker backends.Session, key string, delay time.Duration) bool {
	var alive, taken atomic.Int64 // the store's time of the owner's last success, and of the take-over, in ns
	extend := func(s backends.Stamp) { alive.Store(s.Time.UnixNano()) }
	_, err := e.try(owner, bindTxn(key))
	if errors.Is(err, backends.ErrSessionLost) {
		return false
	}
	if err != nil {
		e.Errorf("the owner's claim: %v", err)
		return false
	}
	first, err := owner.Renew(e.ctx, backends.RenewRequest{Incarnation: owner.Opened().Incarnation})
	if errors.Is(err, backends.ErrSessionLost) {
		return false
	}
	if err != nil {
		e.Errorf("the owner's first renewal: %v", err)
		return false
	}
	extend(first.Stamp)
	var wg sync.WaitGroup
	wg.Go(func() {
		<-time.After(delay)
		for try := range 3 {
			if try == 1 {
				<-time.After(delay)
			}
			r, err := owner.Renew(e.ctx, backends.RenewRequest{Incarnation: owner.Opened().Incarnation})
			if err != nil {
				if !errors.Is(err, backends.ErrSessionLost) {
					e.Errorf("renewal: %v", err)
				}
				return
			}
			if at := taken.Load(); at != 0 && at < r.Time.UnixNano() {
				e.Errorf("%s: renewed at %v after the take-over", key, r.Time)
			}
			extend(r.Stamp)
		}
	})
	wg.Go(func() { e.takeOver(taker, key, &taken) })
	wg.Wait()
	if end := alive.Load() + int64(owner.TTL()); taken.Load() < end {
		e.Errorf("%s: taken over %v before the owner's end", key, time.Duration(end-taken.Load()))
	}
	if r, err := e.try(owner, bindTxn("stale")); !errors.Is(err, backends.ErrSessionLost) {
		e.Errorf("%s: the old owner's commit after the take-over: %+v, %v", key, r, err)
	}
	return true
}

// takeOver tries to take a key until it is free, and notes the store's time at which it was taken.
func (e *env) takeOver(taker backends.Session, key string, taken *atomic.Int64) {
	for e.ctx.Err() == nil {
		_, err := taker.Renew(e.ctx, backends.RenewRequest{Incarnation: taker.Opened().Incarnation})
		if errors.Is(err, backends.ErrSessionLost) { // on a busy machine: go on with another
			taker, err = e.store.Open(e.ctx, backends.SessionOptions{Group: group, TTL: e.ttl})
		}
		if err != nil {
			e.Errorf("the taker's renewal: %v", err)
			return
		}
		r, err := e.try(taker, bindTxn(key, backends.Check{Key: key}))
		if err == nil {
			taken.Store(r.Time.UnixNano())
			return
		} else if !errors.Is(err, backends.ErrConflict) && !errors.Is(err, backends.ErrSessionLost) {
			e.Errorf("take-over: %v", err)
			return
		}
		<-time.After(max(time.Millisecond, e.ttl/500))
	}
}

// releaseRace: a late release, checked against its version, never frees what somebody took.
func releaseRace(e *env) {
	sessions := e.raceSessions(2)
	a, b := sessions[0], sessions[1]
	for round := range e.d.Rounds {
		e.renew(a, backends.RenewRequest{})
		e.renew(b, backends.RenewRequest{})
		version := e.put(a, "k", "a")
		var released, taken error
		racers(sessions, func(i int, h backends.Session) {
			check := []backends.Check{{Key: "k", Version: version}}
			if i == 0 {
				_, released = e.try(h, backends.Txn{Checks: check, Deletes: []string{"k"}})
			} else {
				_, taken = e.try(h, bindTxn("k", check...))
			}
		})
		if (released == nil) == (taken == nil) {
			e.Fatalf("round %d: release: %v, take: %v", round, released, taken)
		}
		if there := e.get(b, "k") != nil; there != (taken == nil) {
			e.Fatalf("round %d: the key is there: %v; take: %v", round, there, taken)
		}
	}
}
