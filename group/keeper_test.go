package group

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources"
	"github.com/rebalancer-go/rebalancer/sources/memory"
)

// moody is a source whose Fetch fails for as long as there is an error to fail with, and whose readers may be worth keeping.
type moody struct {
	*memory.Source
	fails  atomic.Pointer[error]
	once   atomic.Bool // and only once
	keeps  atomic.Bool
	opened atomic.Int32
	failed atomic.Int32
}

func (m *moody) Open(ctx context.Context, c *rebalancer.Claim) (sources.Reader, error) {
	m.opened.Add(1)
	r, err := m.Source.Open(ctx, c)
	return moodyReader{r, m}, err
}

type moodyReader struct {
	sources.Reader
	m *moody
}

func (r moodyReader) Keep() bool { return r.m.keeps.Load() }

func (r moodyReader) Fetch(ctx context.Context, most int) ([]*rebalancer.Message, error) {
	if err := r.m.fails.Load(); err != nil {
		if r.m.once.Load() {
			r.m.fails.Store(nil)
		}
		r.m.failed.Add(1)
		return nil, *err
	}
	return r.Reader.Fetch(ctx, most)
}

var errMood = errors.New("trouble that the reader gets over")

// TestReaderThatKeepsIsNotOpenedAgain: whatever number of fetches fail; once it keeps nothing more, it is.
func TestReaderThatKeepsIsNotOpenedAgain(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		m := &moody{Source: w.source}
		m.keeps.Store(true)
		cfg := w.config("a", "q")
		cfg.Source = m
		r := w.start(cfg, nil)
		r.holds("q")
		_ = w.source.Send("q", "1") // ends the fetch that runs
		w.idle()
		err := errMood
		m.fails.Store(&err)
		_ = w.source.Send("q", "2")
		time.Sleep(time.Minute)
		_ = w.source.Send("q", "3")
		time.Sleep(10 * time.Minute)
		if n := m.opened.Load(); n != 1 {
			t.Errorf("opened %d times although it keeps what it has", n)
		}
		if n := m.failed.Load(); n < 100 {
			t.Errorf("fetched %d times in 10 minutes: what it has waits", n)
		}
		if ev, ok := w.event("a", KindSource); !ok || !errors.Is(ev.Err, errMood) {
			t.Error("not reported")
		}
		m.keeps.Store(false)
		time.Sleep(time.Minute)
		if n := m.opened.Load(); n < 2 {
			t.Error("not opened again although it keeps nothing")
		}
		m.fails.Store(nil)
		w.idle()
		_ = r.end()
		if got := w.bodies("q"); !slices.Equal(got, []string{"1", "2", "3"}) {
			t.Errorf("worked %q", got)
		}
	})
}

// TestTroubleWhileABatchFills: a source may tell it only once; it is reported, and the recovery too.
func TestTroubleWhileABatchFills(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		m := &moody{Source: w.source}
		cfg := w.config("a", "q")
		cfg.Source, cfg.BatchSize, cfg.BatchWait = m, 3, time.Minute
		_ = w.source.Send("q", "1", "2")
		r := w.startBatch(cfg, func(_ context.Context, ms []*rebalancer.Message) error {
			for _, x := range ms {
				w.note("a", x)
			}
			return nil
		})
		time.Sleep(30 * time.Second) // the batch waits for a third, in a Fetch that brings none
		if n := len(w.bodies("q")); n != 0 {
			t.Fatalf("%d worked already", n)
		}
		err := errMood
		m.once.Store(true)
		m.fails.Store(&err)
		_ = w.source.Send("q", "3", "4") // the batch is complete; the next fetch tells
		time.Sleep(time.Second)
		m.fails.Store(&err)
		_ = w.source.Send("q", "5") // which is no full batch: the fetch that fills it tells
		w.idle()
		time.Sleep(2 * time.Minute)
		_ = w.source.Send("q", "6")
		w.idle()
		_ = r.end()
		told, recovered := 0, 0
		for _, k := range w.kinds("a") {
			switch k {
			case KindSource:
				told++
			case KindRecovered:
				recovered++
			}
		}
		if told != 2 || recovered != 2 || m.failed.Load() != 2 {
			t.Errorf("%d troubles, %d told, %d recoveries", m.failed.Load(), told, recovered)
		}
	})
}

// TestParkedIsBounded: where a receive costs an attempt, an outage of what handlers need takes few messages.
func TestParkedIsBounded(t *testing.T) {
	for concurrency, most := range map[int]int{2: leastParked + 2, 20: 20*parkedEach + 20} {
		t.Run(fmt.Sprint(concurrency), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				for range 300 {
					_ = w.source.Send("q", "x")
				}
				cfg := w.config("a", "q")
				cfg.Concurrency = concurrency
				cfg.Source = frugal{w.source, new(atomic.Int32)}
				cfg.Retry = Retry{Min: time.Hour, Max: time.Hour, Attempts: -1}
				down := atomic.Bool{}
				down.Store(true)
				r := w.start(cfg, func(context.Context, *rebalancer.Message) error {
					if down.Load() {
						return errBad
					}
					return nil
				})
				time.Sleep(time.Minute)
				if n := w.source.Counts("q").InFlight; n < concurrency || n > most {
					t.Errorf("%d in hand for %d handlers, want %d at most", n, concurrency, most)
				}
				down.Store(false)
				w.idleWithin(10 * time.Hour)
				_ = r.end()
			})
		})
	}
}
