package rabbitmq

import (
	"context"
	"time"
)

const (
	maxAdapted    = 200                    // messages
	maxAhead      = 16 << 20               // bytes
	eagerPrefetch = 20                     // to begin with, when nothing is known of the messages
	paceEvery     = 250 * time.Millisecond // of work, or
	paceMessages  = 50                     // are measured at least, and twice the prefetch
)

// pace measures how fast messages are worked, over the time in which there is any in hand. The reader's mutex guards it.
type pace struct {
	since time.Time // out rose from 0; zero: it is 0
	busy  time.Duration
	done  int
	bytes int
	floor int // what a caller who asks for more has been allowed
}

// handed notes that messages went out; before is how many were out.
func (p *pace) handed(before int) {
	if before == 0 {
		p.since = time.Now()
	}
}

// settled notes that one message was settled.
func (p *pace) settled(bytes int) { p.done++; p.bytes += bytes }

// measure ends an interval in which there was enough work, and returns the prefetch that fits it. enough is a number of messages.
func (p *pace) measure(now time.Time, out, enough int) (int, bool) {
	if !p.since.IsZero() {
		p.busy += now.Sub(p.since)
		p.since = now
	}
	if out == 0 {
		p.since = time.Time{}
	}
	if p.done == 0 || p.busy < paceEvery && p.done < enough {
		return 0, false
	}
	n := maxAdapted
	if p.busy > 0 {
		n = int(min(float64(n), float64(p.done)*float64(time.Second)/float64(p.busy)))
	}
	n = max(n, p.floor)
	if size := p.bytes / p.done; size > 0 {
		n = min(n, maxAhead/size)
	}
	p.busy, p.done, p.bytes = 0, 0, 0
	return max(n, 1), true
}

// adapt follows the pace; r.mu is held. The prefetch changes only when it is wrong by much: a change costs some round trips.
func (r *reader) adapt(l *live, now time.Time, out int) {
	n, ok := l.pace.measure(now, out, max(paceMessages, 2*l.prefetch))
	if !ok || l.careful || r.source.Prefetch > 0 || 2*l.window.ours < l.prefetch {
		return
	}
	if (2*n <= l.want || 2*n >= 3*l.want) && l.fits(n) {
		l.wants(n)
	}
}

// relax ends the careful start; r.mu is held.
func (r *reader) relax(l *live) {
	l.careful = false
	n := r.source.Prefetch
	if n == 0 {
		var measured bool
		if n, measured = l.pace.measure(time.Now(), l.window.out, 1); !measured {
			n = eagerPrefetch
		}
	}
	l.wants(n)
}

// feed allows a starving caller more than its pace suggests: it may collect messages before it works them.
func (r *reader) feed(l *live) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.live != l || l.careful || r.source.Prefetch > 0 || !l.spent() || l.want != l.prefetch {
		return
	}
	n := min(2*l.prefetch, l.most()-l.window.unacked())
	if n == l.prefetch {
		n-- // as many again are another consumer's
	}
	if n > 0 && 2*n >= l.prefetch {
		l.pace.floor = n
		l.wants(n)
	}
}

// most is how many messages may be here, by their average size; the reader's mutex is held.
func (l *live) most() int {
	if l.window.len() == 0 {
		return maxAdapted
	}
	return min(maxAdapted, max(1, maxAhead*l.window.len()/max(1, l.window.bytes)))
}

// fits tells whether there is room for what another prefetch brings: what earlier consumers were sent stays in hand beside that. The reader's
// mutex is held.
func (l *live) fits(prefetch int) bool {
	earlier := l.window.unacked() - l.window.ours
	return earlier == 0 || earlier+l.prefetch+prefetch <= 2*l.most()
}

// spent tells whether the broker has sent all that it may; the reader's mutex is held.
func (l *live) spent() bool { return l.window.ours >= l.prefetch }

// wants asks the pump for another prefetch; the reader's mutex is held.
func (l *live) wants(prefetch int) {
	l.want = prefetch
	if prefetch == l.prefetch {
		return
	}
	select {
	case l.tune <- struct{}{}:
	default:
	}
}

// tuneWait is how long acknowledgements wait for a change of the prefetch to become possible.
const tuneWait = 100 * time.Millisecond

// full tells whether the prefetch is to be changed and may be; the reader's mutex is held. What is on its way to a consumer that
// is cancelled goes back to a quorum queue, on RabbitMQ 3.10 to its end. So the change is made when nothing can be on its
// way: the broker has sent all that it may, and no acknowledgement allows it more (see flusher.write).
func (l *live) full() bool { return l.want != l.prefetch && l.spent() }

// retune changes the prefetch if it may: a consumer has that of its beginning, so another one takes its place on the channel.
// What the first was sent stays in hand, and the second is sent what comes after.
func (r *reader) retune(l *live) error {
	changed, err := r.replace(l)
	if changed {
		r.flush.some(l, true)
	}
	return err
}

func (r *reader) replace(l *live) (changed bool, err error) {
	r.flush.send.Lock()
	defer r.flush.send.Unlock()
	r.mu.Lock()
	want, full := l.want, l.full()
	r.mu.Unlock()
	if !full {
		return false, nil
	}
	ctx := context.Background() // Close waits: what is settled is still to be acknowledged on this channel
	before := l.tag
	in, err := r.consume(ctx, l, want) // first: another node takes a queue without consumers for free, whatever is in hand here
	if err != nil {
		return false, err
	}
	if err := l.conn.call(ctx, func() error { return l.ch.Cancel(before, false) }); err != nil {
		return false, err
	}
	for d := range l.in {
		if _, err := r.arrived(l, &d); err != nil {
			return false, err
		}
	}
	l.in = in
	r.mu.Lock()
	l.window.turn()
	l.prefetch, l.want = want, want
	r.mu.Unlock()
	return true, nil
}

// keepPrefetch gives a change up that did not become possible: the queue has too few messages for it to matter.
func (r *reader) keepPrefetch(l *live) {
	r.mu.Lock()
	l.want = l.prefetch
	r.mu.Unlock()
	r.flush.some(l, true)
}
