package measure

import (
	"testing"
	"time"
)

// BenchmarkTelemetry is for profiles: each way to watch, with a handler that does nothing.
func BenchmarkTelemetry(b *testing.B) {
	for _, s := range Telemetries() {
		b.Run(s.Name, func(b *testing.B) {
			c, err := Runtime(s, b.N)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(c.Time), "ns/message")
			b.ReportMetric(c.Allocs, "allocs/message")
		})
	}
}

// TestWatched: what is measured of a message allocates nothing much, and every way to watch is measured. With -v it says what each costs.
func TestWatched(t *testing.T) {
	for _, work := range []time.Duration{0, 20 * time.Microsecond} {
		costs, err := Watched(work, 3, 10_000)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range costs {
			t.Logf("handler %v, %s: %v, ratio %.3f (%.3f to %.3f), %.2f allocations", work, c.Name, c.Message, c.Ratio, c.Low, c.High, c.Allocs)
			if c.Message <= 0 || c.Ratio <= 0 {
				t.Errorf("%s was not measured", c.Name)
			}
		}
	}
}
