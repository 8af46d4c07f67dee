package sqs

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/rebalancer-go/rebalancer/sources"
)

const (
	mostDelay    = 15 * time.Minute // of a retry that SQS is to make, where the caller asked for no longer one
	finishedLife = time.Hour        // for how long a message that was finished too late is remembered
	mostFinished = 10_000
)

// plan is what one Settle has to do, by the kind of call.
type plan struct {
	deletes, retries, rejects []job
	failed                    map[int]error
	released                  bool
}

// job is one settlement to carry out.
type job struct {
	index int
	entry *entry
	s     *sources.Settlement
}

func (p *plan) fail(i int, err error) {
	if p.failed == nil {
		p.failed = map[int]error{}
	}
	p.failed[i] = err
}

func (p *plan) jobs() []job { return slices.Concat(p.deletes, p.retries, p.rejects) }

// Settle deletes what is done, ten at a time. What is released stays in hand, to be handed out again, until Close gives it back. A retry of a
// standard queue is made by SQS, after a delay with some jitter; one of a FIFO queue is made here, so that its group waits for it
// and no receive is burnt.
func (r *reader) Settle(ctx context.Context, list []sources.Settlement) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p, err := r.sort(list)
	if err != nil {
		return err
	}
	if len(p.deletes)+len(p.retries)+len(p.rejects) > 0 {
		if err := r.carryOut(ctx, p); err != nil {
			return err
		}
	}
	if p.failed != nil {
		return &sources.SettleError{Failed: p.failed}
	}
	return nil
}

// sort finds the messages of settlements, and does what needs no call.
func (r *reader) sort(list []sources.Settlement) (*plan, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, fmt.Errorf("sqs: settle in %q: %w", r.q.name, sources.ErrClosed)
	}
	p := &plan{}
	for i := range list {
		s := &list[i]
		e := r.out[s.Message]
		if e == nil || e.settled {
			continue
		}
		switch j := (job{i, e, s}); {
		case s.Outcome == sources.Done:
			r.sortDone(p, j)
		case s.Outcome == sources.Release:
			p.released = true
			r.again(e, 0)
		case s.Outcome == sources.Retry && r.q.fifo:
			e.retries++
			r.again(e, s.Delay)
		case s.Outcome == sources.Retry, s.Outcome == sources.Reject && r.s.cfg.Redrive:
			r.reportOf(e)
			p.retries = append(p.retries, j)
		case s.Outcome == sources.Reject && r.q.deadLetter == "":
			p.fail(i, fmt.Errorf("sqs: message %q of %q: %w", e.id, r.q.name, sources.ErrNoDeadLetter))
		case s.Outcome == sources.Reject:
			r.reportOf(e)
			p.rejects = append(p.rejects, j)
		default:
			p.fail(i, fmt.Errorf("sqs: message %q of %q: unknown outcome %d", e.id, r.q.name, s.Outcome))
		}
	}
	return p, nil
}

// sortDone lets the next of the group start. What is not ours any more is remembered, so that it is not worked again; of a FIFO
// queue it is not deleted under its old receipt, which SQS refuses.
func (r *reader) sortDone(p *plan, j job) {
	e := j.entry
	if r.q.fifo {
		r.loseFrozen(e.lane)
	}
	if e.stale {
		r.remember(e.id, true)
		if r.q.fifo {
			r.dropStale(e)
			return
		}
	}
	r.reportOf(e)
	e.done = true
	p.deletes = append(p.deletes, j)
	r.queue(e.lane)
}

// dropStale forgets what comes again by itself, and lets the next of its lane start.
func (r *reader) dropStale(e *entry) {
	la := e.lane
	r.drop(e)
	r.queue(la)
}

// finished is a message that was settled, and may come again.
type finished struct {
	at   time.Time
	done bool // its handler succeeded, so that its payload goes with it; else it is in the dead-letter queue
}

// remember notes that a message was finished, for when it comes again.
func (r *reader) remember(id string, done bool) {
	if len(r.finished) >= mostFinished {
		for k, f := range r.finished {
			if time.Since(f.at) > finishedLife {
				delete(r.finished, k)
			}
		}
	}
	if len(r.finished) < mostFinished {
		r.finished[id] = finished{time.Now(), done}
	}
}

// again puts a message back into its lane, to be handed out once more after a delay.
func (r *reader) again(e *entry, delay time.Duration) {
	delete(r.out, e.message)
	e.message = nil
	e.payload.close()
	if e.stale { // it comes again by itself
		r.dropStale(e)
		return
	}
	if delay <= 0 {
		r.queueFirst(e.lane)
		return
	}
	e.resting = true
	time.AfterFunc(delay, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		e.resting = false
		if !r.closed && r.byID[e.id] == e {
			r.queueFirst(e.lane)
		}
	})
}

// carryOut makes the calls of a plan.
func (r *reader) carryOut(ctx context.Context, p *plan) error {
	if !r.linger(ctx, p) {
		r.unsettle(p.jobs())
		return errors.New("sqs: the process stood still while deletions waited for others: they are to be asked for again")
	}
	if err := join(ctx, r.stopExtensions(p.jobs())); err != nil {
		r.unsettle(p.jobs())
		return err
	}
	results := make(chan []job, 3)
	errs := make([]error, p.size())
	run := func(jobs []job, do func(context.Context, []job) []error) {
		for i, err := range do(ctx, jobs) {
			errs[jobs[i].index] = err
		}
		results <- jobs
	}
	kinds := 0
	for _, k := range []struct {
		jobs []job
		do   func(context.Context, []job) []error
	}{{p.deletes, r.deleteJobs}, {p.retries, r.retryJobs}, {p.rejects, r.rejectJobs}} {
		if len(k.jobs) > 0 {
			kinds++
			go run(k.jobs, k.do)
		}
	}
	for range kinds {
		r.finish(p, <-results, errs)
	}
	return nil
}

// size is one more than the greatest index of a job.
func (p *plan) size() int {
	n := 0
	for _, j := range p.jobs() {
		n = max(n, j.index+1)
	}
	return n
}

// unsettle: jobs were not carried out.
func (r *reader) unsettle(jobs []job) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, j := range jobs {
		r.unreport(j.entry)
	}
	signal(r.kick)
}

// reportOf notes that the outcome of a message was reported: its handler is free.
func (r *reader) reportOf(e *entry) {
	e.settled = true
	r.reported++
	signal(r.wake)
}

// unreport: it was not carried out, and is to be reported again.
func (r *reader) unreport(e *entry) {
	e.settled, e.done, e.leaving, e.used = false, false, false, ""
	r.reported--
}

// stopExtensions leaves entries out of further extensions, and returns those that run.
func (r *reader) stopExtensions(jobs []job) []chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	var calls []chan struct{}
	for _, j := range jobs {
		j.entry.leaving = true
		if c := j.entry.lane.calling; c != nil && !slices.Contains(calls, c) {
			calls = append(calls, c)
		}
	}
	return calls
}

// finish notes what came of jobs. A payload is deleted only when its message certainly was; what came a second time while it was being
// deleted is deleted under its new receipt too.
func (r *reader) finish(p *plan, jobs []job, errs []error) {
	var empty []*payload
	var twice []*entry
	r.mu.Lock()
	for _, j := range jobs {
		e := j.entry
		if err := errs[j.index]; err != nil {
			r.unreport(e)
			p.fail(j.index, fmt.Errorf("sqs: message %q of %q: %w", e.id, r.q.name, err))
			continue
		}
		if j.s.Outcome == sources.Reject && r.s.cfg.Redrive && e.count < r.q.maxReceives {
			p.fail(j.index, fmt.Errorf("sqs: message %q of %q: %w: of its %d receives this was number %d", e.id, r.q.name, sources.ErrRedelivered, r.q.maxReceives, e.count))
		}
		switch done := j.s.Outcome == sources.Done; {
		case e.used == "": // no deletion was asked for
		case e.used != e.receipt:
			r.remember(e.id, done)
			twice = append(twice, e)
		case e.deleted && done && e.payload != nil:
			empty = append(empty, e.payload)
		case !e.deleted: // it may come again
			r.remember(e.id, done)
		}
		la := e.lane
		r.reported--
		r.drop(e)
		r.queue(la)
	}
	signal(r.kick)
	signal(r.wake) // it may be that receives waited for an empty hand
	r.mu.Unlock()
	r.deletePayloads(empty)
	if len(twice) > 0 {
		r.deleteFinished(twice)
	}
}

func (r *reader) deleteJobs(ctx context.Context, jobs []job) []error {
	entries := make([]*entry, len(jobs))
	for i := range jobs {
		entries[i] = jobs[i].entry
	}
	errs := r.delete(ctx, entries)
	for i, err := range errs {
		errs[i] = r.settledAnyway(jobs[i], err)
	}
	return errs
}

// settledAnyway turns an answer that says that there is nothing to settle any more into none: the queue is gone, or the receipt is too
// old. The message may then come again, and is deleted without another handler.
func (r *reader) settledAnyway(j job, err error) error {
	var no *refusal
	if errors.As(err, &no) {
		r.mu.Lock()
		r.remember(j.entry.id, j.s.Outcome == sources.Done)
		if r.q.fifo && len(j.entry.lane.entries) > 1 { // those behind it are not to be deleted before it
			r.lose(j.entry.lane, fmt.Errorf("message %q: deletion refused: %w", j.entry.id, err))
		}
		r.mu.Unlock()
		return nil
	}
	if gone(err) {
		return nil
	}
	return err
}

// deleteFinished deletes what came again after it was finished, and its payload.
func (r *reader) deleteFinished(entries []*entry) {
	ctx, cancel := context.WithTimeout(r.s.ctx, callTimeout)
	defer cancel()
	var empty []*payload
	errs := r.delete(ctx, entries)
	r.mu.Lock()
	for i, e := range entries {
		if errs[i] != nil || !e.deleted {
			continue
		}
		if p := r.payloadOf(e); p != nil && r.finished[e.id].done {
			empty = append(empty, p)
		}
		delete(r.finished, e.id)
	}
	r.mu.Unlock()
	r.deletePayloads(empty)
}

// goOn lets the groups go on whose finished messages are deleted. One that could not be deleted would come again behind those that are deleted now: its
// group is given up.
func (r *reader) goOn(finished []*entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range finished {
		la := e.lane
		if la == nil { // of a standard queue
			continue
		}
		la.finishing--
		switch {
		case !e.deleted && len(la.entries) > 0:
			r.lose(la, fmt.Errorf("message %q was worked, and could not be deleted", e.id))
		case len(la.entries) == 0 && la.finishing == 0:
			r.forget(la)
		default:
			r.queue(la)
		}
	}
}

// retryJobs has SQS deliver messages again after a delay. It is never 0, which would make a message that always fails go round as
// fast as it can, and has some jitter, so that what failed together does not come again together.
func (r *reader) retryJobs(ctx context.Context, jobs []job) []error {
	changes := make([]change, len(jobs))
	r.mu.Lock() // it may be received a second time meanwhile
	for i, j := range jobs {
		changes[i] = change{entry: j.entry, receipt: j.entry.receipt, visibility: retryDelay(j)}
	}
	r.mu.Unlock()
	errs := r.changeVisibility(ctx, changes)
	for i, err := range errs {
		var no *refusal
		if errors.As(err, &no) || gone(err) { // it comes again by itself, or there is none
			errs[i] = nil
		}
	}
	return errs
}

func retryDelay(j job) time.Duration {
	d := max(j.s.Delay, 0)
	if j.s.Outcome == sources.Reject { // left to the redrive policy
		d = min(time.Second<<min(j.entry.count, 20), mostDelay)
	}
	d += rand.N(d/4 + time.Second)
	return max(time.Second, min(d+time.Second-1, mostHeld-time.Since(j.entry.since)-time.Second).Truncate(time.Second))
}
