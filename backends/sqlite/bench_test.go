package sqlite

import (
	"testing"

	"github.com/rebalancer-go/rebalancer/backends/storetest"
)

func BenchmarkStore(b *testing.B) { storetest.Benchmark(b, openStore(b, tempPath(b))) }
