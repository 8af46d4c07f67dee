package group

import (
	"errors"
	"time"

	"github.com/rebalancer-go/rebalancer/sources"
)

const (
	// inPlace is how often outcomes are passed before those that come after them go first.
	inPlace = 4
	// asideShare bounds the part of the time that is spent on what could not be settled: a call is not repeated before asideShare
	// times as long as it took.
	asideShare = 4
)

// errAside answers a rejection that the source does not take for now. What becomes of it is told later.
var errAside = errors.New("the rejection is tried again")

// aside is what the source did not take in a few tries. It is tried again by itself, so that one message that cannot be settled
// holds up no other, except those of its key: their outcomes wait behind it.
type aside struct {
	batch []sources.Settlement
	tries int
	due   time.Time
}

// setAside puts what is left of a batch aside. Handlers that wait for a rejection wait no longer.
func (s *settler) setAside(batch []sources.Settlement, tries int, took time.Duration) {
	a := &aside{batch: append([]sources.Settlement(nil), batch...), tries: tries}
	s.late = append(s.late, a)
	s.postpone(a, took)
	s.unawaited(batch)
}

func (s *settler) unawaited(batch []sources.Settlement) {
	for _, x := range batch {
		if x.Outcome == sources.Reject {
			s.answer(x.Message, errAside)
		}
	}
}

// postpone says when it is tried again.
func (s *settler) postpone(a *aside, took time.Duration) {
	a.due = time.Now().Add(max(s.w.backoff(a.tries), asideShare*took))
	a.tries++
}

// behind leaves of a batch what need not wait for what is aside.
func (s *settler) behind(batch []sources.Settlement) []sources.Settlement {
	if len(s.late) == 0 {
		return batch
	}
	keys := map[string]*aside{}
	for _, a := range s.late {
		for _, x := range a.batch {
			if x.Message.Key != "" {
				keys[x.Message.Key] = a // the last one counts
			}
		}
	}
	rest := batch[:0]
	for i, x := range batch {
		if a := keys[x.Message.Key]; a != nil {
			a.batch = append(a.batch, x)
			s.unawaited(batch[i : i+1])
			continue
		}
		rest = append(rest, x)
	}
	return rest
}

// again passes what is due of what is aside, or all. False when the claim is lost.
func (s *settler) again(all bool) bool {
	now := time.Now()
	rest := s.late[:0]
	for _, a := range s.late {
		if !all && a.due.After(now) {
			rest = append(rest, a)
			continue
		}
		began, before := time.Now(), len(a.batch)
		left, ok := s.try(a.batch)
		if !ok {
			return false
		}
		if a.batch = left; len(left) == 0 {
			continue
		}
		if len(left) == before { // perhaps the first one keeps the others from their turn
			rotate(left)
		}
		s.postpone(a, time.Since(began))
		rest = append(rest, a)
	}
	clear(s.late[len(rest):])
	s.late = rest
	s.recovered()
	return true
}

// rotate puts the first message last, with all others of its key in their order.
func rotate(batch []sources.Settlement) {
	key := batch[0].Message.Key
	first := append([]sources.Settlement(nil), batch[0])
	n := 0
	for _, x := range batch[1:] {
		if key != "" && x.Message.Key == key {
			first = append(first, x)
			continue
		}
		batch[n] = x
		n++
	}
	copy(batch[n:], first)
}

// due is how long it is until something that is aside is tried again; an hour when nothing is.
func (s *settler) due() time.Duration {
	d := time.Hour
	for _, a := range s.late {
		d = min(d, time.Until(a.due))
	}
	return d
}

// finish tries what is aside once more at once, and then for as long as failures are repeated after quit.
func (s *settler) finish() {
	for s.again(true) && len(s.late) > 0 && s.pause(s.due()) {
	}
}

// recovered says once that nothing is left of a trouble.
func (s *settler) recovered() {
	if s.unwell && len(s.late) == 0 {
		s.unwell = false
		s.w.emit(Event{Kind: KindRecovered})
	}
}
