package sourcetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/sources"
)

func namesCanonical(tb testing.TB, w *world) {
	in := slices.Clone(w.Resources)
	slices.Reverse(in)
	given := slices.Clone(in)
	out, err := w.Source.Names(in)
	if err != nil {
		tb.Fatalf("Names(%q): %v", in, err)
	}
	if !slices.Equal(out, given) || !slices.Equal(in, given) {
		tb.Fatalf("Names(%q) = %q: the fixture's names are canonical and keep their order", given, out)
	}
	for spelling, canonical := range w.Spellings {
		out, err := w.Source.Names([]string{spelling})
		if err != nil || len(out) != 1 || out[0] != canonical {
			tb.Errorf("Names(%q) = %q, %v; want %q", spelling, out, err, canonical)
		}
		if out, err = w.Source.Names([]string{canonical}); err != nil || out[0] != canonical {
			tb.Errorf("Names(%q) = %q, %v: not idempotent", canonical, out, err)
		}
	}
	if out, err := w.Source.Names(nil); err != nil || len(out) != 0 {
		tb.Errorf("Names of an empty list: %q, %v", out, err)
	}
}

func namesRefused(tb testing.TB, w *world) {
	same := append([][]string{{w.Resources[0], w.Resources[1], w.Resources[0]}}, w.Same...)
	for spelling, canonical := range w.Spellings {
		if spelling != canonical {
			same = append(same, []string{spelling, canonical})
		}
	}
	for _, list := range same {
		if out, err := w.Source.Names(list); err == nil {
			tb.Errorf("Names(%q) = %q: two of them are one resource", list, out)
		}
	}
	for _, name := range append([]string{""}, w.Wrong...) {
		if out, err := w.Source.Names([]string{w.Resources[0], name}); err == nil {
			tb.Errorf("Names(%q) = %q: no resource", name, out)
		}
	}
	if len(w.Wrong) > 1 {
		_, err := w.Source.Names(w.Wrong)
		for _, name := range w.Wrong {
			if err != nil && !strings.Contains(err.Error(), fmt.Sprintf("%q", name)) {
				tb.Errorf("Names(%q) does not name %q in its error: %v", w.Wrong, name, err)
			}
		}
	}
}

func openContext(tb testing.TB, w *world) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if r, err := w.Source.Open(ended, w.claim(w.Resources[0])); err == nil {
		_ = r.Close(context.Background())
		tb.Error("Open with an ended context succeeded")
	} else if !errors.Is(err, context.Canceled) {
		tb.Errorf("Open with an ended context: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r, err := w.Source.Open(ctx, w.claim(w.Resources[0]))
	cancel()
	if err != nil {
		tb.Fatal(err)
	}
	w.none(tb, r)
	bodies := w.send(tb, w.Resources[0], 2)
	ms := w.fetch(tb, r, 2)
	w.want(tb, ms, bodies...)
	w.settle(tb, r, sources.Done, ms...)
	if err := r.Close(w.ctx(tb)); err != nil {
		tb.Error(err)
	}
}

func gone(tb testing.TB, w *world) {
	r, err := w.Source.Open(w.ctx(tb), w.claim(w.Missing))
	if w.Remove == nil {
		if err != nil {
			tb.Fatalf("Open(%q): %v; the fixture says that resources never cease to exist", w.Missing, err)
		}
		_ = r.Close(context.Background())
		return
	}
	if !errors.Is(err, sources.ErrGone) {
		tb.Fatalf("Open of a resource that does not exist: %v", err)
	}
	name := w.Resources[0]
	r = w.open(tb, name)
	waiting := w.fetching(w.ctx(tb), r)
	if err := w.Remove(name); err != nil {
		tb.Fatal(err)
	}
	if res := w.await(tb, waiting); !errors.Is(res.err, sources.ErrGone) {
		tb.Fatalf("Fetch of a removed resource: %v", res.err)
	}
	if _, err := w.Source.Open(w.ctx(tb), w.claim(name)); !errors.Is(err, sources.ErrGone) {
		tb.Fatalf("Open of a removed resource: %v", err)
	}
}

func order(tb testing.TB, w *world) {
	name := w.Resources[0]
	bodies := w.send(tb, name, 40)
	r := w.open(tb, name)
	ids := map[string]bool{}
	ctx := w.ctx(tb)
	for got := 0; got < len(bodies); {
		ms, err := r.Fetch(ctx, 7)
		if err != nil {
			tb.Fatal(err)
		}
		if len(ms) < 1 || len(ms) > 7 {
			tb.Fatalf("Fetch(max 7) returned %d messages", len(ms))
		}
		w.want(tb, ms, bodies[got:got+len(ms)]...)
		for _, m := range ms {
			if m.Resource != name || m.Fence != w.fence || m.Attempt != 1 {
				tb.Fatalf("resource %q, fence %d, attempt %d; want %q, %d, 1", m.Resource, m.Fence, m.Attempt, name, w.fence)
			}
			if m.ID == "" || ids[m.ID] {
				tb.Fatalf("ID %q is empty or not unique", m.ID)
			}
			if m.Size != -1 && m.Size != int64(len(bodies[got])) {
				tb.Fatalf("size %d, want %d or -1", m.Size, len(bodies[got]))
			}
			ids[m.ID] = true
			got++
		}
	}
	w.none(tb, r)
}

func fetchMax(tb testing.TB, w *world) {
	r := w.open(tb, w.Resources[0])
	for _, max := range []int{0, -1} {
		ctx, cancel := context.WithTimeout(context.Background(), w.quiet)
		ms, err := r.Fetch(ctx, max)
		cancel()
		if err == nil || len(ms) > 0 || errors.Is(err, context.DeadlineExceeded) {
			tb.Errorf("Fetch(max %d): %d messages, error %v", max, len(ms), err)
		}
	}
}

func fetchWaits(tb testing.TB, w *world) {
	r := w.open(tb, w.Resources[0])
	waiting := w.fetching(w.ctx(tb), r)
	select {
	case res := <-waiting:
		tb.Fatalf("Fetch of an empty resource returned %d messages, error %v", len(res.ms), res.err)
	default:
	}
	bodies := w.send(tb, w.Resources[0], 1)
	res := w.await(tb, waiting)
	if res.err != nil {
		tb.Fatal(res.err)
	}
	w.want(tb, res.ms, bodies...)
}

func fetchContext(tb testing.TB, w *world) {
	name := w.Resources[0]
	r := w.open(tb, name)
	ctx, cancel := context.WithCancel(context.Background())
	waiting := w.fetching(ctx, r)
	cancel()
	if res := w.await(tb, waiting); !errors.Is(res.err, context.Canceled) || len(res.ms) > 0 {
		tb.Fatalf("Fetch whose context ended: %d messages, error %v", len(res.ms), res.err)
	}
	bodies := w.send(tb, name, 30)
	var got []string
	deadline := time.Now().Add(w.patience)
	for len(got) < len(bodies) {
		if time.Now().After(deadline) {
			tb.Fatalf("%d of %d messages came", len(got), len(bodies))
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rand.Int64N(int64(w.quiet))))
		ms, err := r.Fetch(ctx, 1)
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			tb.Fatal(err)
		}
		for _, m := range ms {
			got = append(got, w.body(tb, m))
		}
	}
	if !slices.Equal(got, bodies) {
		tb.Fatalf("got %q, want %q", got, bodies)
	}
}

func ownership(tb testing.TB, w *world) {
	name := w.Resources[0]
	bodies := w.send(tb, name, 6)
	r := w.open(tb, name)
	ms, err := r.Fetch(w.ctx(tb), 3)
	if err != nil {
		tb.Fatal(err)
	}
	n := len(ms)
	first := slices.Clone(ms)
	clear(ms)
	rest := w.fetch(tb, r, 6-n)
	w.want(tb, append(slices.Clone(first), rest...), bodies...)
	first[0].Attempt = 7 // the runtime counts its retries there
	w.settle(tb, r, sources.Done, append(first, rest...)...)
	w.eventually(tb, "everything settled", func() bool { return w.Left(name) == 0 })
}

func payload(tb testing.TB, w *world) {
	name := w.Resources[0]
	big := make([]byte, w.MaxBody)
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range big {
		big[i] = byte(rnd.Uint32())
		if w.Text {
			big[i] = 'a' + big[i]%26
		}
	}
	small := []byte(nil)
	if w.Text {
		small = []byte("1")
	}
	w.sendOne(tb, name, "1", big)
	w.sendOne(tb, name, "2", small)
	r := w.open(tb, name)
	ms := w.fetch(tb, r, 2)
	for range 2 {
		w.want(tb, ms, string(big), string(small))
	}
	rc, err := ms[0].Open(w.ctx(tb)) // closed in the middle
	if err != nil {
		tb.Fatal(err)
	}
	part := make([]byte, w.MaxBody/3)
	if _, err := io.ReadFull(rc, part); err != nil || !bytes.Equal(part, big[:len(part)]) {
		tb.Fatalf("the first third is wrong: %v", err)
	}
	if err := rc.Close(); err != nil {
		tb.Fatal(err)
	}
	w.settle(tb, r, sources.Done, ms...)
}

func lag(tb testing.TB, w *world) {
	l, ok := w.Source.(sources.Lagger)
	if !ok {
		return // an optional interface
	}
	w.send(tb, w.Resources[0], 5)
	if n, err := l.Lag(w.ctx(tb), w.Resources[0]); err != nil || n != 5 {
		tb.Errorf("Lag = %d, %v; want 5", n, err)
	}
	if n, err := l.Lag(w.ctx(tb), w.Resources[1]); err != nil || n != 0 {
		tb.Errorf("Lag of an empty resource = %d, %v", n, err)
	}
	if _, err := l.Lag(w.ctx(tb), w.Missing); w.Remove != nil && !errors.Is(err, sources.ErrGone) {
		tb.Errorf("Lag of a resource that does not exist: %v", err)
	}
}

func discover(tb testing.TB, w *world) {
	d, ok := w.Source.(sources.Discoverer)
	if !ok {
		return // an optional interface
	}
	for _, name := range w.Resources {
		w.send(tb, name, 1)
		got, err := d.Discover(w.ctx(tb), name)
		if err != nil || !slices.Equal(got, []string{name}) {
			tb.Errorf("Discover(%q) = %q, %v", name, got, err)
		}
	}
	if got, err := d.Discover(w.ctx(tb), w.Missing); err != nil || len(got) != 0 {
		tb.Errorf("Discover(%q) = %q, %v", w.Missing, got, err)
	}
	if _, err := d.Discover(w.ctx(tb), "[a-"); err == nil {
		tb.Error("Discover accepted a pattern that is none")
	}
}
