package files

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources"
)

// TestSourceCloses: all Readers at the same time; a settlement that takes longer than a minute is broken off, and nothing opens any more.
func TestSourceCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all Readers[*fake]
		opt := Options{StableFor: -1, Success: "done"}
		if err := opt.Complete(); err != nil {
			t.Fatal(err)
		}
		settled := make(chan error, 3)
		for i, takes := range []time.Duration{time.Second, 50 * time.Second, time.Hour} {
			p := newFake()
			p.put("a", "body")
			p.hang = takes
			r, err := all.Open(p, opt, &rebalancer.Claim{Resource: fmt.Sprint(i)})
			if err != nil {
				t.Fatal(err)
			}
			ms, _ := fetch(t, r.(*Reader), 1)
			go func() { settled <- r.Settle(context.Background(), settlements(sources.Done, ms...)) }()
		}
		synctest.Wait()
		start := time.Now()
		err := all.Close()
		if took := time.Since(start); took != closing || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("closed after %v: %v", took, err)
		}
		failed := 0
		for range 3 {
			if <-settled != nil {
				failed++
			}
		}
		if failed != 1 {
			t.Errorf("%d settlements were broken off, want the one that takes an hour", failed)
		}
		if _, err := all.Open(newFake(), opt, &rebalancer.Claim{Resource: "late"}); !errors.Is(err, sources.ErrClosed) || !all.Closed() {
			t.Errorf("Open afterwards: %v", err)
		}
	})
}
