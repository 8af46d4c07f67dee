package sqs

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

const (
	// mostInFlight of one queue; past it a receive that waits gives nothing, and no error either. SQS counts about, so that less is as bad.
	mostInFlight = 120_000
	nearlyMost   = mostInFlight * 95 / 100
	silentPolls  = 3
	countEvery   = time.Minute
)

// silent notes how many messages a receive brought, and tells whether it is time to look why there are none.
func (r *reader) silent(n int) bool {
	if n > 0 {
		r.empty = 0
		return false
	}
	r.empty++
	if r.empty < silentPolls || time.Since(r.counted) < countEvery {
		return false
	}
	r.counted = time.Now()
	return true
}

// countInFlight reports a queue that gives nothing because too much of it is in flight.
func (r *reader) countInFlight() {
	waiting, inFlight := types.QueueAttributeNameApproximateNumberOfMessages, types.QueueAttributeNameApproximateNumberOfMessagesNotVisible
	a, err := r.s.attributes(context.WithoutCancel(r.s.ctx), r.q.url, waiting, inFlight)
	if err != nil {
		return // the receives tell what is wrong
	}
	w, _ := strconv.Atoi(a[string(waiting)])
	n, _ := strconv.Atoi(a[string(inFlight)])
	if w == 0 || n < nearlyMost {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report(aboutSilence, fmt.Errorf("%d messages wait, but SQS gives none while %d are in flight: others hold them, or they were left by consumers that died", w, n))
}
