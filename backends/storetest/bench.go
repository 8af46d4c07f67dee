package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
)

// Benchmark measures what a group does most: renewals, and commits of 1 and of 100 transactions.
func Benchmark(b *testing.B, s backends.Store) {
	h, err := s.Open(b.Context(), backends.SessionOptions{Group: group, TTL: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	inc := h.Opened().Incarnation
	b.Run("Renew", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := h.Renew(b.Context(), backends.RenewRequest{Incarnation: inc, Keys: []string{"k0", "k1"}}); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, n := range []int{1, 100} {
		var txns []backends.Txn
		for i := range n {
			txns = append(txns, backends.Txn{Puts: []backends.Put{{Key: fmt.Sprintf("k%d", i), Value: []byte("value"), Bound: true}}})
		}
		b.Run(fmt.Sprintf("Commit%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := h.Commit(b.Context(), backends.CommitRequest{Incarnation: inc, Txns: txns}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
