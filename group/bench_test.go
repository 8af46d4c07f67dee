package group

import (
	"context"
	"strconv"
	"testing"

	"github.com/rebalancer-go/rebalancer"
	smem "github.com/rebalancer-go/rebalancer/backends/memory"
	"github.com/rebalancer-go/rebalancer/sources"
	"github.com/rebalancer-go/rebalancer/sources/memory"
)

// BenchmarkHop is the measure: one message over an unbuffered channel.
func BenchmarkHop(b *testing.B) {
	ch := make(chan *rebalancer.Message)
	go func() {
		m := &rebalancer.Message{}
		for range b.N {
			ch <- m
		}
		close(ch)
	}()
	for range ch {
	}
}

// endless is a source that costs nothing: what is left is the runtime.
type endless struct{ *memory.Source }

type endlessReader struct{ ring []*rebalancer.Message }

func (endless) Open(context.Context, *rebalancer.Claim) (sources.Reader, error) {
	r := &endlessReader{ring: make([]*rebalancer.Message, 256)}
	for i := range r.ring {
		r.ring[i] = &rebalancer.Message{ID: strconv.Itoa(i), Body: []byte("x")}
	}
	return r, nil
}

func (r *endlessReader) Fetch(ctx context.Context, most int) ([]*rebalancer.Message, error) {
	return r.ring[:min(most, len(r.ring))], ctx.Err()
}
func (r *endlessReader) Settle(context.Context, []sources.Settlement) error { return nil }
func (r *endlessReader) Close(context.Context) error                        { return nil }

func benchmarkConsume(b *testing.B, src sources.Source, send func(), change func(*Config)) {
	cfg := Config{Name: "g", Node: "a", Store: smem.New(), Source: src, Resources: Static("q"), Logger: quiet()}
	if change != nil {
		change(&cfg)
	}
	g, err := New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	send()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	n := 0
	started := make(chan struct{})
	go func() {
		_ = g.Consume(ctx, func(context.Context, *rebalancer.Message) error {
			if n == 0 {
				close(started)
				b.ResetTimer()
			}
			if n++; n == b.N {
				b.StopTimer()
				cancel()
			}
			return nil
		})
		close(done)
	}()
	<-done
}

func BenchmarkRuntimeAlone(b *testing.B) {
	b.ReportAllocs()
	benchmarkConsume(b, endless{memory.New()}, func() {}, nil)
}

// BenchmarkMemorySource has a queue that is never long, so that it measures no cold memory; the sender's cost is in it.
func BenchmarkMemorySource(b *testing.B) {
	b.ReportAllocs()
	src := memory.New()
	bodies := make([]string, 1024)
	benchmarkConsume(b, src, func() { _ = src.Send("q", bodies...) }, func(c *Config) {
		n := 0
		more := func() {
			if n++; n%512 == 0 {
				_ = src.Send("q", bodies[:512]...)
			}
		}
		c.Source = refilled{src, more}
	})
}

// refilled calls more for each message that was fetched.
type refilled struct {
	*memory.Source
	more func()
}

func (s refilled) Open(ctx context.Context, c *rebalancer.Claim) (sources.Reader, error) {
	r, err := s.Source.Open(ctx, c)
	return refilledReader{r, s.more}, err
}

type refilledReader struct {
	sources.Reader
	more func()
}

func (r refilledReader) Fetch(ctx context.Context, most int) ([]*rebalancer.Message, error) {
	ms, err := r.Reader.Fetch(ctx, most)
	for range ms {
		r.more()
	}
	return ms, err
}

func BenchmarkSlots(b *testing.B) {
	b.ReportAllocs()
	benchmarkConsume(b, endless{memory.New()}, func() {}, func(c *Config) { c.MaxConcurrency = 1 })
}
