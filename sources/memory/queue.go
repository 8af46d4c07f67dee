package memory

import (
	"container/heap"
	"sync"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources"
)

// entry is one message from Send to its settlement. orig is never handed out: each delivery gets a copy, because a
// handler of an earlier delivery may still write to its own.
type entry struct {
	orig rebalancer.Message
	seq  uint64 // place in the order of its queue
	due  time.Time
}

// queue is one resource. Messages wait in fresh (never handed out, in order), back (given back, smallest place first)
// or delayed (given back with a delay, earliest first).
type queue struct {
	name string

	mu       sync.Mutex // never held while waiting
	seq      uint64
	fresh    []*entry
	head     int // of fresh
	back     bySeq
	delayed  byDue
	readers  []*reader
	rejected []Rejected
	inFlight int
	done     int
	cut      bool
	gone     bool
}

func (q *queue) open(s *Source, fence int64) (*reader, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.cut {
		return nil, ErrCut
	}
	if q.gone {
		return nil, sources.ErrGone
	}
	r := &reader{source: s, queue: q, fence: fence, wake: make(chan struct{}, 1)}
	q.readers = append(q.readers, r)
	return r, nil
}

func (q *queue) exists() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !q.gone
}

func (q *queue) openReaders() []*reader {
	q.mu.Lock()
	defer q.mu.Unlock()
	return append([]*reader(nil), q.readers...)
}

// waiting counts what is not in flight; q.mu is held, as for all that follows.
func (q *queue) waiting() int { return len(q.fresh) - q.head + len(q.back) + len(q.delayed) }

// ready moves what is due to back and returns how many messages can be handed out now.
func (q *queue) ready() int {
	if len(q.delayed) > 0 {
		now := time.Now()
		for len(q.delayed) > 0 && !q.delayed[0].due.After(now) {
			heap.Push(&q.back, heap.Pop(&q.delayed))
		}
	}
	return len(q.fresh) - q.head + len(q.back)
}

// next takes the message with the smallest place; ready() said that there is one.
func (q *queue) next() *entry {
	if len(q.back) > 0 && (q.head == len(q.fresh) || q.back[0].seq < q.fresh[q.head].seq) {
		return heap.Pop(&q.back).(*entry)
	}
	e := q.fresh[q.head]
	q.fresh[q.head] = nil
	q.head++
	switch {
	case q.head == len(q.fresh):
		q.fresh, q.head = q.fresh[:0], 0
	case q.head >= 1024 && q.head > len(q.fresh)/2:
		n := copy(q.fresh, q.fresh[q.head:])
		clear(q.fresh[n:])
		q.fresh, q.head = q.fresh[:n], 0
	}
	return e
}

// give puts an entry back, to be handed out again after delay.
func (q *queue) give(e *entry, delay time.Duration) {
	if delay > 0 {
		e.due = time.Now().Add(delay)
		heap.Push(&q.delayed, e)
		return
	}
	heap.Push(&q.back, e)
}

// tell wakes the readers that wait in Fetch.
func (q *queue) tell() {
	for _, r := range q.readers {
		if r.waiting {
			r.signal()
		}
	}
}

// drop forgets all messages and returns how many there were.
func (q *queue) drop() int {
	n := q.waiting() + q.inFlight
	q.fresh, q.head, q.back, q.delayed, q.inFlight = nil, 0, nil, nil, 0
	for _, r := range q.readers {
		r.flight = flight{}
	}
	return n
}

type bySeq []*entry

func (h bySeq) Len() int           { return len(h) }
func (h bySeq) Less(i, j int) bool { return h[i].seq < h[j].seq }
func (h bySeq) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *bySeq) Push(x any)        { *h = append(*h, x.(*entry)) }
func (h *bySeq) Pop() any          { return pop((*[]*entry)(h)) }

type byDue []*entry

func (h byDue) Len() int { return len(h) }
func (h byDue) Less(i, j int) bool {
	return h[i].due.Before(h[j].due) || h[i].due.Equal(h[j].due) && h[i].seq < h[j].seq
}
func (h byDue) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *byDue) Push(x any)   { *h = append(*h, x.(*entry)) }
func (h *byDue) Pop() any     { return pop((*[]*entry)(h)) }

func pop(h *[]*entry) any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return e
}
