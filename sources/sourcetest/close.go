package sourcetest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/rebalancer-go/rebalancer/sources"
)

func closeGivesBack(tb testing.TB, w *world) {
	name := w.Resources[0]
	bodies := w.send(tb, name, 10)
	r := w.open(tb, name)
	ms := w.fetch(tb, r, 6)
	fence, id := ms[3].Fence, ms[3].ID
	w.settle(tb, r, sources.Done, ms[0], ms[2], ms[4])
	if err := r.Close(w.ctx(tb)); err != nil {
		tb.Fatal(err)
	}
	bodies = append(bodies, w.send(tb, name, 2)...)
	r = w.open(tb, name)
	again := w.arrange(tb, w.fetch(tb, r, 9))
	w.want(tb, again, append([]string{bodies[1], bodies[3], bodies[5]}, bodies[6:]...)...)
	for i, m := range again {
		if m.Fence != w.fence {
			tb.Fatalf("message %d: fence %d, want that of the new claim, %d", i, m.Fence, w.fence)
		}
		if m.Attempt != 1 && !w.BurnsOnClose {
			tb.Fatalf("message %d: attempt %d after a Close, want 1", i, m.Attempt)
		}
	}
	if again[1].ID != id {
		tb.Errorf("the ID changed from %q to %q", id, again[1].ID)
	}
	if ms[3].Fence != fence || ms[3] == again[1] {
		tb.Error("a message in the caller's hands was changed by its redelivery")
	}
	w.settle(tb, r, sources.Done, again...)
	w.none(tb, r)
}

func closeEndsFetch(tb testing.TB, w *world) {
	r := w.open(tb, w.Resources[0])
	waiting := w.fetching(w.ctx(tb), r)
	for range 3 {
		if err := r.Close(w.ctx(tb)); err != nil {
			tb.Fatal(err)
		}
	}
	if res := w.await(tb, waiting); !errors.Is(res.err, sources.ErrClosed) || len(res.ms) > 0 {
		tb.Fatalf("Fetch during Close: %d messages, error %v", len(res.ms), res.err)
	}
}

func nothingAfterClose(tb testing.TB, w *world) {
	name := w.Resources[0]
	w.send(tb, name, 10)
	r := w.open(tb, name)
	w.fetch(tb, r, 2)
	if err := r.Close(w.ctx(tb)); err != nil {
		tb.Fatal(err)
	}
	if ms, err := r.Fetch(w.ctx(tb), 10); !errors.Is(err, sources.ErrClosed) || len(ms) > 0 {
		tb.Fatalf("Fetch after Close: %d messages, error %v", len(ms), err)
	}
}

func lateSettle(tb testing.TB, w *world) {
	name := w.Resources[0]
	bodies := w.send(tb, name, 2)
	r := w.open(tb, name)
	ms := w.fetch(tb, r, 2)
	if err := r.Close(w.ctx(tb)); err != nil {
		tb.Fatal(err)
	}
	if err := r.Settle(w.ctx(tb), settlements(sources.Done, ms...)); !errors.Is(err, sources.ErrClosed) {
		tb.Errorf("Settle after Close: %v", err)
	}
	if n := w.Left(name); n != 2 {
		tb.Fatalf("%d messages left after a late Settle, want 2", n)
	}
	next := w.open(tb, name)
	again := w.arrange(tb, w.fetch(tb, next, 2))
	w.want(tb, again, bodies...)
	w.settle(tb, next, sources.Done, ms...) // of the other Reader: not known here
	if n := w.Left(name); n != 2 {
		tb.Fatalf("%d messages left after a Settle of another Reader's messages, want 2", n)
	}
	w.settle(tb, next, sources.Done, again...)
	w.eventually(tb, "everything settled", func() bool { return w.Left(name) == 0 })
}

// concurrent works all resources at once: one goroutine sends, one fetches, one settles, and each Reader is replaced
// in the middle.
func concurrent(tb testing.TB, w *world) {
	const n = 60
	var wg sync.WaitGroup
	bodies := map[string][]string{}
	readers := map[string]sources.Reader{}
	for _, name := range w.Resources {
		bodies[name] = w.send(tb, name, n)
		readers[name] = w.open(tb, name)
	}
	for _, name := range w.Resources {
		wg.Go(func() {
			first, err := w.work(readers[name], n/2)
			if err != nil {
				tb.Errorf("%s: %v", name, err)
				return
			}
			r, err := w.Source.Open(context.Background(), w.claim(name))
			if err != nil {
				tb.Errorf("%s: %v", name, err)
				return
			}
			rest, err := w.work(r, n-len(first))
			if err != nil {
				tb.Errorf("%s: %v", name, err)
			}
			if got := append(first, rest...); !slices.Equal(got, bodies[name]) {
				tb.Errorf("%s: got %q, want %q", name, got, bodies[name])
			}
		})
	}
	wg.Wait()
}

// work fetches and settles beside each other until n messages are settled, then closes r.
func (w *world) work(r sources.Reader, n int) ([]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), w.patience)
	defer cancel()
	batches := make(chan []sources.Settlement, n)
	settled := make(chan error, 1)
	go func() {
		var errs []error
		for s := range batches {
			errs = append(errs, r.Settle(ctx, s))
		}
		settled <- errors.Join(errs...)
	}()
	var ids []string
	var err error
	for len(ids) < n && err == nil {
		ms, ferr := r.Fetch(ctx, min(5, n-len(ids)))
		err = ferr
		for _, m := range ms {
			b, rerr := readAll(ctx, m)
			err = errors.Join(err, rerr)
			ids = append(ids, b)
		}
		batches <- settlements(sources.Done, ms...)
	}
	close(batches)
	return ids, errors.Join(err, <-settled, r.Close(ctx))
}
