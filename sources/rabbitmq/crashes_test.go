//go:build linux

package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/internal/waittest"
	"github.com/rebalancer-go/rebalancer/sources"
)

// TestPartitionsSurviveCrashes fails each command before each of its requests, again and again, while publishers publish and a group works. Repeated,
// each ends what was begun, and no key is ever out of order.
func TestPartitionsSurviveCrashes(t *testing.T) {
	t.Parallel()
	everywhere(t, partitioned, func(t *testing.T, b *bench, k kind) {
		crashing := errors.New("crashed here")
		attempts := 0
		attempt := func(step int, f func(*Partitions) error) bool {
			attempts++
			p := b.partitions(func(c *PartitionsConfig) { k.of(c); c.Wait = attempts%3 == 0 })
			n := 0
			p.fail = func() error {
				if n++; n > step {
					return crashing
				}
				return nil
			}
			err := f(p)
			if err != nil && !errors.Is(err, crashing) {
				t.Fatal(err)
			}
			must(t, p.Close()) // as by a crash, the lock goes with the connection
			return err == nil
		}
		whole := func(f func(*Partitions) error) {
			if !attempt(1<<30, f) {
				t.Fatal("not done")
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		create := func(p *Partitions) error { return p.Create(ctx, 2) }
		for step := 0; !attempt(step, create); step++ {
		}
		w := newTraffic(t, b)
		grow := func(p *Partitions) error { return p.Grow(ctx, 3) }
		shrink := func(p *Partitions) error { return p.Shrink(ctx, 2) }
		every := 4
		if k.quorum() || b.r.Version < 4 {
			every = 9 // the steps are the same everywhere
		}
		for step := 0; !attempt(step, grow); step += every {
			whole(grow)
			whole(shrink)
		}
		for step := 0; !attempt(step, shrink); step += every {
			whole(shrink)
			whole(grow)
		}
		w.verify(t)
		p := b.partitions(nil)
		if n, err := p.count(ctx); n != 2 || err != nil {
			t.Errorf("%d partitions, %v", n, err)
		}
		var left []string
		waittest.Until(t, "no record and no token is left", func() bool {
			there, err := p.there(ctx)
			must(t, err)
			left = left[:0]
			for name := range there {
				if strings.HasPrefix(name, own) {
					left = append(left, name)
				}
			}
			return len(left) == 0
		})
	})
}

// traffic is publishers and a group over the partitions of "orders".
type traffic struct {
	stop, stopped context.CancelFunc
	publishers    sync.WaitGroup
	workers       sync.WaitGroup
	mu            sync.Mutex
	sent, seen    map[string]int
	wrong         []string
}

func newTraffic(t *testing.T, b *bench) *traffic {
	w := &traffic{sent: map[string]int{}, seen: map[string]int{}}
	publishing, stop := context.WithCancel(t.Context())
	working, stopped := context.WithCancel(t.Context())
	w.stop, w.stopped = stop, stopped
	for i := range 2 {
		other := newClient(b)
		w.publishers.Go(func() {
			defer other.conn.Close()
			for n := 0; publishing.Err() == nil; n++ {
				key := fmt.Sprintf("p%d-%d", i, n%20)
				w.mu.Lock()
				w.sent[key]++
				seq := w.sent[key]
				w.mu.Unlock()
				if err := other.emit(key, fmt.Sprint(seq)); err != nil {
					w.fault("publish: %v", err)
					return
				}
			}
		})
	}
	p, s := b.partitions(nil), b.source(nil)
	w.workers.Go(func() {
		defer s.Close()
		w.staff(working, p, s)
	})
	t.Cleanup(func() { stop(); stopped(); w.publishers.Wait(); w.workers.Wait() })
	return w
}

// newClient is the same virtual host by another connection.
func newClient(b *bench) *bench {
	other := &bench{t: b.t, r: b.r, vhost: b.vhost}
	other.connect()
	return other
}

// staff lets each queue be worked.
func (w *traffic) staff(ctx context.Context, p *Partitions, s *Source) {
	staffed := map[string]chan struct{}{}
	var all sync.WaitGroup
	defer all.Wait()
	for sleep(ctx, 20*time.Millisecond) {
		names, err := p.Names(ctx)
		if err != nil && ctx.Err() == nil {
			w.fault("names: %v", err)
		}
		for _, name := range names {
			select {
			case <-staffed[name]: // it was gone, and is there again
			default:
				if staffed[name] != nil {
					continue
				}
			}
			left := make(chan struct{})
			staffed[name] = left
			all.Go(func() {
				defer close(left)
				w.work(ctx, s, name)
			})
		}
	}
}

// work works a queue, by one reader after the other, until it is gone.
func (w *traffic) work(ctx context.Context, s *Source, name string) {
	for ctx.Err() == nil {
		r, err := s.Open(ctx, claimOf(name))
		if err == nil {
			err = w.read(ctx, r, name)
			_ = r.Close(context.Background())
		}
		if errors.Is(err, sources.ErrGone) {
			return
		}
		sleep(ctx, 20*time.Millisecond) // a queue that goes in this moment ends connections: 4.0 answers 541
	}
}

func (w *traffic) read(ctx context.Context, r sources.Reader, name string) error {
	for {
		ms, err := r.Fetch(ctx, 5)
		if err != nil {
			return err
		}
		ss := make([]sources.Settlement, len(ms))
		for i, m := range ms {
			w.saw(m, name)
			ss[i].Message = m
		}
		if err := r.Settle(ctx, ss); err != nil {
			return err
		}
	}
}

// saw takes a message for completed. One that comes again is none of the first completions.
func (w *traffic) saw(m *rebalancer.Message, name string) {
	var seq int
	_, _ = fmt.Sscan(string(m.Body), &seq)
	w.mu.Lock()
	defer w.mu.Unlock()
	if seq > w.seen[m.Key]+1 {
		w.wrong = append(w.wrong, fmt.Sprintf("%s: %d after %d in %s", m.Key, seq, w.seen[m.Key], name))
	}
	w.seen[m.Key] = max(w.seen[m.Key], seq)
}

func (w *traffic) fault(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
}

// verify ends the publishers, waits for what they sent, and looks at what was seen.
func (w *traffic) verify(t *testing.T) {
	t.Helper()
	w.stop()
	w.publishers.Wait()
	waittest.Until(t, "everything is worked", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.wrong) > 0 || fmt.Sprint(w.sent) == fmt.Sprint(w.seen)
	})
	w.stopped()
	w.workers.Wait()
	total := 0
	for _, n := range w.sent {
		total += n
	}
	t.Logf("%d messages of %d keys", total, len(w.sent))
	if len(w.wrong) > 0 {
		t.Fatalf("%d faults, the first: %s", len(w.wrong), w.wrong[0])
	}
}
