package group

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources"
	"github.com/rebalancer-go/rebalancer/sources/memory"
)

// read copies what a reply notes.
func (r *scripted) read(taken *[]string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(*taken)
}

// refuses settles all but the messages whose ID begins with "bad", while on.
func refuses(on *atomic.Bool, taken *[]string) func(int, []sources.Settlement) error {
	return func(_ int, s []sources.Settlement) error {
		failed := map[int]error{}
		for i, x := range s {
			if on.Load() && strings.HasPrefix(x.Message.ID, "bad") {
				failed[i] = errBad
				continue
			}
			*taken = append(*taken, x.Message.ID)
		}
		if len(failed) > 0 {
			return &sources.SettleError{Failed: failed}
		}
		return nil
	}
}

// TestOneThatCannotBeSettled: the others are, while it is tried again and again, and it is when it can be.
func TestOneThatCannotBeSettled(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		wk, _ := loneWorker(w, nil)
		var on atomic.Bool
		on.Store(true)
		var taken []string
		r := &scripted{reply: refuses(&on, &taken)}
		s := newSettler(wk, r)
		for _, id := range []string{"bad", "1", "2", "3"} {
			s.add(done(id)[0])
			time.Sleep(time.Minute)
		}
		if got := r.lines(); len(got) < inPlace+3 {
			t.Errorf("calls: %q", got)
		}
		if !slices.Equal(r.read(&taken), []string{"1", "2", "3"}) {
			t.Fatalf("taken %q beside one that is refused", r.read(&taken))
		}
		if k := w.kinds("a"); slices.Contains(k, KindRecovered) {
			t.Errorf("recovered before all is settled: %v", k)
		}
		on.Store(false)
		time.Sleep(time.Hour)
		s.stop()
		if !slices.Equal(r.read(&taken), []string{"1", "2", "3", "bad"}) || s.unsettled != 0 {
			t.Errorf("taken %q, %d unsettled", r.read(&taken), s.unsettled)
		}
		wk.end(nil)
		if k := w.kinds("a"); k[len(k)-1] != KindRecovered {
			t.Errorf("events: %v", k)
		}
	})
}

// TestOneThatCannotBeSettledAtTheEnd: what is aside is tried until the grace is over, not longer.
func TestOneThatCannotBeSettledAtTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		wk, _ := loneWorker(w, nil)
		var on atomic.Bool
		on.Store(true)
		var taken []string
		r := &scripted{reply: refuses(&on, &taken)}
		s := newSettler(wk, r)
		s.add(done("bad")[0])
		time.Sleep(time.Minute)
		s.add(done("1")[0])
		began := time.Now()
		s.stop()
		if d := time.Since(began); d < DefaultGrace || d > 2*DefaultGrace || !slices.Equal(r.read(&taken), []string{"1"}) {
			t.Errorf("after %v, taken %q", d, r.read(&taken))
		}
		wk.end(nil)
	})
}

// TestOrderBehindOneThatCannotBeSettled: outcomes of its key wait behind it, those of other keys do not.
func TestOrderBehindOneThatCannotBeSettled(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		wk, _ := loneWorker(w, nil)
		var on atomic.Bool
		on.Store(true)
		var taken []string
		r := &scripted{reply: func(_ int, s []sources.Settlement) error {
			if on.Load() && s[0].Message.ID == "k1" {
				return errBad
			}
			for _, x := range s {
				taken = append(taken, x.Message.ID)
			}
			return nil
		}}
		s := newSettler(wk, r)
		for _, id := range []string{"k1", "k2", "other", "k3"} {
			x := done(id)[0]
			x.Message.Key = id[:1]
			s.add(x)
			time.Sleep(time.Minute)
		}
		if !slices.Equal(r.read(&taken), []string{"other"}) {
			t.Fatalf("taken %q", r.read(&taken))
		}
		on.Store(false)
		time.Sleep(time.Hour)
		s.stop()
		if !slices.Equal(r.read(&taken), []string{"other", "k1", "k2", "k3"}) {
			t.Errorf("taken %q", r.read(&taken))
		}
		wk.end(nil)
	})
}

// TestOneThatTakesTheTimeOfOthers: the first of a call leaves no time for what comes after it, so it does not stay the first.
func TestOneThatTakesTheTimeOfOthers(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		wk, _ := loneWorker(w, nil)
		var taken []string
		r := &scripted{reply: func(_ int, s []sources.Settlement) error {
			failed := map[int]error{}
			for i, x := range s {
				if len(failed) > 0 || strings.HasPrefix(x.Message.ID, "bad") {
					failed[i] = context.DeadlineExceeded
					continue
				}
				taken = append(taken, x.Message.ID)
			}
			if len(failed) > 0 {
				return &sources.SettleError{Failed: failed}
			}
			return nil
		}}
		s := newSettler(wk, r)
		for _, x := range done("bad1", "bad2", "1", "2") {
			s.add(x)
		}
		time.Sleep(time.Hour)
		if !slices.Equal(r.read(&taken), []string{"1", "2"}) {
			t.Errorf("taken %q", r.read(&taken))
		}
		s.stop()
		wk.end(nil)
	})
}

// slowRejects is a source that rejects nothing for a while, and then answers as it is told.
type slowRejects struct {
	*memory.Source
	on     *atomic.Bool
	answer error // instead of rejecting; nil: it does
}

func (s slowRejects) Open(ctx context.Context, c *rebalancer.Claim) (sources.Reader, error) {
	r, err := s.Source.Open(ctx, c)
	return slowRejectsReader{r, s}, err
}

type slowRejectsReader struct {
	sources.Reader
	s slowRejects
}

func (r slowRejectsReader) Settle(ctx context.Context, ss []sources.Settlement) error {
	switch {
	case ss[0].Outcome != sources.Reject:
	case r.s.on.Load():
		return &sources.SettleError{Failed: map[int]error{0: errBad}}
	case r.s.answer != nil:
		return &sources.SettleError{Failed: map[int]error{0: r.s.answer}}
	}
	return r.Reader.Settle(ctx, ss)
}

// TestRejectionThatIsNotTaken: it does not hold up what comes after it in a resource that is worked in order, and what becomes of it
// is told in the end.
func TestRejectionThatIsNotTaken(t *testing.T) {
	for _, answer := range []error{nil, sources.ErrNoDeadLetter, sources.ErrRedelivered} {
		name := "taken"
		if answer != nil {
			name = answer.Error()
		}
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				src := slowRejects{memory.New(), new(atomic.Bool), answer}
				src.on.Store(true)
				s := &script{w: w, fails: map[string][]error{"x": {rebalancer.Permanent(errBad), nil}}}
				_ = src.Send("q", "x", "y", "z")
				cfg := w.config("a", "q")
				cfg.Source = src
				r := w.start(cfg, s.handle)
				time.Sleep(5 * time.Minute)
				if got := s.said(); got != "x1 y1 z1" {
					t.Fatalf("calls while a rejection is not taken: %s", got)
				}
				src.on.Store(false)
				time.Sleep(time.Hour)
				want := map[error]EventKind{nil: KindRejected, sources.ErrNoDeadLetter: KindKept, sources.ErrRedelivered: KindFailed}[answer]
				e, ok := w.event("a", want)
				if !ok || !errors.Is(e.Err, errBad) {
					t.Errorf("no event %v in %v", want, w.kinds("a"))
				}
				if got := s.said(); answer != sources.ErrNoDeadLetter && got != "x1 y1 z1" || answer == sources.ErrNoDeadLetter && got != "x1 y1 z1 x2" {
					t.Errorf("calls: %s", got)
				}
				_ = r.end()
			})
		})
	}
}
