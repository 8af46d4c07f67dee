package admin

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/backends/memory"
	"github.com/rebalancer-go/rebalancer/coord"
)

// session is one at the group g that outlives the test.
func session(t *testing.T, store backends.Store) backends.Session {
	t.Helper()
	s, err := store.Open(t.Context(), backends.SessionOptions{Group: "g", TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// operation is one on names, such as Drain.
type operation func(ctx context.Context, store backends.Store, group string, names ...string) ([]string, error)

// controlAt is what stands at a key, nil for nothing.
func controlAt(t *testing.T, s backends.Session, key string) *coord.Control {
	t.Helper()
	r, err := s.Read(t.Context(), backends.ReadRequest{Keys: []string{key}})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Entries) == 0 {
		return nil
	}
	c, err := coord.DecodeControl(r.Entries[0].Value)
	if err != nil {
		t.Fatal(err)
	}
	return &c
}

// inGroup runs f in virtual time with a store in which the group g was created.
func inGroup(t *testing.T, set Settings, f func(t *testing.T, store *memory.Store)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		if _, err := Create(t.Context(), store, "g", set); err != nil {
			t.Fatal(err)
		}
		f(t, store)
	})
}

// settledAfter describes the group g once it had time to rebalance, in virtual time.
func settledAfter(t *testing.T, store backends.Store) Description {
	t.Helper()
	time.Sleep(20 * time.Second)
	d, err := Describe(t.Context(), store, "g")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// named is a resource of a description, the zero Resource when it is not there.
func named(d Description, name string) Resource {
	for _, r := range d.Resources {
		if r.Name == name {
			return r
		}
	}
	return Resource{}
}
