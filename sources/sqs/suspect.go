package sqs

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// A message that was received so often that the next receive may be its last is suspected: its handler may be what ends the process. It may
// share neither a receive nor its time with another suspect, which would go to the dead-letter queue with it. What a process had in hand that
// died comes back all at once, when its visibility ends, to a process that knows nothing of it. So receives are for one message at a time, and
// none is made while a suspect is in hand, from when a queue is opened until what its last reader may have left has come back, and
// likewise after each suspect. Messages that are not suspected are worked side by side meanwhile.

// suspicion is how long that is.
func (c *Config) suspicion() time.Duration { return c.Visibility + c.Wait }

// suspect tells whether a message that was received so often is suspected.
func (q *queue) suspect(count int) bool {
	return q.maxReceives > 0 && count > 1 && count >= q.maxReceives-1
}

// beCareful begins the time of single receives anew.
func (r *reader) beCareful() {
	if r.q.maxReceives < 2 { // the first receive is the last
		return
	}
	d := r.s.cfg.suspicion()
	r.carefulTo = time.Now().Add(d)
	time.AfterFunc(d, func() { signal(r.wake) })
}

func (r *reader) careful() bool { return time.Now().Before(r.carefulTo) }

// suspected tells whether a suspect is in hand. One whose handler has not ended the process for as long is none any more, so that one that is tried again
// and again holds up nothing.
func (r *reader) suspected() bool {
	for _, e := range r.byID {
		if r.q.suspect(e.count) && time.Since(e.since) < r.s.cfg.suspicion() {
			return true
		}
	}
	return false
}

// suspectAtWork is suspected for what is handed out.
func (r *reader) suspectAtWork() bool {
	for _, e := range r.out {
		if r.q.suspect(e.count) && time.Since(e.dealt) < r.s.cfg.suspicion() {
			return true
		}
	}
	return false
}

// noteCounts looks for suspects in what was received.
func (r *reader) noteCounts(ms []types.Message) {
	for i := range ms {
		if r.q.suspect(number(attribute(&ms[i], types.MessageSystemAttributeNameApproximateReceiveCount))) {
			r.beCareful()
			return
		}
	}
}
