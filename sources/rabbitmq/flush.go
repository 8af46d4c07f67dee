package rabbitmq

import (
	"context"
	"time"
)

const (
	// flushIdle is how long acknowledgements wait for others, flushMost how long at most while others come.
	flushIdle = 5 * time.Millisecond
	flushMost = 100 * time.Millisecond
	// flushPart of the prefetch, settled in a row, is acknowledged at once: the broker shall never run out of what it may send.
	flushPart = 4
	// flushSingle is how long one waits for a lower message that is still being worked, before it is sent by itself.
	flushSingle = time.Second
)

// flusher sends acknowledgements. One at a time: the broker takes an acknowledgement up to a tag amiss when it was told of
// that tag before.
type flusher struct {
	r     *reader
	send  turn // held while acknowledgements are taken and written, and while the prefetch is changed
	timer *time.Timer

	// Guarded by the reader's mutex.
	armed   bool
	pending int       // settled when the timer was armed
	since   time.Time // of the first that waits
	stopped bool
}

func newFlusher(r *reader) *flusher {
	f := &flusher{r: r, send: make(turn, 1)}
	f.timer = time.AfterFunc(time.Hour, f.tick)
	f.timer.Stop()
	return f
}

// turn is a mutex that can be waited for within a time. Its capacity is 1.
type turn chan struct{}

func (t turn) Lock()   { t <- struct{}{} }
func (t turn) Unlock() { <-t }

// within is Lock; false when ctx ended first.
func (t turn) within(ctx context.Context) bool {
	select {
	case t <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// some sends what is due, or everything that is settled in a row at once, and sees to it that the rest is sent later.
func (f *flusher) some(l *live, now bool) { f.someWithin(context.Background(), l, now) }

// someWithin is some that does not wait beyond ctx for others who send.
func (f *flusher) someWithin(ctx context.Context, l *live, now bool) {
	f.r.mu.Lock()
	due := now || l.window.pending() >= max(1, l.prefetch/flushPart) || l.window.above >= max(1, l.prefetch/2)
	f.r.mu.Unlock()
	if due {
		f.writeWithin(ctx, l, false)
	}
	f.r.mu.Lock()
	defer f.r.mu.Unlock()
	if f.r.live == l {
		f.armLocked(l)
	}
}

// armLocked starts the timer if something waits; the reader's mutex is held.
func (f *flusher) armLocked(l *live) {
	if f.armed || f.stopped || l.window.pending() == 0 && l.window.above == 0 {
		return
	}
	wait := flushIdle
	if l.window.pending() == 0 || l.careful {
		wait = flushSingle / 4
	}
	f.armed, f.pending, f.since = true, l.window.pending(), time.Now()
	f.timer.Reset(wait)
}

// tick sends what has waited long enough.
func (f *flusher) tick() {
	f.r.mu.Lock()
	l := f.r.live
	f.armed = false
	if l == nil || f.stopped {
		f.r.mu.Unlock()
		return
	}
	if n := l.window.pending(); n > f.pending && f.pending > 0 && time.Since(f.since) < flushMost {
		f.armed, f.pending = true, n
		f.timer.Reset(flushIdle)
		f.r.mu.Unlock()
		return
	}
	f.r.mu.Unlock()
	f.some(l, true)
}

// heldLocked tells whether nothing is to be acknowledged now, since it would allow the broker to send more. While the prefetch
// is to be changed (see live.full); the one message of a careful start, until the next is asked for: nobody may want that, and
// then it is returned unworked; and when the reader closes, until last. The reader's mutex is held.
func (f *flusher) heldLocked(l *live, force bool) bool {
	switch {
	case f.r.live != l:
		return true
	case force:
		return false
	case f.r.closed:
		return !l.concluded
	case l.want != l.prefetch:
		return true
	}
	return l.careful && !f.r.waiting && l.window.pending() > 0 && time.Since(l.window.list[l.window.head].since) < flushSingle
}

// writeWithin acknowledges what is settled in a row in one, and what is above that singly: what has waited, or all when it is half of
// what the broker may send or the reader closes. Errors mean that the channel is lost, which the pump notices; the messages
// come again. With force nothing holds them up. It is false, and nothing is sent, when others send or change the prefetch until ctx ends.
func (f *flusher) writeWithin(ctx context.Context, l *live, force bool) bool {
	f.r.mu.Lock()
	held := f.heldLocked(l, force)
	f.r.mu.Unlock()
	if held {
		return true // not to wait for a change of the prefetch
	}
	if !f.send.within(ctx) {
		return false
	}
	defer f.send.Unlock()
	f.writeLocked(l, force)
	return true
}

// last is the write of a reader that closes. Where nothing can be on its way, nothing shall be sent for what is acknowledged now: it would be
// returned unworked. No acknowledgement comes between the look and the cancellation, whose answer is not waited for. But where something is
// left in hand the consumer stays until the channel is closed: the broker says that it is, and puts back what was in hand a moment later. Whoever finds
// the queue without a consumer in that moment starts beyond it.
func (f *flusher) last(l *live) {
	f.send.Lock()
	defer f.send.Unlock()
	f.r.mu.Lock()
	spent := f.r.live == l && l.spent() && l.window.finished()
	f.r.mu.Unlock()
	if spent { // unanswered: until the channel is closed others might take the queue, which has no consumer then, for free
		_ = l.ch.Cancel(l.tag, true)
	}
	f.writeLocked(l, true)
	f.r.mu.Lock()
	l.concluded = true
	f.r.mu.Unlock()
}

// writeLocked is writeWithin; f.send is held.
func (f *flusher) writeLocked(l *live, force bool) {
	f.r.mu.Lock()
	if f.heldLocked(l, force) {
		f.r.mu.Unlock()
		return
	}
	tag, some := l.window.ack()
	now := time.Now()
	before := now.Add(-flushSingle)
	if f.r.closed || l.window.above >= max(1, l.prefetch/2) {
		before = now
	}
	singles := l.window.single(before)
	f.r.mu.Unlock()
	if some && l.ch.Ack(tag, true) != nil {
		return
	}
	for _, tag := range singles {
		if l.ch.Ack(tag, false) != nil {
			return
		}
	}
}

// stop ends the timer.
func (f *flusher) stop() {
	f.r.mu.Lock()
	f.stopped = true
	f.r.mu.Unlock()
	f.timer.Stop()
}
