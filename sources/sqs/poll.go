package sqs

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go/middleware"
)

// attemptID names an attempt to receive from a FIFO queue whose outcome is unknown: under the same id SQS gives the same messages
// again, which else would stay invisible.
type attemptID struct {
	id    string
	most  int
	began time.Time
}

// attemptLife is for how long an id is used again; SQS knows it for 5 minutes.
const attemptLife = 4 * time.Minute

// ask starts receives for as many messages as may be handed out, beside those that are on their way. A receive costs an attempt, so
// there are never more than free handlers; and it costs money, so that small ones are made only when none is on its way.
func (r *reader) ask(max int) {
	if r.careful() {
		if r.polls == 0 && max > r.awaited() && !r.suspected() {
			r.poll(1)
		}
		return
	}
	for want := max - r.asked - r.awaited(); want >= batchSize || want > 0 && r.polls == 0; {
		n := min(want, batchSize)
		if !r.poll(n) {
			return
		}
		want -= n
	}
}

// awaited is how many messages will soon want a handler: those whose payload is being opened. Some of which that failed do not count, so that what is
// the matter with them keeps no others from being worked.
func (r *reader) awaited() int { return r.opening - min(r.failing, mostFailing) }

// poll starts one receive.
func (r *reader) poll(n int) bool {
	if !r.s.begin() {
		return false
	}
	var a attemptID
	if r.q.fifo {
		a = r.attempt(n)
		n = a.most
	}
	r.polls++
	r.asked += n
	go func() {
		defer r.s.polls.Done()
		r.receive(n, a)
	}()
	return true
}

// attempt is an id for a receive from a FIFO queue: one whose outcome is unknown first.
func (r *reader) attempt(n int) attemptID {
	for len(r.attempts) > 0 {
		a := r.attempts[0]
		r.attempts = r.attempts[1:]
		if time.Since(a.began) < attemptLife && a.most <= n {
			return a
		}
	}
	return attemptID{id: rand.Text(), most: n, began: time.Now()}
}

// tries notes when the SDK last tried a call. The visibility of what a receive brings begins no earlier, and, after tries that
// took their time and failed, a good deal later than the call.
type tries struct {
	mu   sync.Mutex
	last time.Time
}

func (t *tries) watch(o *sqs.Options) {
	note := middleware.FinalizeMiddlewareFunc("rebalancer:tries", func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
		t.mu.Lock()
		t.last = time.Now()
		t.mu.Unlock()
		return next.HandleFinalize(ctx, in)
	})
	o.APIOptions = append(slices.Clip(o.APIOptions), func(s *middleware.Stack) error {
		return s.Finalize.Add(note, middleware.After) // behind what tries again
	})
}

func (t *tries) lastOne() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

// receive does one receive, and puts away what it brings. It is not cut off when the resource is to be given back: a message that was on its
// way would stay invisible.
func (r *reader) receive(n int, a attemptID) {
	cfg := &r.s.cfg
	in := &sqs.ReceiveMessageInput{
		QueueUrl: &r.q.url, MaxNumberOfMessages: int32(n),
		WaitTimeSeconds:             int32(cfg.Wait / time.Second),
		VisibilityTimeout:           int32(cfg.Visibility / time.Second),
		MessageAttributeNames:       []string{"All"},
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
	}
	if a.id != "" {
		in.ReceiveRequestAttemptId = &a.id
	}
	ctx, cancel := context.WithTimeout(r.s.ctx, cfg.Wait+callTimeout)
	began := time.Now()
	tries := &tries{last: began}
	out, err := cfg.Client.ReceiveMessage(ctx, in, tries.watch)
	cancel()
	sent := tries.lastOne()

	r.mu.Lock()
	r.polls--
	r.asked -= n
	signal(r.wake)
	if err != nil {
		r.failed(err, a, began)
		r.mu.Unlock()
		return
	}
	if r.closed {
		r.mu.Unlock()
		r.late(out.Messages, sent)
		return
	}
	again := r.accept(out.Messages, sent)
	count := r.silent(len(out.Messages))
	r.mu.Unlock()
	if len(again) > 0 {
		r.deleteFinished(again)
		r.goOn(again)
	}
	if count {
		r.countInFlight()
	}
}

// failed notes why a receive failed. Of receives that ran side by side one is enough to report.
func (r *reader) failed(err error, a attemptID, began time.Time) {
	if a.id != "" && !answered(err) {
		r.attempts = append(r.attempts, a)
	}
	if !r.closed && !began.Before(r.told) {
		r.report(aboutReceive, fmt.Errorf("receive: %w", resourceError(err)))
	}
}

// late gives back what came after Close, in reverse order.
func (r *reader) late(ms []types.Message, sent time.Time) {
	back := make([]*entry, len(ms))
	for i := range ms {
		back[i] = r.newEntry(ms[i], sent)
		back[i].lane = &lane{group: attribute(&ms[i], types.MessageSystemAttributeNameMessageGroupId)}
	}
	ctx, cancel := context.WithTimeout(r.s.ctx, callTimeout)
	defer cancel()
	if err := r.giveBack(ctx, back); err != nil {
		r.s.cfg.Logger.Warn("sqs: messages that came late come again only when their visibility ends", "queue", r.q.name, "messages", len(back), "error", err)
	}
}

func (r *reader) newEntry(m types.Message, sent time.Time) *entry {
	return &entry{
		raw: m, id: aws.ToString(m.MessageId), receipt: aws.ToString(m.ReceiptHandle), since: sent, until: sent.Add(r.s.cfg.Visibility),
		seq:   attribute(&m, types.MessageSystemAttributeNameSequenceNumber),
		count: number(attribute(&m, types.MessageSystemAttributeNameApproximateReceiveCount)),
	}
}

// accept puts received messages into their lanes. It returns those that were finished already, under a receipt that was too old to
// delete them.
func (r *reader) accept(ms []types.Message, sent time.Time) (finished []*entry) {
	cfg := &r.s.cfg
	r.noteCounts(ms)
	// At a third from the receipt; but a receive that waited for long says little about when the visibility began, so
	// that an extension is to make sure soon.
	due := time.Now().Add(cfg.Visibility / 3)
	if latest := sent.Add(cfg.Visibility / 2); due.After(latest) {
		due = latest
		if soon := time.Now().Add(cfg.Visibility / 30); due.Before(soon) {
			due = soon
		}
	}
	for _, m := range ms {
		e := r.newEntry(m, sent)
		_, again := r.finished[e.id]
		if again {
			finished = append(finished, e)
			if !r.q.fifo {
				continue
			}
		}
		key := e.id
		if r.q.fifo {
			key = attribute(&m, types.MessageSystemAttributeNameMessageGroupId)
		}
		la := r.lanes[key]
		if la == nil {
			r.places++
			la = &lane{group: key, place: r.places, due: due}
			r.lanes[key] = la
		}
		if la.lost { // it is ours again, but for what was handed out of it and does not come again
			la.lost, la.due = false, due
		}
		if again { // those behind it wait until it is deleted
			e.lane = la
			la.finishing++
			continue
		}
		if due.Before(la.due) {
			la.due = due
		}
		r.admit(la, e)
		r.queue(la)
		r.keepBy(la.due)
	}
	return finished
}

// admit puts one message into its lane. One that is in hand already gets its new receipt instead of another handler.
func (r *reader) admit(la *lane, e *entry) {
	if old := r.byID[e.id]; old != nil {
		old.receipt, old.count, old.since, old.until, old.stale = e.receipt, max(old.count, e.count), e.since, e.until, false
		return
	}
	e.lane = la
	la.insert(e)
	r.byID[e.id] = e
	if e.payload = r.payloadOf(e); e.payload != nil {
		e.opening = true
		r.opening++
		r.openers.Go(func() { r.openPayload(e) })
	}
}
