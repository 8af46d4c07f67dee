package measure

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/rebalancer-go/rebalancer"
	stores "github.com/rebalancer-go/rebalancer/backends/memory"
	"github.com/rebalancer-go/rebalancer/group"
	"github.com/rebalancer-go/rebalancer/sources"
	"github.com/rebalancer-go/rebalancer/sources/memory"
)

// Hop passes n messages over an unbuffered channel from one goroutine to another, and returns the time for one.
func Hop(n int) time.Duration {
	ch := make(chan *rebalancer.Message)
	began := time.Now()
	go func() {
		m := &rebalancer.Message{}
		for range n {
			ch <- m
		}
		close(ch)
	}()
	for range ch {
	}
	return time.Since(began) / time.Duration(n)
}

// Setting is one way to use the runtime.
type Setting struct {
	Name  string
	Batch bool // ConsumeBatch
	// Memory: the messages come from the memory source rather than from one that costs nothing. The time of that source is
	// then measured too, that of the sender is not.
	Memory bool
	// Required: the bounds of the design hold for it.
	Required bool
	Config   func(*group.Config)
	// Work is what the handler does with a message; nil for nothing.
	Work func()
}

// Settings are those that the table shows.
func Settings() []Setting {
	none := func(*group.Config) {}
	return []Setting{
		{Name: "one handler, in order", Required: true, Config: none},
		{Name: "the same, memory source", Memory: true, Required: true, Config: none},
		{Name: "ConsumeBatch, 100 at once", Batch: true, Required: true, Config: none},
		{Name: "MaxConcurrency 4", Config: func(c *group.Config) { c.MaxConcurrency = 4 }},
		{Name: "Concurrency 8, 64 keys", Config: func(c *group.Config) { c.Concurrency = 8 }},
		{Name: "Concurrency 8, no keys", Config: func(c *group.Config) {
			c.Concurrency, c.Key = 8, func(*rebalancer.Message) string { return "" }
		}},
		{Name: "Timeout 1 min", Config: func(c *group.Config) { c.Timeout = time.Minute }},
	}
}

// Cost is what the runtime adds to one message.
type Cost struct {
	Time   time.Duration
	Allocs float64
}

// Runtime has n messages with a Body consumed by a handler that does nothing. Start and end of the group are left out.
func Runtime(s Setting, n int) (Cost, error) {
	n = max(n, 4*warm)
	src, err := sourceOf(s, n)
	if err != nil {
		return Cost{}, err
	}
	cfg := group.Config{
		Name: "bench", Node: "a", Store: stores.New(), Source: src, Resources: group.Static("q"),
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	s.Config(&cfg)
	g, err := group.New(cfg)
	if err != nil {
		return Cost{}, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c := newCounter(n, cancel)
	work := s.Work
	if work == nil {
		work = func() {}
	}
	if s.Batch {
		err = g.ConsumeBatch(ctx, func(_ context.Context, ms []*rebalancer.Message) error { c.add(len(ms)); return nil })
	} else {
		err = g.Consume(ctx, func(context.Context, *rebalancer.Message) error { work(); c.add(1); return nil })
	}
	return c.cost(), err
}

func sourceOf(s Setting, n int) (sources.Source, error) {
	if !s.Memory {
		return endless{memory.New()}, nil
	}
	src := memory.New()
	return src, src.Send("q", make([]string, n+warm)...)
}

// endless is a source without a cost of its own.
type endless struct{ *memory.Source }

type ring []*rebalancer.Message

func (endless) Open(context.Context, *rebalancer.Claim) (sources.Reader, error) {
	r := make(ring, 256)
	for i := range r {
		r[i] = &rebalancer.Message{ID: strconv.Itoa(i), Key: strconv.Itoa(i % 64), Body: []byte("x")}
	}
	return r, nil
}

func (r ring) Fetch(ctx context.Context, most int) ([]*rebalancer.Message, error) {
	return r[:min(most, len(r))], ctx.Err()
}
func (r ring) Settle(context.Context, []sources.Settlement) error { return nil }
func (r ring) Close(context.Context) error                        { return nil }

// Ratio is a cost beside that of a hop.
type Ratio struct {
	Setting
	Hop, Message time.Duration // medians
	Ratio        float64       // median of the rounds' ratios
	Low, High    float64       // of the rounds
	Allocs       float64       // per message, the median
}

// Compare measures a setting and the hop in turns, and takes medians.
func Compare(s Setting, rounds, n int) (Ratio, error) {
	var hops, times, ratios, allocs []float64
	for range rounds {
		runtime.GC()
		h := Hop(n)
		runtime.GC()
		c, err := Runtime(s, n)
		if err != nil {
			return Ratio{}, fmt.Errorf("%s: %w", s.Name, err)
		}
		hops, times = append(hops, float64(h)), append(times, float64(c.Time))
		ratios, allocs = append(ratios, float64(c.Time)/float64(h)), append(allocs, c.Allocs)
	}
	return Ratio{
		Setting: s, Hop: time.Duration(median(hops)), Message: time.Duration(median(times)),
		Ratio: median(ratios), Low: slices.Min(ratios), High: slices.Max(ratios), Allocs: median(allocs),
	}, nil
}

func median(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	return x[len(x)/2]
}
