package rabbitmq

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rebalancer-go/rebalancer"
)

// TestWindow compares a window that is settled in any order with a broker that is strict: it closes the channel when it is told up to a tag that
// it was told of before.
func TestWindow(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	defer func() {
		if t.Failed() {
			t.Logf("seed %d: set it in TestWindow to replay", seed)
		}
	}()
	c := &rebalancer.Claim{Resource: "q", Fence: 1}
	renew := func(e *entry) *rebalancer.Message { m := new(rebalancer.Message); fill(m, e, c); return m }
	var w window
	now := time.Unix(1000, 0)
	unacked := map[uint64]bool{}
	var hand []*rebalancer.Message
	tag, want := uint64(0), 1
	handed := map[int]bool{}
	for step := range 20000 {
		now = now.Add(time.Duration(rnd.IntN(100)) * time.Millisecond)
		switch rnd.IntN(5) {
		case 0:
			for range rnd.IntN(20) {
				tag++
				unacked[tag] = true
				w.add(newEntry(&amqp.Delivery{DeliveryTag: tag, Body: []byte(fmt.Sprint(tag))}, c, true))
			}
		case 1:
			for e, _ := w.first(now); e != nil && rnd.IntN(10) > 0; e, _ = w.first(now) {
				m := w.take(e, renew)
				var n int
				fmt.Sscan(string(m.Body), &n)
				if !handed[n] {
					if n != want {
						t.Fatalf("step %d: %d was handed out, want %d", step, n, want)
					}
					want++
					handed[n] = true
				}
				hand = append(hand, m)
			}
		case 2:
			for range rnd.IntN(len(hand) + 1) {
				i := rnd.IntN(len(hand))
				m := hand[i]
				hand = append(hand[:i], hand[i+1:]...)
				if rnd.IntN(4) == 0 {
					m.Native = nil // a handler did what it should not
				}
				at := w.find(m)
				if at < 0 {
					t.Fatalf("step %d: a message in hand is not known", step)
				}
				if rnd.IntN(5) == 0 {
					w.give(w.list[at], m.Attempt+1, now.Add(time.Duration(rnd.IntN(200))*time.Millisecond))
				} else {
					w.finish(at, now)
				}
				if w.find(m) >= 0 {
					t.Fatalf("step %d: a settled message is known", step)
				}
			}
		case 3:
			if up, ok := w.ack(); ok {
				if !unacked[up] {
					t.Fatalf("step %d: told up to %d, of which the broker knows already", step, up)
				}
				for x := range unacked {
					if x <= up {
						delete(unacked, x)
					}
				}
			}
		case 4:
			for _, x := range w.single(now.Add(-time.Second)) {
				if !unacked[x] {
					t.Fatalf("step %d: told of %d twice", step, x)
				}
				delete(unacked, x)
			}
		}
		if w.unacked() != len(unacked) || w.out != len(hand) {
			t.Fatalf("step %d: %d unacknowledged, want %d; %d in hand, want %d", step, w.unacked(), len(unacked), w.out, len(hand))
		}
	}
	if len(w.list) > 10*w.len()+10000 {
		t.Errorf("the list has %d places for %d", len(w.list), w.len())
	}
}

// TestWindowWithOneThatTakesLong: what is finished behind it is neither kept nor looked at again and again.
func TestWindowWithOneThatTakesLong(t *testing.T) {
	t.Parallel()
	c := &rebalancer.Claim{Resource: "q", Fence: 1}
	var w window
	now := time.Unix(1000, 0)
	next := func(tag uint64) *rebalancer.Message {
		w.add(newEntry(&amqp.Delivery{DeliveryTag: tag, Body: make([]byte, 10)}, c, true))
		e, _ := w.first(now)
		return w.take(e, nil)
	}
	slow := next(1)
	const n = 20000
	for tag := uint64(2); tag <= n; tag++ {
		w.finish(w.find(next(tag)), now)
		if tag%10 == 0 {
			if got := len(w.single(now)); got < 9 {
				t.Fatalf("tag %d: told of %d", tag, got)
			}
		}
	}
	for i := 1; i < len(w.list); i++ {
		if w.list[i] != w.gone {
			t.Fatalf("what is told is kept at %d of %d", i, len(w.list))
		}
	}
	if w.scan != n || w.unacked() != 1 || w.bytes != 10 {
		t.Fatalf("scanned to %d, %d unacknowledged, %d bytes", w.scan, w.unacked(), w.bytes)
	}
	w.finish(w.find(slow), now)
	if tag, ok := w.ack(); !ok || tag != 1 || w.len() != 0 || w.told != 0 {
		t.Fatalf("told up to %d %v, %d left", tag, ok, w.len())
	}
	if m := next(n + 1); w.find(m) < 0 {
		t.Fatal("the next is not known")
	}
}

// TestWindowOfTwoConsumers: what an earlier consumer was sent does not count against the prefetch of the one in use.
func TestWindowOfTwoConsumers(t *testing.T) {
	t.Parallel()
	c := &rebalancer.Claim{Resource: "q", Fence: 1}
	l := &live{prefetch: 3}
	w := &l.window
	arrive := func(tags ...uint64) {
		for _, tag := range tags {
			if !w.add(newEntry(&amqp.Delivery{DeliveryTag: tag, Body: []byte("x")}, c, true)) {
				t.Fatalf("delivery %d was refused", tag)
			}
		}
	}
	want := func(what string, ours, unacked int, spent bool) {
		t.Helper()
		if w.ours != ours || w.unacked() != unacked || l.spent() != spent {
			t.Errorf("%s: %d of the consumer's, %d in all, spent %v", what, w.ours, w.unacked(), l.spent())
		}
	}
	arrive(1, 2, 3)
	want("the first's", 3, 3, true)
	w.turn()
	want("another consumer", 0, 3, false)
	arrive(4, 5)
	want("it was sent two", 2, 5, false)
	var ms []*rebalancer.Message
	for e, _ := w.first(time.Time{}); e != nil; e, _ = w.first(time.Time{}) {
		ms = append(ms, w.take(e, nil))
	}
	w.finish(w.find(ms[1]), time.Time{})
	w.finish(w.find(ms[4]), time.Time{})
	if n := len(w.single(time.Time{})); n != 2 {
		t.Fatalf("told of %d", n)
	}
	want("one of each was told singly", 1, 3, false)
	arrive(6, 7)
	want("and two more came", 3, 5, true)
	w.finish(w.find(ms[0]), time.Time{})
	w.finish(w.find(ms[2]), time.Time{})
	w.finish(w.find(ms[3]), time.Time{})
	if tag, ok := w.ack(); !ok || tag != 4 {
		t.Fatalf("told up to %d %v", tag, ok)
	}
	want("the rest was told in one", 2, 2, false)
}

// TestWindowWithAGap: an acknowledgement up to a tag would be one of a message that nobody saw.
func TestWindowWithAGap(t *testing.T) {
	t.Parallel()
	c := &rebalancer.Claim{Resource: "q", Fence: 1}
	for _, tags := range [][]uint64{{2}, {1, 3}, {1, 1}, {1, 2, 4}, {0}} {
		l := &live{prefetch: 10, want: 10}
		r := &reader{claim: c, live: l, wake: make(chan struct{}, 1)}
		for i, tag := range tags {
			_, err := r.arrived(l, &amqp.Delivery{DeliveryTag: tag})
			if (err != nil) != (i == len(tags)-1) {
				t.Errorf("%v: delivery %d: %v", tags, tag, err)
			}
			if err == nil {
				m, _ := l.window.first(time.Time{})
				l.window.finish(l.window.find(l.window.take(m, nil)), time.Time{})
				l.window.ack()
			}
		}
	}
}
