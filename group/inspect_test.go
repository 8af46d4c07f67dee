package group

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/rebalancer-go/rebalancer/backends"
)

// advised is a store that says something about its set-up.
type advised struct {
	backends.Store
	said func() ([]string, error)
}

func (a advised) Version(context.Context) (string, error)    { return "test 1", nil }
func (a advised) Warnings(context.Context) ([]string, error) { return a.said() }

func TestWarningsOfTheStore(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		cfg := w.config("a", "q")
		cfg.Store = advised{cfg.Store, func() ([]string, error) { return []string{"unsafe under failover"}, nil }}
		r := w.start(cfg, nil)
		r.wait("the warning", func(s Status) bool { return slices.Equal(s.Warnings, []string{"unsafe under failover"}) })
		w.idle()
		synctest.Wait() // the event comes after the status
		if e, ok := w.event("a", KindStore); !ok || e.Reason != "unsafe under failover" {
			t.Errorf("event: %+v", e)
		}
		_ = r.end()
	})
}

func TestWarningsThatCannotBeHad(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		cfg := w.config("a", "q")
		cfg.Store = advised{cfg.Store, func() ([]string, error) { return nil, errors.New("not allowed") }}
		r := w.start(cfg, nil)
		r.holds("q")
		w.idle()
		if e, ok := w.event("a", KindStore); ok || r.Status().Warnings != nil {
			t.Errorf("event: %+v", e)
		}
		_ = r.end()
	})
}
