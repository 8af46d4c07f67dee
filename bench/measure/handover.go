package measure

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/group"
	"github.com/rebalancer-go/rebalancer/sources"
	"github.com/rebalancer-go/rebalancer/sources/memory"
)

// Idle sums up for how long the resources stood still that a leaving node handed over: from the last settlement of the
// old owner to the first message of the new one.
type Idle struct {
	Store                  string
	Moved                  int
	Least, Median, Longest time.Duration
}

// HandOver lets one of four nodes leave that work 100 resources. open opens the store for a node; the caller closes it.
func HandOver(name string, ttl time.Duration, open func(node string) (backends.Store, error)) (Idle, error) {
	src := &timedSource{Source: memory.New(), held: map[string][]*times{}}
	var resources []string
	for i := range 100 {
		resources = append(resources, fmt.Sprintf("r%02d", i))
	}
	nodes := map[string]*member{}
	defer func() {
		for _, m := range nodes {
			m.stop()
			<-m.done
		}
	}()
	for _, node := range []string{"a", "b", "c", "d"} {
		store, err := open(node)
		if err != nil {
			return Idle{}, err
		}
		m, err := join(node, ttl, store, src, resources)
		if err != nil {
			return Idle{}, err
		}
		nodes[node] = m
	}
	if err := balanced(nodes, 25); err != nil {
		return Idle{}, err
	}
	for _, r := range resources {
		if err := src.Source.(*memory.Source).Send(r, make([]string, 20000)...); err != nil {
			return Idle{}, err
		}
	}
	time.Sleep(100 * time.Millisecond) // the work is under way
	left := time.Now()
	nodes["b"].stop()
	if err := <-nodes["b"].done; err != nil {
		return Idle{}, err
	}
	nodes["b"].done <- nil
	rest := map[string]*member{"a": nodes["a"], "c": nodes["c"], "d": nodes["d"]}
	if err := balanced(rest, 33); err != nil {
		return Idle{}, err
	}
	idle, err := src.idle("b", left)
	if err != nil {
		return Idle{}, err
	}
	return Idle{Store: name, Moved: len(idle), Least: idle[0], Median: idle[len(idle)/2], Longest: idle[len(idle)-1]}, nil
}

type member struct {
	*group.Group
	stop context.CancelFunc
	done chan error
}

func join(node string, ttl time.Duration, store backends.Store, src sources.Source, resources []string) (*member, error) {
	g, err := group.New(group.Config{
		Name: "bench", Node: node, Store: store, Source: src, Resources: group.Static(resources...), TTL: ttl,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	m := &member{Group: g, stop: cancel, done: make(chan error, 1)}
	go func() {
		m.done <- g.Consume(ctx, func(context.Context, *rebalancer.Message) error {
			time.Sleep(time.Millisecond) // the work
			return nil
		})
	}()
	return m, nil
}

// balanced waits until each node works so many resources, or one more.
func balanced(nodes map[string]*member, least int) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for name, m := range nodes {
		err := m.Wait(ctx, func(s group.Status) bool {
			working := 0
			for _, r := range s.Resources {
				if r.Phase == "working" {
					working++
				}
			}
			return working == len(s.Resources) && working >= least && working <= least+1 && s.Awaited == 0
		})
		if err != nil {
			return fmt.Errorf("node %s does not hold its share: %w", name, err)
		}
	}
	return nil
}

// timedSource notes when each claim got its first message and settled its last.
type timedSource struct {
	sources.Source
	mu   sync.Mutex
	held map[string][]*times
}

type times struct {
	node        string
	first, last time.Time
}

type timedReader struct {
	sources.Reader
	s *timedSource
	t *times
}

func (s *timedSource) Open(ctx context.Context, c *rebalancer.Claim) (sources.Reader, error) {
	r, err := s.Source.Open(ctx, c)
	if err != nil {
		return nil, err
	}
	t := &times{node: c.Node}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[c.Resource] = append(s.held[c.Resource], t)
	return &timedReader{r, s, t}, nil
}

func (r *timedReader) Fetch(ctx context.Context, most int) ([]*rebalancer.Message, error) {
	ms, err := r.Reader.Fetch(ctx, most)
	if len(ms) > 0 {
		r.s.mu.Lock()
		if r.t.first.IsZero() {
			r.t.first = time.Now()
		}
		r.s.mu.Unlock()
	}
	return ms, err
}

func (r *timedReader) Settle(ctx context.Context, x []sources.Settlement) error {
	err := r.Reader.Settle(ctx, x)
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.t.last = time.Now()
	return err
}

// idle gives, sorted, for how long what node held stood still.
func (s *timedSource) idle(node string, left time.Time) ([]time.Duration, error) {
	var out []time.Duration
	for limit := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		out = out[:0]
		missing := 0
		s.mu.Lock()
		for _, held := range s.held {
			n := len(held)
			switch {
			case held[n-1].node == node, n > 1 && held[n-2].node == node && held[n-1].first.IsZero():
				missing++
				continue
			case n < 2 || held[n-2].node != node || held[n-2].last.Before(left):
				continue
			}
			out = append(out, held[n-1].first.Sub(held[n-2].last))
		}
		s.mu.Unlock()
		switch {
		case missing == 0 && len(out) > 0:
			slices.Sort(out)
			return out, nil
		case time.Now().After(limit):
			return nil, fmt.Errorf("%d resources were handed over, %d got no message within a minute", len(out)+missing, missing)
		}
	}
}
