package group

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources"
)

const (
	// settleBatch outcomes are settled at once.
	settleBatch = 64
	// settleLinger is how long outcomes wait for others.
	settleLinger = time.Millisecond
	// maxUnsettled outcomes may wait for a source that does not take them; then nothing more is fetched.
	maxUnsettled = 16 * settleBatch
)

// settler tells the source what became of messages: all that is finished in one call, from a goroutine of its own. A call
// that fails is repeated while the claim holds, after a few tries beside what comes later (see aside).
type settler struct {
	w      *worker
	r      sources.Reader
	ctx    context.Context // ends at the loss, and Grace after stop
	cancel context.CancelFunc

	hurry chan struct{} // of capacity 1: settle now
	first chan struct{} // of capacity 1: something waits
	space chan struct{} // of capacity 1: some was settled
	quit  chan struct{} // no more will come
	done  chan struct{}
	until time.Time // after quit: how long failures are repeated

	// Of the goroutine alone.
	late   []*aside
	barren int  // calls in a row that settled nothing
	unwell bool // there was trouble, and it is not said yet that it is over

	mu        sync.Mutex
	buf       []sources.Settlement
	unsettled int // in buf, in the call in progress, and aside
	waiting   map[*rebalancer.Message]chan error
	told      map[*rebalancer.Message]func(error) // what to do with the answer to a rejection for which nobody waits any more
	hurried   time.Time
}

func newSettler(w *worker, r sources.Reader) *settler {
	s := &settler{
		w: w, r: r,
		hurry: make(chan struct{}, 1), first: make(chan struct{}, 1), space: make(chan struct{}, 1),
		quit: make(chan struct{}), done: make(chan struct{}),
	}
	s.ctx, s.cancel = context.WithCancel(w.claimCtx)
	go s.run()
	return s
}

// add takes an outcome. It does not block.
func (s *settler) add(x sources.Settlement) {
	s.mu.Lock()
	s.buf = append(s.buf, x)
	s.unsettled++
	n := len(s.buf)
	s.mu.Unlock()
	switch n {
	case 1:
		signal(s.first)
	case settleBatch:
		signal(s.hurry)
	}
}

// idle says that nothing more comes for now. It is not taken too seriously by a source that hands out messages singly but fast.
func (s *settler) idle() {
	now := time.Now()
	if now.Sub(s.hurried) >= settleLinger {
		s.hurried = now
		signal(s.hurry)
	}
}

// reject settles x and waits for the answer: nil, ErrNoDeadLetter, ErrRedelivered, or an error that says that the resource is to be given back;
// errAside when the source does not take it for now: one of the first three is passed to later when there is one.
func (s *settler) reject(x sources.Settlement, later func(error)) error {
	answer := make(chan error, 1)
	s.mu.Lock()
	if s.waiting == nil {
		s.waiting, s.told = map[*rebalancer.Message]chan error{}, map[*rebalancer.Message]func(error){}
	}
	s.waiting[x.Message], s.told[x.Message] = answer, later
	s.mu.Unlock()
	s.add(x)
	signal(s.hurry)
	select {
	case err := <-answer:
		return err
	case <-s.done:
		return rebalancer.ErrLost
	}
}

// room waits until the source has taken enough; false when the resource is to be given back.
func (s *settler) room() bool {
	for {
		s.mu.Lock()
		n := s.unsettled
		s.mu.Unlock()
		if n < maxUnsettled {
			return true
		}
		select {
		case <-s.space:
		case <-s.w.draining:
			return false
		}
	}
}

// stop settles what is left, for a time, and ends the goroutine.
func (s *settler) stop() {
	grace := s.w.env.cfg.Grace
	s.mu.Lock()
	s.until = time.Now().Add(grace)
	s.mu.Unlock()
	defer time.AfterFunc(grace, s.cancel).Stop() // also a call that is under way
	close(s.quit)
	<-s.done
}

func (s *settler) run() {
	defer close(s.done)
	defer s.cancel()
	linger := time.NewTimer(time.Hour)
	defer linger.Stop()
	late := time.NewTimer(time.Hour)
	defer late.Stop()
	var batch []sources.Settlement
	for quit := false; !quit; {
		select {
		case <-s.first:
			linger.Reset(settleLinger)
			select {
			case <-s.hurry:
			case <-linger.C:
			case <-s.quit:
			case <-s.w.gone:
			}
		case <-s.hurry:
		case <-late.C:
		case <-s.quit:
			quit = true
		case <-s.w.gone:
			return
		}
		s.mu.Lock()
		batch, s.buf = s.buf, batch[:0]
		s.mu.Unlock()
		if !s.settle(s.behind(batch)) || !quit && !s.again(false) {
			return
		}
		clear(batch)
		late.Reset(s.due())
	}
	s.finish()
}

// settle settles a batch, rejections by themselves: they may have no place to go. False when it was given up.
func (s *settler) settle(batch []sources.Settlement) bool {
	rejects := 0
	for i := range batch {
		if batch[i].Outcome == sources.Reject {
			rejects++
		}
	}
	if rejects == 0 {
		return s.push(batch)
	}
	var plain, bad []sources.Settlement
	for _, x := range batch {
		if x.Outcome == sources.Reject {
			bad = append(bad, x)
		} else {
			plain = append(plain, x)
		}
	}
	return s.push(plain) && s.push(bad)
}

// push repeats a few times until the source has taken the batch, and puts aside what it has not. False when the claim is lost, or the
// time after quit is over.
func (s *settler) push(batch []sources.Settlement) bool {
	for n := 1; len(batch) > 0; n++ {
		began, before := time.Now(), len(batch)
		left, ok := s.try(batch)
		if !ok {
			return false
		}
		batch = left
		s.barren++
		if len(batch) < before {
			s.barren = 0
		}
		if len(batch) == 0 {
			s.recovered()
			return true
		}
		wait := s.w.backoff(max(n, s.barren) - 1)
		if max(n, s.barren) >= inPlace {
			s.setAside(batch, n, time.Since(began))
			batch = nil
		}
		if (len(batch) > 0 || s.barren > 0) && !s.pause(wait) { // also before others, when the source takes nothing
			return false
		}
	}
	return true
}

// try passes a batch once and returns what is left of it, in the batch's memory. False when the claim is lost.
func (s *settler) try(batch []sources.Settlement) ([]sources.Settlement, bool) {
	if !s.trusted() {
		return nil, false
	}
	err := s.once(batch)
	if s.w.lost.Load() {
		return nil, false
	}
	before := len(batch)
	batch = s.left(batch, err)
	if len(batch) < before {
		s.took(before - len(batch))
	}
	if len(batch) > 0 {
		s.unwell = true
		s.w.trouble(fmt.Errorf("source of resource %q: %d messages could not be settled: %w", s.w.claim.Resource, len(batch), err))
	}
	return batch, true
}

func (s *settler) once(batch []sources.Settlement) error {
	ctx, cancel := context.WithTimeout(s.ctx, settleTimeout)
	defer cancel()
	if !s.w.env.probes.on() {
		return s.r.Settle(ctx, batch)
	}
	began := time.Now()
	err := s.r.Settle(ctx, batch)
	s.w.env.probes.settled(s.w, began, batch, err)
	return err
}

// left is what of a batch has to be passed again after err. It reuses the batch's memory.
func (s *settler) left(batch []sources.Settlement, err error) []sources.Settlement {
	var part *sources.SettleError
	inPart := errors.As(err, &part)
	rest := batch[:0]
	for i, x := range batch {
		e := err
		if inPart {
			e = part.Failed[i]
		}
		if x.Outcome == sources.Reject && (e == nil || errors.Is(e, sources.ErrNoDeadLetter) || errors.Is(e, sources.ErrRedelivered)) {
			s.answer(x.Message, e)
			continue
		}
		if e != nil {
			rest = append(rest, x)
		}
	}
	return rest
}

// answer tells whoever waits for a rejection what became of it, or the one who waited until it was put aside.
func (s *settler) answer(m *rebalancer.Message, err error) {
	s.mu.Lock()
	ch, later := s.waiting[m], s.told[m]
	delete(s.waiting, m)
	if !errors.Is(err, errAside) {
		delete(s.told, m)
	}
	s.mu.Unlock()
	switch {
	case ch != nil:
		ch <- err
	case later != nil && !errors.Is(err, errAside):
		later(err)
	}
}

func (s *settler) took(n int) {
	s.mu.Lock()
	s.unsettled -= n
	s.mu.Unlock()
	signal(s.space)
}

// trusted looks at both clocks before anything is settled. Past the trust nothing is, and the loss is a moment away.
func (s *settler) trusted() bool {
	for !s.w.env.trusts(true) {
		if !sleep(s.w.gone, trustRecheck) {
			return false
		}
	}
	return !s.w.lost.Load()
}

// pause waits before the next try; false when there is to be none.
func (s *settler) pause(d time.Duration) bool {
	select {
	case <-s.quit:
		s.mu.Lock()
		left := time.Until(s.until)
		s.mu.Unlock()
		if left <= 0 {
			return false
		}
		return sleep(s.w.gone, min(d, left))
	default:
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.quit: // one more try at once
	case <-s.w.gone:
		return false
	}
	return true
}

// signal wakes whoever waits for a channel of capacity 1.
func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
