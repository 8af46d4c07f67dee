package rabbitmq

import (
	"iter"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rebalancer-go/rebalancer"
)

// state is where a delivery is between its arrival and its acknowledgement.
type state uint8

const (
	arrived state = iota // not handed out yet
	out                  // in the caller's hands
	back                 // given back by the caller, to be handed out again
	done                 // settled; the broker is to be told
	told                 // the broker was told
)

// entry is one delivery. The first message that is made of it lives in the entry: one allocation for both.
type entry struct {
	m       *rebalancer.Message // as handed out last
	first   rebalancer.Message
	returns int           // to the queue, before this delivery
	marker  *marker       // what it is, when it is no message
	d       amqp.Delivery // its Acknowledger is nil
	state   state
	due     time.Time // in state back: not before
	attempt int       // in state back: the next
	since   time.Time // in state done, above the lowest unfinished: since when
}

// window holds the deliveries of one channel from the lowest that the broker was not told of, in the order of their tags,
// which grow by one from 1 on. The reader's mutex guards it.
type window struct {
	list  []*entry
	head  int    // of list; what is before is told
	base  uint64 // tag of list[head]
	next  int    // from here on, all have just arrived
	low   int    // all before are done
	above int    // done at low or later
	backs int    // in state back
	bytes int    // bodies of what is not done
	told  int    // in state told
	gone  *entry // stands in the list for all that are told: a message that is worked for long holds up no memory
	scan  int    // all after low and before are told
	out   int    // in state out

	last uint64 // tag of the last that arrived
	from uint64 // tag from which on they are of the consumer in use
	ours int    // of these, unacknowledged: what the broker counts against the prefetch, which is a consumer's own
}

// add takes in the next delivery. It is false when that is not the next: with a gap, tags would be told for others than are meant.
func (w *window) add(e *entry) bool {
	if e.d.DeliveryTag != w.last+1 {
		return false
	}
	w.last++
	w.ours++
	if w.len() == 0 {
		w.list, w.head, w.next, w.low, w.scan = w.list[:0], 0, 0, 0, 0
		w.base = e.d.DeliveryTag
	}
	if w.head >= 256 && 2*w.head >= len(w.list) {
		n := copy(w.list, w.list[w.head:])
		clear(w.list[n:])
		w.list, w.next, w.low, w.scan, w.head = w.list[:n], w.next-w.head, w.low-w.head, max(0, w.scan-w.head), 0
	}
	w.list = append(w.list, e)
	w.bytes += len(e.d.Body)
	return true
}

// turn notes that another consumer follows.
func (w *window) turn() { w.from, w.ours = w.last+1, 0 }

// tell notes that the broker is told of a tag.
func (w *window) tell(tag uint64) {
	if tag >= w.from {
		w.ours--
	}
}

func (w *window) len() int { return len(w.list) - w.head }

// unacked is how many the broker holds for this channel.
func (w *window) unacked() int { return w.len() - w.told }

// find returns the place of a message that is in the caller's hands, or -1. The delivery that the message carries says
// where to look; a message from which it was taken is looked for.
func (w *window) find(m *rebalancer.Message) int {
	if m == nil {
		return -1
	}
	if d, ok := m.Native.(*amqp.Delivery); ok && d != nil && d.DeliveryTag >= w.base {
		if i := d.DeliveryTag - w.base; i < uint64(w.len()) {
			if e := w.list[w.head+int(i)]; e.m == m && e.state == out {
				return w.head + int(i)
			}
		}
	}
	for i := w.head; i < w.next; i++ {
		if e := w.list[i]; e.m == m && e.state == out {
			return i
		}
	}
	return -1
}

// inHand are the entries in the caller's hands.
func (w *window) inHand() iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		for _, e := range w.list[w.low:w.next] {
			if e.state == out && !yield(e) {
				return
			}
		}
	}
}

// first returns the first entry that can be handed out at now, or when there will be one (zero: not known).
func (w *window) first(now time.Time) (*entry, time.Time) {
	var soonest time.Time
	if w.backs > 0 {
		for _, e := range w.list[w.low:w.next] {
			if e.state != back {
				continue
			}
			if !e.due.After(now) {
				return e, time.Time{}
			}
			if soonest.IsZero() || e.due.Before(soonest) {
				soonest = e.due
			}
		}
	}
	if w.next < len(w.list) {
		return w.list[w.next], time.Time{}
	}
	return nil, soonest
}

// take marks an entry that first returned as handed out. renew makes another message of it where one was handed out before:
// who still holds that one must not settle this one with it.
func (w *window) take(e *entry, renew func(*entry) *rebalancer.Message) *rebalancer.Message {
	if e.state == back {
		w.backs--
		e.m = renew(e)
	} else {
		w.next++
	}
	e.state = out
	w.out++
	return e.m
}

// give puts an entry back, to be handed out again as an attempt.
func (w *window) give(e *entry, attempt int, due time.Time) {
	e.state, e.attempt, e.due = back, attempt, due
	w.backs++
	w.out--
}

// finish marks an entry as settled.
func (w *window) finish(i int, now time.Time) {
	e := w.list[i]
	e.state, e.since = done, now
	w.bytes -= len(e.d.Body)
	w.out--
	w.above++
	for w.low < w.next && w.list[w.low].state >= done {
		if w.list[w.low].state == done {
			w.above--
		}
		w.low++
	}
}

// finished tells whether all that was delivered is settled.
func (w *window) finished() bool { return w.low == len(w.list) }

// pending is how many are settled in a row from the lowest on.
func (w *window) pending() int { return w.low - w.head }

// ack takes the tag up to which everything is settled, if that is new. The broker must not have been told of that very tag:
// it looks for it, and finding none it closes the channel.
func (w *window) ack() (tag uint64, ok bool) {
	for i := w.low - 1; i >= w.head; i-- {
		if w.list[i].state == told {
			w.told--
			continue
		}
		t := w.base + uint64(i-w.head)
		w.tell(t)
		if !ok {
			tag, ok = t, true
		}
	}
	clear(w.list[w.head:w.low])
	w.base += uint64(w.low - w.head)
	w.head = w.low
	return tag, ok
}

// single takes the tags of those above the lowest unfinished that were settled before a time.
func (w *window) single(before time.Time) []uint64 {
	if w.above == 0 {
		return nil
	}
	if w.gone == nil {
		w.gone = &entry{state: told}
	}
	var tags []uint64
	first := max(w.low, w.scan)
	for i := first; i < w.next; i++ {
		if e := w.list[i]; e.state == done && !e.since.After(before) {
			w.list[i] = w.gone
			w.told++
			w.above--
			tag := w.base + uint64(i-w.head)
			w.tell(tag)
			tags = append(tags, tag)
		}
	}
	for w.scan = max(first, w.low+1); w.scan < w.next && w.list[w.scan].state == told; {
		w.scan++
	}
	return tags
}
