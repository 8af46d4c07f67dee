package measure

import (
	"testing"

	"github.com/rebalancer-go/rebalancer/coord"
)

func BenchmarkHop(b *testing.B) { Hop(b.N) }

func BenchmarkMessage(b *testing.B) {
	for _, s := range Settings() {
		b.Run(s.Name, func(b *testing.B) {
			c, err := Runtime(s, b.N)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(c.Time), "ns/message")
			b.ReportMetric(c.Allocs, "allocs/message")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func TestMachine(t *testing.T) {
	for _, mode := range []coord.Mode{coord.ResourceBarrier, coord.GlobalBarrier} {
		for _, n := range []int{100, 1000, 10000} {
			phases, err := Machine(mode, n)
			for _, p := range phases {
				t.Logf("%s %d: %-22s %6d steps, total %12v, longest %10v, %8.1f round trips", mode, n, p.Name, p.Count, p.Total, p.Longest, p.Trips)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// What a resource costs must not grow with their number: here by much less than the tenfold of a square.
func TestMachineIsLinear(t *testing.T) {
	for _, mode := range []coord.Mode{coord.ResourceBarrier, coord.GlobalBarrier} {
		small, err := Machine(mode, 2000)
		if err != nil {
			t.Fatal(err)
		}
		large, err := Machine(mode, 20000)
		if err != nil {
			t.Fatal(err)
		}
		for i := range small {
			if small[i].Moved == 0 {
				continue
			}
			ratio := float64(large[i].Total) / float64(small[i].Total)
			t.Logf("%s, %s: %v with 2,000, %v with 20,000 resources: %.1f times", mode, small[i].Name, small[i].Total, large[i].Total, ratio)
			if ratio > 60 {
				t.Errorf("%s, %s: ten times the resources cost %.1f times as much", mode, small[i].Name, ratio)
			}
		}
	}
}
