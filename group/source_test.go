package group

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer"
)

func TestSourceThatCannotBeOpenedMoves(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.source.Cut("q")
		a := w.start(w.config("a", "q"), nil)
		time.Sleep(5 * time.Second)
		if _, ok := w.event("a", KindDeclined); !ok {
			t.Fatalf("events: %v", w.kinds("a"))
		}
		w.source.Restore("q")
		_ = w.source.Send("q", "m")
		w.idle()
		_ = a.end()
	})
}

func TestGoneResourceIsWaitedFor(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.source.Remove("q")
		r := w.start(w.config("a", "q"), nil)
		r.wait("in trouble", func(s Status) bool { return len(s.Resources) == 1 && s.Resources[0].Err != nil })
		time.Sleep(time.Hour)
		_ = w.source.Send("q", "m")
		w.idle()
		w.source.Remove("q") // while it is being read
		time.Sleep(time.Hour)
		_ = w.source.Send("q", "n")
		w.idle()
		if got := w.bodies("q"); !slices.Equal(got, []string{"m", "n"}) {
			t.Fatalf("worked %q", got)
		}
		_ = r.end()
		if slices.Contains(w.kinds("a"), KindDeclined) {
			t.Fatal("a resource that does not exist is not a decline")
		}
	})
}

func TestSourceOutage(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		_ = w.source.Send("q", "1", "2")
		cut := make(chan struct{})
		r := w.start(w.config("a", "q"), func(_ context.Context, m *rebalancer.Message) error {
			if string(m.Body) == "2" {
				w.source.Cut("q")
				close(cut)
			}
			w.note("a", m)
			return nil
		})
		<-cut
		time.Sleep(50 * time.Millisecond)
		w.source.Restore("q")
		_ = w.source.Send("q", "3")
		w.idle()
		_ = r.end()
		if got := w.bodies("q"); !slices.Equal(got, []string{"1", "2", "3"}) {
			t.Fatalf("worked %q: what failed to be settled is settled later, not worked again", got)
		}
		if _, ok := w.event("a", KindSource); !ok {
			t.Fatal("not reported")
		}
		if _, ok := w.event("a", KindRecovered); !ok {
			t.Fatal("recovery not reported")
		}
	})
}

func TestSourceIsOpenedAgain(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := w.start(w.config("a", "q"), nil)
		r.holds("q")
		time.Sleep(time.Second) // it is open
		w.source.Cut("q")
		time.Sleep(time.Minute)
		w.source.Restore("q")
		_ = w.source.Send("q", "m")
		w.idleWithin(time.Hour)
		_ = r.end()
		if n := len(slices.DeleteFunc(w.kinds("a"), func(k EventKind) bool { return k != KindStarted })); n < 2 {
			t.Fatalf("opened %d times", n)
		}
	})
}

type closeCounter struct {
	io.Reader
	n *int
}

func (c closeCounter) Close() error { *c.n++; return nil }

func TestStreamsAreClosed(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		closed, opened := 0, 0
		_ = w.source.SendMessages("q", rebalancer.Message{Size: -1, Stream: func(context.Context) (io.ReadCloser, error) {
			opened++
			return closeCounter{strings.NewReader("text"), &closed}, nil
		}})
		var kept *rebalancer.Message
		r := w.start(w.config("a", "q"), func(ctx context.Context, m *rebalancer.Message) error {
			kept = m
			a, _ := m.Open(ctx)
			b, _ := m.Open(ctx)
			text, _ := io.ReadAll(a)
			if string(text) != "text" {
				t.Errorf("read %q", text)
			}
			_ = b.Close()
			_ = b.Close()
			if m.Attempt == 1 {
				return errBad
			}
			return nil
		})
		w.idle()
		_ = r.end()
		if opened != 4 || closed != 4 || kept == nil {
			t.Fatalf("opened %d, closed %d", opened, closed)
		}
	})
}
