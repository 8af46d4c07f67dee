package sqs

import (
	"context"
	"time"
)

// pace is how fast deletions come.
type pace struct {
	last time.Time // when the last were carried out
	rate float64   // per second, smoothed
}

// standstill is how much longer than planned a wait may take before the process counts as frozen in the meantime.
const standstill = time.Second

// linger waits for as long as ten deletions take to come, so that whoever settles has ten for the next call. Nothing waits when there are
// ten already, in a FIFO queue, when nothing else is in hand and no Fetch waits, or when the resource is being given back. It is false when the
// process was frozen meanwhile: the claim may have been lost, and its holder is to look.
func (r *reader) linger(ctx context.Context, p *plan) bool {
	d, hurry := r.lingerFor(p)
	if d <= 0 {
		return true
	}
	until := time.Now().Add(d + standstill)
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-hurry:
	case <-r.stop:
	case <-ctx.Done():
		return false
	}
	return !past(until)
}

func (r *reader) lingerFor(p *plan) (time.Duration, chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	n := float64(len(p.deletes))
	if since := now.Sub(r.pace.last).Seconds(); since > 0 {
		weight := min(1, since) // a second is as much as is remembered
		r.pace.rate += weight * (n/since - r.pace.rate)
	}
	r.pace.last = now
	most := r.s.cfg.Linger
	working := len(r.out) - len(p.jobs())
	if r.q.fifo || len(p.deletes) == 0 || len(p.deletes) >= batchSize || len(p.retries)+len(p.rejects) > 0 || p.released ||
		most <= 0 || working <= 0 && !r.fetching || isClosed(r.hurry) {
		return 0, nil
	}
	if r.pace.rate > 0 {
		most = min(most, time.Duration(batchSize/r.pace.rate*float64(time.Second)))
	}
	return most, r.hurry
}
