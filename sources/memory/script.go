package memory

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources"
)

// Rejected is a message that was given up, with the error it was rejected with.
type Rejected struct {
	Message rebalancer.Message
	Err     error
}

// Counts are the messages of one resource by what became of them.
type Counts struct {
	Waiting  int // ready or delayed
	InFlight int // handed out, not settled
	Done     int // settled by Done, since the source was made
	Rejected int // since the source was made
}

// Send adds one message for each body, in order. It never blocks. It makes the resource if there is none, also after
// Remove.
func (s *Source) Send(resource string, bodies ...string) error {
	ms := make([]rebalancer.Message, len(bodies))
	for i, b := range bodies {
		ms[i].Body = []byte(b)
	}
	return s.SendMessages(resource, ms...)
}

// SendMessages is Send for messages with a key, headers, a stream, … Resource, Fence and Attempt are set by the source;
// an empty ID becomes the message's place in the resource (1, 2, …), a zero Published the present, and the Size of a
// message without a Stream is the length of its Body.
func (s *Source) SendMessages(resource string, ms ...rebalancer.Message) error {
	if resource == "" {
		return fmt.Errorf("memory source: send: the resource has an empty name")
	}
	now := time.Now()
	entries := make([]entry, len(ms))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("memory source: send to %q: %w", resource, sources.ErrClosed)
	}
	q := s.queue(resource)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.gone = false
	for i := range ms {
		q.seq++
		e := &entries[i]
		e.orig, e.seq = ms[i], q.seq
		e.orig.Resource, e.orig.Attempt = resource, 1
		if e.orig.ID == "" {
			e.orig.ID = strconv.FormatUint(q.seq, 10)
		}
		if e.orig.Published.IsZero() {
			e.orig.Published = now
		}
		if e.orig.Stream == nil {
			e.orig.Size = int64(len(e.orig.Body))
		}
		q.fresh = append(q.fresh, e)
	}
	s.pending.Add(int64(len(ms)))
	q.tell()
	return nil
}

// Idle waits until no message waits or is in flight in any resource; those that were rejected do not count. It returns
// ctx's error when that ends first.
func (s *Source) Idle(ctx context.Context) error {
	told := make(chan struct{}, 1)
	s.mu.Lock()
	s.idlers[told] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.idlers, told)
		s.mu.Unlock()
	}()
	for s.pending.Load() > 0 {
		select {
		case <-told:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// settled takes n messages off what is pending and tells the callers of Idle when nothing is left.
func (s *Source) settled(n int) {
	if n == 0 || s.pending.Add(int64(-n)) > 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for told := range s.idlers {
		select {
		case told <- struct{}{}:
		default:
		}
	}
}

// Rejected returns the messages of a resource that were given up, in the order in which that happened.
func (s *Source) Rejected(resource string) []Rejected {
	q := s.find(resource)
	if q == nil {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return append([]Rejected(nil), q.rejected...)
}

// Counts returns the numbers of a resource; zeros for one that never was.
func (s *Source) Counts(resource string) Counts {
	q := s.find(resource)
	if q == nil {
		return Counts{}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return Counts{Waiting: q.waiting(), InFlight: q.inFlight, Done: q.done, Rejected: len(q.rejected)}
}

// Overlaps counts the Fetches that handed out messages of a resource while another open Reader of it had handed out
// messages too: in a test of one group it stays 0.
func (s *Source) Overlaps() int64 { return s.overlaps.Load() }

// Cut makes Open, Fetch (also one in progress) and Settle of a resource fail with ErrCut until Restore. What is in
// flight stays so; Close gives it back.
func (s *Source) Cut(resource string) { s.setCut(resource, true) }

// Restore ends Cut.
func (s *Source) Restore(resource string) { s.setCut(resource, false) }

func (s *Source) setCut(resource string, cut bool) {
	q := s.findOrMake(resource)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.cut = cut
	q.tell()
}

// Remove deletes a resource with all its messages: Open and Fetch fail with ErrGone until the next Send, and what was in
// flight is ignored by Settle.
func (s *Source) Remove(resource string) {
	q := s.findOrMake(resource)
	q.mu.Lock()
	n := q.drop()
	q.gone = true
	q.tell()
	q.mu.Unlock()
	s.settled(n)
}
