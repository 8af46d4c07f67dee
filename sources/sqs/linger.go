package sqs

import (
	"context"
	"time"
)

// standstill is how much longer than planned a wait may take before the process counts as frozen in the meantime.
const standstill = time.Second

// linger lets deletions wait for others, so that whoever settles has ten for the next call: until ten more messages were handed out, which will
// soon be settled too, or for Config.Linger. Nothing waits when there are ten already, in a FIFO queue, when nothing else is in hand and no
// Fetch waits, or when the resource is being given back. It is false when the process was frozen meanwhile: the claim may have been lost,
// and its holder is to look.
func (r *reader) linger(ctx context.Context, p *plan) bool {
	enough, hurry := r.mayLinger(p)
	if enough == nil {
		return true
	}
	d := r.s.cfg.Linger
	until := time.Now().Add(d + standstill)
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-enough:
	case <-hurry:
	case <-r.stop:
	case <-ctx.Done():
		return false
	}
	return !r.s.past(until)
}

// mayLinger gives two channels whose closing ends the wait, or none when there is to be no wait.
func (r *reader) mayLinger(p *plan) (enough, hurry chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.q.fifo || len(p.deletes) == 0 || len(p.deletes) >= batchSize || len(p.retries)+len(p.rejects) > 0 || p.released ||
		r.s.cfg.Linger <= 0 || r.working() == 0 && !r.fetching || isClosed(r.hurry) {
		return nil, nil
	}
	r.enough, r.lacking = make(chan struct{}), batchSize
	return r.enough, r.hurry
}

// handedOut notes that messages were, for who lingers.
func (r *reader) handedOut(n int) {
	if r.lacking -= n; r.enough != nil && r.lacking <= 0 {
		close(r.enough)
		r.enough = nil
	}
}
