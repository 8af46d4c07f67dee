package memory_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/backends/memory"
	"github.com/rebalancer-go/rebalancer/backends/storetest"
)

func BenchmarkStore(b *testing.B) { storetest.Benchmark(b, memory.New()) }

// A renewal that asks for a small prefix of a group of 10,000 keys.
func BenchmarkRenewInABigGroup(b *testing.B) {
	h, err := memory.New().Open(b.Context(), backends.SessionOptions{Group: "g", TTL: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	inc := h.Opened().Incarnation
	var txns []backends.Txn
	for i := range 10_000 {
		txns = append(txns, backends.Txn{Puts: []backends.Put{{Key: fmt.Sprintf("claim/%d", i)}}})
	}
	txns = append(txns, backends.Txn{Puts: []backends.Put{{Key: "member/1"}, {Key: "member/2"}}})
	if _, err := h.Commit(b.Context(), backends.CommitRequest{Incarnation: inc, Txns: txns}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := h.Renew(b.Context(), backends.RenewRequest{Incarnation: inc, Digests: []string{"member/"}}); err != nil {
			b.Fatal(err)
		}
	}
}
