package figures

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/backends/sqlite"
	"github.com/rebalancer-go/rebalancer/internal/waittest"
)

// files opens the file anew for each session, so that nodes share no more than processes do.
type files struct {
	backends.Store
	t    *testing.T
	path string
}

func (f *files) Open(ctx context.Context, o backends.SessionOptions) (backends.Session, error) {
	s, err := sqlite.Open(f.path)
	if err != nil {
		return nil, err
	}
	f.t.Cleanup(func() { _ = s.Close() })
	return s.Open(ctx, o)
}

// TestSQLite: a node leaves and another one crashes, over one file and in real time. Everything is owned once afterwards;
// how long it took is logged, and bounded only by what a busy machine can take.
func TestSQLite(t *testing.T) {
	t.Parallel()
	modes(t, func(t *testing.T, global bool) {
		f := newFleetOver(t, &files{t: t, path: filepath.Join(t.TempDir(), "group.db")}, 60, global)
		f.ttl, f.realTime = 3*time.Second, true
		all := []string{"a", "b", "c", "d"}
		f.start(all...)
		f.balanced(all...)
		leaver := f.coordinator()
		f.send(20000)
		waittest.Until(t, "every resource is worked", func() bool { return f.workedWithout("") })
		mine := f.heldBy(leaver)
		began := time.Now()
		f.nodes[leaver].stop()
		all = slices.DeleteFunc(all, func(n string) bool { return n == leaver })
		f.balanced(all...)
		waittest.Until(t, "the others work every resource", func() bool { return f.workedWithout(leaver) })
		f.logIdle("leave of the coordinator", mine, began)

		victim := all[0]
		mine = f.heldBy(victim)
		began = time.Now()
		f.calls.cut(victim)
		f.source.kill(victim)
		rest := all[1:]
		f.balanced(rest...)
		waittest.Until(t, "the others work every resource", func() bool { return f.workedWithout(victim) })
		f.logIdle("crash", mine, began)
		for _, r := range f.resources {
			hs := f.source.of(r)
			if now := hs[len(hs)-1]; !slices.Contains(rest, now.node) {
				t.Errorf("%s is held by %s", r, now.node)
			}
		}
		f.end()
		f.noWholeGroup()
	})
}

// workedWithout tells whether a message of every resource was settled under a claim that is not of the node that is gone.
func (f *fleet) workedWithout(gone string) bool {
	for _, r := range f.resources {
		hs := f.source.of(r)
		if n := len(hs); n == 0 || hs[n-1].node == gone || hs[n-1].lastSettled.IsZero() {
			return false
		}
	}
	return true
}

// logIdle logs how long resources that moved stood still, and how soon after began all were fetched again.
func (f *fleet) logIdle(what string, moved map[string]hold, began time.Time) {
	var idle []time.Duration
	last := began
	for r := range moved {
		hs := f.source.of(r)
		now := hs[len(hs)-1]
		idle = append(idle, now.firstFetch.Sub(hs[len(hs)-2].lastSettled))
		if now.firstFetch.After(last) {
			last = now.firstFetch
		}
	}
	slices.Sort(idle)
	f.t.Logf("%s: %d resources moved, idle for %v (least) %v (median) %v (worst); all fetched again after %v (ttl %v)", what, len(idle),
		idle[0].Round(time.Millisecond), idle[len(idle)/2].Round(time.Millisecond), idle[len(idle)-1].Round(time.Millisecond),
		last.Sub(began).Round(time.Millisecond), f.ttl)
}
