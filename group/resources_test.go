package group

import (
	"context"
	"slices"
	"testing"
	"time"
)

func TestDiscover(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		list, broken := []string{"x", "y"}, false
		cfg := w.config("a")
		cfg.Resources = Discover(time.Minute, func(context.Context) ([]string, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			if broken {
				panic("oh no")
			}
			if list == nil {
				return nil, errBad
			}
			return slices.Clone(list), nil
		})
		r := w.start(cfg, nil)
		r.holds("x", "y")
		set := func(names ...string) { w.mu.Lock(); list = names; w.mu.Unlock() }
		set()
		time.Sleep(10 * time.Minute)
		r.holds("x", "y")
		set("x", "y", "z")
		r.holds("x", "y", "z")
		w.mu.Lock()
		broken = true
		w.mu.Unlock()
		time.Sleep(10 * time.Minute)
		r.holds("x", "y", "z")
		w.mu.Lock()
		broken = false
		w.mu.Unlock()
		set("x", "y", "z", "")
		time.Sleep(10 * time.Minute)
		r.holds("x", "y", "z")
		if _, ok := w.event("a", KindResources); !ok {
			t.Fatal("not reported")
		}
		_ = r.end()
	})
}
