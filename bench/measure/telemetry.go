package measure

import (
	"fmt"
	"runtime"
	"slices"
	"time"

	meters "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	spans "go.opentelemetry.io/otel/trace/noop"

	"github.com/rebalancer-go/rebalancer/group"
	"github.com/rebalancer-go/rebalancer/telemetry"
)

// Telemetries are ways to watch a group. The first is none.
func Telemetries() []Setting {
	with := func(tc telemetry.Config) func(*group.Config) {
		return func(c *group.Config) { *c = telemetry.Instrument(*c, tc) }
	}
	sdkMeters := func() *metric.MeterProvider {
		return metric.NewMeterProvider(metric.WithReader(metric.NewManualReader()))
	}
	traces := func(part float64) *sdk.TracerProvider {
		return sdk.NewTracerProvider(sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(part))))
	}
	return []Setting{
		{Name: "none", Config: func(*group.Config) {}},
		{Name: "off: no SDK", Config: with(telemetry.Config{Meters: meters.NewMeterProvider(), Provider: spans.NewTracerProvider()})},
		{Name: "metrics", Config: with(telemetry.Config{Meters: sdkMeters(), Provider: spans.NewTracerProvider()})},
		{Name: "metrics and traces, 1 % sampled", Config: with(telemetry.Config{Meters: sdkMeters(), Provider: traces(0.01)})},
		{Name: "metrics and traces, all sampled", Config: with(telemetry.Config{Meters: sdkMeters(), Provider: traces(1)})},
	}
}

// Watched measures each of Telemetries beside none, in turns, with a handler that computes for about as long as work. In the results, Hop is the
// time of a message without telemetry, and Ratio is against that.
func Watched(work time.Duration, rounds, n int) ([]Ratio, error) {
	settings := Telemetries()
	busy := spinner(work)
	times, ratios, allocs := make([][]float64, len(settings)), make([][]float64, len(settings)), make([][]float64, len(settings))
	for range rounds {
		var none float64
		for i, s := range settings {
			s.Work = busy
			runtime.GC()
			c, err := Runtime(s, n)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.Name, err)
			}
			if i == 0 {
				none = float64(c.Time)
			}
			times[i], ratios[i], allocs[i] = append(times[i], float64(c.Time)), append(ratios[i], float64(c.Time)/none), append(allocs[i], c.Allocs)
		}
	}
	out := make([]Ratio, len(settings))
	for i, s := range settings {
		out[i] = Ratio{
			Setting: s, Hop: time.Duration(median(times[0])), Message: time.Duration(median(times[i])),
			Ratio: median(ratios[i]), Low: slices.Min(ratios[i]), High: slices.Max(ratios[i]), Allocs: median(allocs[i]),
		}
	}
	return out, nil
}

// spinner is a function that computes for about so long; nil for no time.
func spinner(work time.Duration) func() {
	if work <= 0 {
		return nil
	}
	turns := 1000
	spin := func() {
		x := uint64(1)
		for range turns {
			x = x*6364136223846793005 + 1
		}
		runtime.KeepAlive(x)
	}
	for range 5 { // the processor's frequency and others who use it change: it need not be exact
		began := time.Now()
		for range 200 {
			spin()
		}
		each := max(time.Since(began)/200, 1)
		turns = max(int(float64(turns)*float64(work)/float64(each)), 1)
	}
	return spin
}
