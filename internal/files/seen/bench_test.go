package seen

import (
	"context"
	"crypto/sha256"
	"fmt"
	"runtime"
	"testing"

	"github.com/rebalancer-go/rebalancer/internal/checkpointtest"
)

// full is a resource with as many names as one can have. random: names that ascend in no order, as with a UUID in them.
func full(tb testing.TB, random bool) (*checkpointtest.Store, []Settlement) {
	tb.Helper()
	all := numbered(0, MaxNames)
	if random {
		for i := range all {
			all[i].Name = fmt.Sprintf("%x.csv", sha256.Sum256([]byte(all[i].Name)))[:40]
		}
	}
	store := checkpointtest.New()
	s := open1(tb, store)
	for i := 0; i < len(all); i += 20_000 {
		settle(tb, s, all[i:i+20_000]...)
	}
	return store, all
}

func kinds(b *testing.B, f func(b *testing.B, store *checkpointtest.Store, all []Settlement)) {
	for _, random := range []bool{false, true} {
		store, all := full(b, random)
		b.Run(fmt.Sprintf("random=%v", random), func(b *testing.B) { f(b, store, all) })
	}
}

// BenchmarkOpen reads 200,000 names, and tells what they take in memory and in the store.
func BenchmarkOpen(b *testing.B) {
	kinds(b, func(b *testing.B, store *checkpointtest.Store, _ []Settlement) {
		values := store.Values()
		size := 0
		for _, v := range values {
			size += len(v)
		}
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		s := open1(b, store)
		runtime.GC()
		runtime.ReadMemStats(&after)
		for b.Loop() {
			s = open1(b, store)
		}
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(s.Len()), "B/name")
		b.ReportMetric(float64(size)/float64(s.Len()), "stored-B/name")
		b.ReportMetric(float64(len(s.leaves)), "chunks")
		b.ReportMetric(float64(len(values[keyHead])), "head-B")
	})
}

// BenchmarkListing is a listing of 200,000 names that were all worked, in order and in none; per name.
func BenchmarkListing(b *testing.B) {
	kinds(b, func(b *testing.B, store *checkpointtest.Store, all []Settlement) {
		s := open1(b, store)
		for b.Loop() {
			l := s.Begin()
			for i := range all {
				if _, known, _ := l.Saw(all[i].Name); !known {
					b.Fatal(all[i].Name)
				}
			}
			if err := l.Complete(context.Background(), nil); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(all)), "ns/name")
	})
}

// BenchmarkSettle settles files of a full resource again, 100 at once; per batch.
func BenchmarkSettle(b *testing.B) {
	kinds(b, func(b *testing.B, store *checkpointtest.Store, all []Settlement) {
		s := open1(b, store)
		writes, bytes := store.Saves()
		at := 0
		for b.Loop() {
			settle(b, s, all[at:at+100]...)
			at = (at + 100) % len(all)
		}
		w, by := store.Saves()
		b.ReportMetric(float64(w-writes)/float64(b.N), "writes/op")
		b.ReportMetric(float64(by-bytes)/float64(b.N*100), "stored-B/file")
	})
}
