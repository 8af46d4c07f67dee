package admin

import (
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
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
