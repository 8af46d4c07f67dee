package sqs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources"
)

// reader reads one queue under one claim. Everything below mu is guarded by it; it is never held during a call.
type reader struct {
	s     *Source
	q     queue
	claim *rebalancer.Claim

	wake chan struct{} // of capacity 1: a Fetch is to look again
	kick chan struct{} // of capacity 1: the keeper is to look again
	stop chan struct{} // closed by Close
	kept chan struct{} // closed when the keeper has ended

	life    context.Context // ends with Close
	endLife context.CancelFunc
	openers sync.WaitGroup // of payloads

	mu       sync.Mutex
	closed   bool
	fetching bool
	hurry    chan struct{} // closed when a Fetch was given up: nothing lingers any more; replaced by the next Fetch
	lanes    map[string]*lane
	byID     map[string]*entry
	out      map[*rebalancer.Message]*entry
	reported int // of out, those whose outcome is being carried out
	most     int // that a Fetch asked for
	ready    []*lane
	places   int // lanes that there were
	opening  int // entries whose payload is being opened
	failing  int // those of them for which that failed at least once

	polls    int // receives that run
	asked    int // messages that they may bring
	attempts []attemptID
	troubles []trouble // for the next Fetch
	told     time.Time // when a Fetch last returned trouble

	carefulTo time.Time // until then one message is received at a time, see suspect.go
	empty     int       // receives in a row that brought nothing
	counted   time.Time // when the messages in flight were last counted

	wakeAt   time.Time // when the keeper looks again; zero: not before it is kicked
	finished map[string]finished
	enough   chan struct{} // closed when lacking more messages were handed out; nil: nobody waits for that
	lacking  int
}

func newReader(s *Source, q queue, c *rebalancer.Claim) *reader {
	r := &reader{
		s: s, q: q, claim: c,
		wake: make(chan struct{}, 1), kick: make(chan struct{}, 1),
		stop: make(chan struct{}), kept: make(chan struct{}), hurry: make(chan struct{}),
		lanes: map[string]*lane{}, byID: map[string]*entry{}, out: map[*rebalancer.Message]*entry{},
		finished: map[string]finished{},
	}
	r.life, r.endLife = context.WithCancel(s.ctx)
	r.beCareful()
	go r.keep()
	return r
}

// Fetch hands out what is in hand, else it receives as many as were asked for.
func (r *reader) Fetch(ctx context.Context, max int) ([]*rebalancer.Message, error) {
	if max < 1 {
		return nil, fmt.Errorf("sqs: fetch from %q: max is %d, must be at least 1", r.q.name, max)
	}
	defer r.fetched(ctx)
	handlers := r.handlers(max)
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		ms, err := r.take(max, handlers)
		if err != nil {
			return nil, fmt.Errorf("sqs: fetch from %q: %w", r.q.name, err)
		}
		if len(ms) > 0 {
			return ms, nil
		}
		select {
		case <-r.wake:
		case <-r.stop:
		case <-ctx.Done():
		}
	}
}

// fetched ends a Fetch. One that was given up may be the last.
func (r *reader) fetched(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fetching = false
	if ctx.Err() != nil && !isClosed(r.hurry) {
		close(r.hurry)
	}
}

// take hands out what there is, or asks for more.
func (r *reader) take(most, handlers int) ([]*rebalancer.Message, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, sources.ErrClosed
	}
	r.fetching = true
	if isClosed(r.hurry) {
		r.hurry = make(chan struct{})
	}
	if ms := r.deal(most); len(ms) > 0 {
		r.handedOut(len(ms))
		return ms, nil
	}
	if err := r.tell(); err != nil {
		return nil, err
	}
	r.ask(max(most, handlers-r.working()))
	return nil, nil
}

// handlers is how many messages may be worked at a time, as a Fetch tells: those that it asks for, and those that are worked, but no more than any Fetch
// asked for, since of some that count as worked the outcome is on its way. While it waits more are settled, and as many may be received.
func (r *reader) handlers(most int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.most = max(r.most, most)
	return min(most+r.working(), r.most)
}

// working is how many messages are handed out whose outcome was not reported.
func (r *reader) working() int { return len(r.out) - r.reported }

// deal hands out messages of the lanes that are ready, one of each before a second of any.
func (r *reader) deal(max int) []*rebalancer.Message {
	var ms []*rebalancer.Message
	var waiting []*lane // for a suspect to be settled
	for len(ms) < max && len(r.ready) > 0 {
		la := r.ready[0]
		r.ready[0] = nil
		r.ready = r.ready[1:]
		la.queued = false
		if r.loseFrozen(la) {
			continue
		}
		if e := la.next(r.s.cfg.GroupAhead); e != nil {
			if r.q.suspect(e.count) && r.suspectAtWork() {
				la.queued = true
				waiting = append(waiting, la)
				continue
			}
			e.message, e.dealt = r.newMessage(e), time.Now()
			r.out[e.message] = e
			ms = append(ms, e.message)
			r.queue(la)
			if r.q.suspect(e.count) { // which those that wait wait for
				time.AfterFunc(r.s.cfg.suspicion(), func() { signal(r.wake) })
			}
		}
	}
	if len(waiting) > 0 {
		r.ready = append(waiting, r.ready...)
	}
	return ms
}

// queue puts a lane among the ready ones when it has something to hand out, and wakes the Fetch.
func (r *reader) queue(la *lane) {
	if la.queued || la.next(r.s.cfg.GroupAhead) == nil {
		return
	}
	la.queued = true
	r.ready = append(r.ready, la)
	signal(r.wake)
}

// queueFirst is queue for what was handed out before: it goes in front of what arrived after it.
func (r *reader) queueFirst(la *lane) {
	if r.queue(la); len(r.ready) > 0 && r.ready[len(r.ready)-1] == la {
		i := slices.IndexFunc(r.ready, func(other *lane) bool { return other.place >= la.place })
		copy(r.ready[i+1:], r.ready[i:len(r.ready)-1])
		r.ready[i] = la
	}
}

// drop forgets an entry, and its lane when it was the last.
func (r *reader) drop(e *entry) {
	e.payload.close()
	if r.byID[e.id] == e {
		delete(r.byID, e.id)
	}
	if e.message != nil {
		delete(r.out, e.message)
	}
	e.lane.remove(e)
	if len(e.lane.entries) == 0 && e.lane.finishing == 0 {
		r.forget(e.lane)
	}
}

func (r *reader) forget(la *lane) {
	if r.lanes[la.group] == la {
		delete(r.lanes, la.group)
	}
	la.lost = true // whoever still has it does nothing with it
}

var (
	errFrozen   = errors.New("the process stood still for longer than the messages in hand were kept invisible")
	errUnheard  = errors.New("no extension of their visibility was answered in time")
	errMostHeld = errors.New("it was in hand for 12 hours, and SQS keeps none invisible for longer")
)

// loseFrozen gives a lane up whose time is over, which the keeper has not noticed yet: the process stood still.
func (r *reader) loseFrozen(la *lane) bool {
	end, some := la.end()
	if !some || !past(end.Add(-r.s.cfg.margin())) {
		return false
	}
	r.lose(la, errFrozen)
	return true
}

// lose gives a lane up: its messages are not ours any more, or may not be for much longer. Nothing of it is started or deleted; the
// handlers that run go on, and what they finish is not worked again when it comes again.
func (r *reader) lose(la *lane, why error) {
	if la.lost {
		return
	}
	la.lost = true
	held := la.entries
	la.entries = nil
	for _, e := range held {
		if e.message == nil {
			e.payload.close()
			delete(r.byID, e.id)
			continue
		}
		e.stale = true
		la.entries = append(la.entries, e)
	}
	if len(la.entries) == 0 && la.finishing == 0 {
		r.forget(la)
	}
	err := fmt.Errorf("%d messages were lost and will come again: %w", len(held), why)
	if r.q.fifo {
		err = fmt.Errorf("message group %q: %w", la.group, err)
	}
	r.report(aboutLane+la.group, err)
}

// Keep is true while messages are in hand whose visibility is kept up: whatever the trouble is, closing would burn a receive of each, and opening again
// would not end it. Without any, another node may get on better.
func (r *reader) Keep() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.byID {
		if !e.stale {
			return true
		}
	}
	return false
}

// Close ends a Fetch and the opening of payloads, stops and joins the extensions, and gives back what is in hand: for each group of a FIFO queue the last first. What a receive
// brings that is still on its way is given back when it comes.
func (r *reader) Close(ctx context.Context) error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil
	}
	r.closed = true
	close(r.stop)
	r.endLife()
	var back []*entry
	var unread []*payload
	var calls []chan struct{}
	for _, e := range r.byID {
		unread = append(unread, e.payload)
		if e.lane.calling != nil && !slices.Contains(calls, e.lane.calling) {
			calls = append(calls, e.lane.calling)
		}
		if e.leaving || e.stale || past(e.until) {
			continue // being settled, or not ours any more
		}
		e.leaving = true
		back = append(back, e)
	}
	r.mu.Unlock()
	err := join(ctx, append(calls, r.kept))
	for _, p := range unread {
		p.close()
	}
	if err == nil {
		err = r.giveBack(ctx, back)
	}
	if err != nil {
		return fmt.Errorf("sqs: close %q: messages come again only when their visibility ends: %w", r.q.name, err)
	}
	opened := make(chan struct{})
	go func() { r.openers.Wait(); close(opened) }()
	if err := join(ctx, []chan struct{}{opened}); err != nil {
		return fmt.Errorf("sqs: close %q: Config.Payloads still opens a payload although its context has ended: %w", r.q.name, err)
	}
	return nil
}

// join waits until all channels are closed.
func join(ctx context.Context, all []chan struct{}) error {
	for _, c := range all {
		select {
		case <-c:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
