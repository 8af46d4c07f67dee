package sourcetest

import (
	"errors"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources"
)

func done(tb testing.TB, w *world) {
	name := w.Resources[0]
	bodies := w.send(tb, name, 5)
	r := w.open(tb, name)
	ms := w.fetch(tb, r, 5)
	w.settle(tb, r, sources.Done)
	w.settle(tb, r, sources.Done, ms[3], ms[0], ms[2]) // in any order
	w.eventually(tb, "three settled", func() bool { return w.Left(name) == 2 })
	w.none(tb, r)
	if err := r.Close(w.ctx(tb)); err != nil {
		tb.Fatal(err)
	}
	r = w.open(tb, name)
	w.want(tb, w.arrange(tb, w.fetch(tb, r, 2)), bodies[1], bodies[4])
	w.none(tb, r)
}

func release(tb testing.TB, w *world) {
	name := w.Resources[0]
	bodies := w.send(tb, name, 3)
	r := w.open(tb, name)
	ms := w.fetch(tb, r, 3)
	w.settle(tb, r, sources.Release, ms[2], ms[1])
	again := w.fetch(tb, r, 2)
	w.want(tb, again, bodies[1], bodies[2])
	if again[0].ID != ms[1].ID {
		tb.Errorf("the ID changed from %q to %q", ms[1].ID, again[0].ID)
	}
	if a := again[0].Attempt; a != 1 && !w.BurnsOnClose {
		tb.Errorf("attempt %d after a release, want 1", a)
	}
	w.settle(tb, r, sources.Done, ms[0], again[0], again[1])
	w.eventually(tb, "everything settled", func() bool { return w.Left(name) == 0 })
}

func retry(tb testing.TB, w *world) {
	name := w.Resources[0]
	bodies := w.send(tb, name, 2)
	r := w.open(tb, name)
	ms := w.fetch(tb, r, 2)
	w.settle(tb, r, sources.Done, ms[1])
	delay := 2 * w.quiet
	start := time.Now()
	s := settlements(sources.Retry, ms[0])
	s[0].Delay = delay
	if err := r.Settle(w.ctx(tb), s); err != nil {
		tb.Fatal(err)
	}
	again := w.fetch(tb, r, 1)
	if d := time.Since(start); d < delay {
		tb.Errorf("came again after %v, delay %v", d, delay)
	}
	w.want(tb, again, bodies[0])
	if again[0].ID != ms[0].ID || again[0].Attempt != 2 {
		tb.Errorf("ID %q, attempt %d; want %q, 2", again[0].ID, again[0].Attempt, ms[0].ID)
	}
	w.settle(tb, r, sources.Retry, again...) // no delay
	again = w.fetch(tb, r, 1)
	if again[0].Attempt != 3 {
		tb.Errorf("attempt %d, want 3", again[0].Attempt)
	}
	w.settle(tb, r, sources.Done, again...)
	w.eventually(tb, "everything settled", func() bool { return w.Left(name) == 0 })
}

func reject(tb testing.TB, w *world) {
	if !w.Source.DeadLetters() {
		return // see noDeadLetter
	}
	name := w.Resources[0]
	bodies := w.send(tb, name, 3)
	r := w.open(tb, name)
	ms := w.fetch(tb, r, 3)
	w.settle(tb, r, sources.Reject, ms[1])
	w.eventually(tb, "one rejected", func() bool { return len(w.Rejected(name)) == 1 })
	if got := w.Rejected(name)[0]; got != bodies[1] {
		tb.Fatalf("%q was rejected, want %q", got, bodies[1])
	}
	if n := w.Left(name); n != 2 {
		tb.Fatalf("%d messages left, want 2", n)
	}
	w.none(tb, r)
	w.settle(tb, r, sources.Done, ms[0], ms[2])
}

func noDeadLetter(tb testing.TB, w *world) {
	if w.Source.DeadLetters() {
		return // see reject
	}
	name := w.Resources[0]
	w.send(tb, name, 3)
	r := w.open(tb, name)
	ms := w.fetch(tb, r, 3)
	s := settlements(sources.Done, ms...)
	s[1].Outcome = sources.Reject
	err := r.Settle(w.ctx(tb), s)
	var some *sources.SettleError
	if !errors.As(err, &some) || len(some.Failed) != 1 || !errors.Is(some.Failed[1], sources.ErrNoDeadLetter) {
		tb.Fatalf("Settle: %v; want a SettleError with ErrNoDeadLetter at index 1", err)
	}
	w.eventually(tb, "the others settled", func() bool { return w.Left(name) == 1 })
	w.none(tb, r)                          // it is still in hand
	w.settle(tb, r, sources.Done, ms[1])   // and may be settled otherwise
	w.settle(tb, r, sources.Reject, ms...) // all of them are settled: ignored
	w.eventually(tb, "everything settled", func() bool { return w.Left(name) == 0 })
}

func settleUnknown(tb testing.TB, w *world) {
	name := w.Resources[0]
	w.send(tb, name, 2)
	w.send(tb, w.Resources[1], 1)
	r, other := w.open(tb, name), w.open(tb, w.Resources[1])
	ms, theirs := w.fetch(tb, r, 1), w.fetch(tb, other, 1)
	lookalike := &rebalancer.Message{Resource: name, ID: ms[0].ID, Key: ms[0].Key, Fence: ms[0].Fence, Attempt: 1}
	for o := sources.Done; o <= sources.Reject; o++ {
		w.settle(tb, r, o, theirs[0], &rebalancer.Message{}, nil, &rebalancer.Message{ID: "nobody"}, lookalike)
	}
	if n, m := w.Left(name), w.Left(w.Resources[1]); n != 2 || m != 1 {
		tb.Fatalf("%d and %d messages left, want 2 and 1", n, m)
	}
	w.settle(tb, r, sources.Done, ms[0], ms[0])
	w.settle(tb, r, sources.Reject, ms[0])
	w.settle(tb, r, sources.Release, ms[0])
	w.settle(tb, r, sources.Done, w.fetch(tb, r, 1)...)
	w.none(tb, r)
	w.settle(tb, other, sources.Done, theirs...)
}

func settleBesideFetch(tb testing.TB, w *world) {
	name := w.Resources[0]
	w.send(tb, name, 2)
	r := w.open(tb, name)
	ms := w.fetch(tb, r, 2)
	waiting := w.fetching(w.ctx(tb), r)
	settled := make(chan error, 1)
	go func() { settled <- r.Settle(w.ctx(tb), settlements(sources.Done, ms...)) }()
	select {
	case err := <-settled:
		if err != nil {
			tb.Fatal(err)
		}
	case res := <-waiting:
		tb.Fatalf("Fetch returned %d messages, error %v", len(res.ms), res.err)
	}
	bodies := w.send(tb, name, 1)
	res := w.await(tb, waiting)
	if res.err != nil {
		tb.Fatal(res.err)
	}
	w.want(tb, res.ms, bodies...)
	w.settle(tb, r, sources.Done, res.ms...)
}
