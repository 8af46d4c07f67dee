package storetest

import (
	"sync"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
)

var versionCases = []testCase{
	{"VersionsGrowWithEveryPut", nil, versionsGrow},
	{"VersionsGrowAcrossDeletion", nil, versionsGrowAcrossDeletion},
	{"VersionsGrowAcrossTheEndOfSessions", nil, versionsGrowAcrossSessions},
	{"VersionsGrowAcrossConcurrentWriters", nil, versionsGrowAcrossWriters},
	{"VersionsGrowWhenTheClockIsSetBack", []Ability{StepBack}, versionsGrowAcrossClock},
	{"VersionsGrowAcrossLoss", []Ability{Lose}, versionsGrowAcrossLoss},
	{"VersionsGrowAcrossRollBack", []Ability{RollBack}, versionsGrowAcrossRollBack},
}

// grows gives a function that fails unless each version is greater than the one before.
func (e *env) grows() func(int64) {
	last := int64(0)
	return func(v int64) {
		e.Helper()
		if v <= last {
			e.Fatalf("version %d after %d", v, last)
		}
		last = v
	}
}

func versionsGrow(e *env) {
	h := e.lasting()
	next := e.grows()
	for i := range 50 {
		if i%2 == 0 {
			next(e.put(h, "k", "same"))
		} else {
			next(e.bind(h, "k"))
		}
	}
}

func versionsGrowAcrossDeletion(e *env) {
	h := e.lasting()
	next := e.grows()
	for range 20 {
		next(e.put(h, "k", "v"))
		next(e.put(h, "k", "v"))
		e.must(h, backends.Txn{Deletes: []string{"k"}})
		e.renew(h, backends.RenewRequest{Sweep: true})
	}
}

func versionsGrowAcrossSessions(e *env) {
	h := e.session()
	next := e.grows()
	for range 5 {
		short := e.session()
		next(e.bind(short, "k"))
		if err := short.Close(e.ctx); err != nil {
			e.Fatal(err)
		}
		e.renew(h, backends.RenewRequest{Sweep: true})
	}
	short := e.session()
	next(e.bind(short, "k"))
	e.expire(short, h)
	e.renew(h, backends.RenewRequest{Sweep: true})
	next(e.bind(h, "k"))
}

// versionsGrowAcrossWriters lets writers wait for each other at one key: each sees a version above all that it saw before,
// and no version is given twice.
func versionsGrowAcrossWriters(e *env) {
	const writers, puts = 6, 15
	var mu sync.Mutex
	seen := map[int64]bool{}
	var wg sync.WaitGroup
	for range writers {
		h := e.lasting()
		wg.Go(func() {
			last := int64(0)
			for range puts {
				r, err := h.Commit(e.ctx, backends.CommitRequest{Incarnation: h.Opened().Incarnation,
					Txns: []backends.Txn{{Puts: []backends.Put{{Key: "k"}}}}})
				if err != nil || r.Results[0].Err != nil {
					e.Errorf("commit: %v, %+v", err, r.Results)
					return
				}
				v := r.Results[0].Versions["k"]
				mu.Lock()
				if v <= last || seen[v] {
					e.Errorf("version %d after %d, or given twice", v, last)
				}
				seen[v] = true
				mu.Unlock()
				last = v
				if _, err := h.Renew(e.ctx, backends.RenewRequest{Incarnation: h.Opened().Incarnation}); err != nil {
					e.Errorf("renewal: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func versionsGrowAcrossClock(e *env) {
	h := e.lasting()
	next := e.grows()
	next(e.put(h, "k", "v"))
	e.place.StepBack(e.T, time.Minute)
	next(e.put(h, "k", "v"))
	e.must(h, backends.Txn{Deletes: []string{"k"}})
	e.place.StepBack(e.T, time.Minute)
	next(e.put(h, "k", "v"))
	e.bind(h, "bound")
	short := e.lasting()
	bound := e.bind(short, "bound")
	if err := short.Close(e.ctx); err != nil {
		e.Fatal(err)
	}
	e.place.StepBack(e.T, time.Minute)
	if again := e.bind(h, "bound"); again <= bound {
		e.Fatalf("version %d after %d of a session that ended", again, bound)
	}
}

func versionsGrowAcrossLoss(e *env) {
	next := e.grows()
	for range 3 {
		h := e.lasting()
		for range 20 {
			next(e.put(h, "k", "v"))
		}
		e.place.Lose(e.T)
	}
	next(e.put(e.lasting(), "k", "v"))
}

func versionsGrowAcrossRollBack(e *env) {
	h := e.lasting()
	next := e.grows()
	next(e.put(h, "k", "v"))
	restore := e.place.RollBack(e.T)
	for range 20 {
		next(e.put(h, "k", "v"))
	}
	restore(e.T)
	next(e.put(e.lasting(), "k", "v"))
}
