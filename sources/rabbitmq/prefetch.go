package rabbitmq

import "time"

const (
	maxAdapted    = 200      // messages
	maxAhead      = 16 << 20 // bytes
	eagerPrefetch = 20       // to begin with, when nothing is known of the messages
	paceEvery     = 250 * time.Millisecond
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

// measure ends an interval that was long enough, or any when it must, and returns the prefetch that fits it.
func (p *pace) measure(now time.Time, out int, must bool) (int, bool) {
	if !p.since.IsZero() {
		p.busy += now.Sub(p.since)
		p.since = now
	}
	if out == 0 {
		p.since = time.Time{}
	}
	if p.done == 0 || p.busy < paceEvery && !must {
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
	n, ok := l.pace.measure(now, out, false)
	if !ok || l.careful || r.source.Prefetch > 0 {
		return
	}
	if 2*n <= l.want || 2*n >= 3*l.want {
		l.wants(n)
	}
}

// relax ends the careful start; r.mu is held.
func (r *reader) relax(l *live) {
	l.careful = false
	n := r.source.Prefetch
	if n == 0 {
		var measured bool
		if n, measured = l.pace.measure(time.Now(), l.window.out, true); !measured {
			n = eagerPrefetch
		}
	}
	l.wants(n)
}

// feed allows a starving caller more than its pace suggests: it may collect messages before it works them.
func (r *reader) feed(l *live) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.live != l || l.careful || r.source.Prefetch > 0 || l.window.len() < l.prefetch || l.want != l.prefetch {
		return
	}
	n := min(2*l.prefetch, maxAdapted, max(1, maxAhead*l.window.len()/max(1, l.window.bytes)))
	if n > l.prefetch {
		l.pace.floor = n
		l.wants(n)
	}
}

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
