package figures

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources"
)

// hold is what a node did with one claim of a resource, as its source saw it. Moments are zero when they did not come.
type hold struct {
	node, resource string
	fence          int64
	firstFetch     time.Time
	firstMessage   time.Time
	lastSettled    time.Time
	closed         time.Time
	opens          int
	longestGap     time.Duration // between the returns of two fetches, or two settlements, in the watched time
	lastSeen       time.Time
}

// sourceLog is a source that writes down each claim it was opened for. The readers of a dead node neither deliver nor
// settle.
type sourceLog struct {
	sources.Source

	mu    sync.Mutex
	holds map[string][]*hold // by resource, in the order of opening
	dead  map[string]bool
	watch time.Time // gaps are measured from then on; zero: they are not
}

func newSourceLog(s sources.Source) *sourceLog {
	return &sourceLog{Source: s, holds: map[string][]*hold{}, dead: map[string]bool{}}
}

type readerLog struct {
	sources.Reader
	log *sourceLog
	h   *hold
}

func (l *sourceLog) Open(ctx context.Context, c *rebalancer.Claim) (sources.Reader, error) {
	r, err := l.Source.Open(ctx, c)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	held := l.holds[c.Resource]
	if n := len(held); n > 0 && held[n-1].fence == c.Fence {
		held[n-1].opens++
		return &readerLog{r, l, held[n-1]}, nil
	}
	h := &hold{node: c.Node, resource: c.Resource, fence: c.Fence, opens: 1}
	l.holds[c.Resource] = append(held, h)
	return &readerLog{r, l, h}, nil
}

func (r *readerLog) Fetch(ctx context.Context, most int) ([]*rebalancer.Message, error) {
	r.log.mu.Lock()
	if r.h.firstFetch.IsZero() {
		r.h.firstFetch = time.Now()
	}
	dead := r.log.dead[r.h.node]
	r.log.mu.Unlock()
	if dead {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	ms, err := r.Reader.Fetch(ctx, most)
	if len(ms) > 0 {
		r.log.mu.Lock()
		if r.h.firstMessage.IsZero() {
			r.h.firstMessage = time.Now()
		}
		r.log.mu.Unlock()
	}
	return ms, err
}

func (r *readerLog) Settle(ctx context.Context, s []sources.Settlement) error {
	r.log.mu.Lock()
	dead := r.log.dead[r.h.node]
	r.log.mu.Unlock()
	if dead {
		return errors.New("the node is dead")
	}
	err := r.Reader.Settle(ctx, s)
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	r.h.lastSettled = time.Now()
	r.log.seen(r.h)
	return err
}

func (r *readerLog) Close(ctx context.Context) error {
	r.log.mu.Lock()
	if r.h.closed.IsZero() {
		r.h.closed = time.Now()
	}
	r.log.mu.Unlock()
	return r.Reader.Close(ctx)
}

// seen measures how long nothing was settled under a claim. Call it with the lock held.
func (l *sourceLog) seen(h *hold) {
	now := time.Now()
	if !l.watch.IsZero() {
		from := h.lastSeen
		if from.Before(l.watch) {
			from = l.watch
		}
		h.longestGap = max(h.longestGap, now.Sub(from))
	}
	h.lastSeen = now
}

// watchGaps begins, or with the zero time ends, the measuring of gaps.
func (l *sourceLog) watchGaps(from time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, held := range l.holds {
		for _, h := range held {
			if from.IsZero() && h.closed.IsZero() {
				l.seen(h) // also what has stood still up to now
			}
		}
	}
	l.watch = from
}

// kill makes a node's readers deaf and mute, as a crash does.
func (l *sourceLog) kill(node string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead[node] = true
}

// of copies the claims of a resource so far.
func (l *sourceLog) of(resource string) []hold {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]hold, len(l.holds[resource]))
	for i, h := range l.holds[resource] {
		out[i] = *h
	}
	return out
}
