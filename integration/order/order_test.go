//go:build linux

package order

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestOrderUnderFaults: for each key no gap and no step back among first completions, and nothing lost.
func TestOrderUnderFaults(t *testing.T) {
	t.Parallel()
	variants := []variant{{4, "quorum", "redis", 1}, {3, "quorum", "postgres", 4}}
	if *soak {
		variants = append(variants, variant{4, "classic", "redis", 1}, variant{3, "classic", "redis", 1})
	}
	for i, v := range variants {
		t.Run(v.String(), func(t *testing.T) {
			if !*soak { // the long ones load the machine too much together
				t.Parallel()
			}
			underFaults(t, v, i)
		})
	}
}

func underFaults(t *testing.T, v variant, number int) {
	rnd := random(t)
	w := newWorld(t, v, rnd)
	for range 4 {
		w.join()
	}
	if !within(time.Minute, func() bool { return w.held() == w.queues }) {
		t.Fatalf("%d of %d queues are worked at first", w.held(), w.queues)
	}
	p, check := newPress(t, w.broker.URL(w.vhost)), newVerifier(t, w.lines)
	began := time.Now()
	for round := 0; round == 0 || *soak && time.Since(began) < *lasting; round++ {
		deck := w.faults(number)
		rnd.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
		for _, fault := range deck {
			w.pause(200*time.Millisecond, time.Second)
			what := fault()
			check.read()
			t.Logf("%6.1f s: %s; %d sent, %d done, %d again", time.Since(began).Seconds(), what, p.total(), check.first, check.again)
			if len(check.wrong) > 0 {
				w.pause(3*time.Second, 4*time.Second) // does what is missing come after all?
				check.read()
				t.Fatalf("%d faults, the first: %s\nthe queue since:%s", len(check.wrong), check.wrong[0], check.around.String())
			}
		}
	}
	p.end()
	sent := p.confirmed()
	last := time.Now()
	if !within(2*time.Minute, func() bool { return check.complete(sent) }) {
		t.Errorf("not done: %s\n%s", strings.Join(check.missing(sent), "\n"), w.do("rabbitmq", "partitions", "show", exchange)+w.do("describe", "g"))
	}
	for _, f := range check.wrong {
		t.Error(f)
	}
	if got := len(check.byQueue); got < 5 {
		t.Errorf("messages came from %d queues, want 5 and more", got)
	}
	t.Logf("%d messages of %d keys from %v, %d again, all done %v after the last fault", check.first, len(sent), check.byQueue, check.again, time.Since(last).Round(time.Millisecond))
}

// faults are one of each kind, to be done one after the other: each returns what it did. In the short version each variant, by its number, leaves a third of
// them to the others. The broker is not killed: when all its nodes restart, the exchange gives keys to other queues than before (see sources/rabbitmq,
// "Partitions").
func (w *world) faults(number int) []func() string {
	deck := []func() string{w.grow, w.shrink}
	for i, fault := range []func() string{w.kill, w.freezeLong, w.freezeShort, w.cutBroker, w.cutStore, w.silence, w.roll, w.scale} {
		if *soak || i%3 != number {
			deck = append(deck, fault)
		}
	}
	if *soak {
		deck = append(deck, w.killStore, w.kill, w.freezeLong, w.cutBroker)
	}
	return deck
}

// grow adds a queue while a node is frozen: what is in that one's hands must be done before what moves from its queues to the new one.
func (w *world) grow() string {
	if w.queues >= 8 {
		return "enough queues"
	}
	n := w.any()
	n.signal(syscall.SIGSTOP)
	w.pause(ttl/8, ttl/4)
	w.do("rabbitmq", "partitions", "grow", exchange, fmt.Sprint(w.queues+1))
	w.register(w.queues, w.queues+1)
	w.pause(ttl/4, ttl/2)
	n.signal(syscall.SIGCONT)
	return w.queue(w.queues-1) + " added while " + n.name + " was frozen"
}

// shrink takes the last queue away, while a node dies.
func (w *world) shrink() string {
	more := ""
	if w.queues <= 4 {
		more = w.grow() + ", "
	}
	n := w.any()
	n.kill()
	w.drop(n)
	w.join()
	last := w.queue(w.queues - 1)
	w.do("rabbitmq", "partitions", "shrink", exchange, fmt.Sprint(w.queues-1))
	w.do("resources", "remove", "g", last)
	w.queues--
	return more + last + " taken away"
}

func (w *world) killStore() string {
	w.restart()
	return "the store killed and started again"
}
