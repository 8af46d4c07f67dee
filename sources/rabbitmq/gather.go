package rabbitmq

import "context"

// What is returned to a quorum queue goes behind what was returned before it and is still there: when an owner takes a part of that and gives it back, that part
// comes after the rest. So all of it is taken at once, before anything is given back. It is at most what an owner may have in hand, and it
// comes before what was never delivered.
//
// Against that stands the delivery limit: what is taken together is returned together by a crash, and counts for each. So a first message that was returned
// often, and may be what kills the processes, is worked alone, whatever that does to the order of what stands behind it.

// gather looks at a message that has arrived. Where it was returned, and others like it may be left, the broker is to send those as well. r.mu is held.
func (r *reader) gather(l *live, e *entry) {
	switch {
	case l.gathered || !l.counts:
		return
	case !e.d.Redelivered || e.returns >= l.suspect: // none is left, or none is wanted
		l.gathered = true
		return
	case !l.spent(): // all that were left are on their way
		return
	}
	l.gathered = true
	if n := r.rest(l); n > 0 && l.want == l.prefetch {
		l.careful = false
		l.want = n // changed by the pump at once, before the next acknowledgement
	}
}

// rest is how many more an owner before us may have had in hand; r.mu is held.
func (r *reader) rest(l *live) int {
	if n := r.source.Prefetch; n > 0 {
		if n == l.prefetch {
			return 0
		}
		return n
	}
	return 2*l.most() - l.window.unacked()
}

// gatherAll is for a Reader that closes before it knows whether all that was returned is here: what it gives back must not be a part of that.
func (r *reader) gatherAll(l *live) {
	r.mu.Lock()
	n := 0
	if l.consumers > 0 && l.counts && !l.gathered || l.want != l.prefetch && l.spent() {
		n = r.rest(l)
	}
	r.mu.Unlock()
	if n == 0 {
		return
	}
	ctx, before := context.Background(), l.tag
	if _, err := r.consume(ctx, l, n); err == nil { // what fails here, fails because the channel is lost, and all in hand returned
		_ = l.conn.call(ctx, func() error { return l.ch.Cancel(before, false) }) // a single active consumer makes the next one wait for that
	}
}
