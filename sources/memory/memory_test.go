package memory

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources"
)

func open(t testing.TB, s *Source, resource string, fence int64) sources.Reader {
	t.Helper()
	r, err := s.Open(context.Background(), &rebalancer.Claim{Group: "g", Node: "n", Resource: resource, Fence: fence})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func fetch(t testing.TB, r sources.Reader, max int) []*rebalancer.Message {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	ms, err := r.Fetch(ctx, max)
	if err != nil {
		t.Fatal(err)
	}
	return append([]*rebalancer.Message(nil), ms...)
}

func settle(t testing.TB, r sources.Reader, o sources.Outcome, ms ...*rebalancer.Message) {
	t.Helper()
	ss := make([]sources.Settlement, len(ms))
	for i, m := range ms {
		ss[i] = sources.Settlement{Message: m, Outcome: o, Err: errors.New("no good")}
	}
	if err := r.Settle(context.Background(), ss); err != nil {
		t.Fatal(err)
	}
}

func TestIdleInABubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := New()
		_ = s.Send("a", "1", "2")
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		if err := s.Idle(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Idle with messages waiting: %v", err)
		}
		cancel()
		idle := make(chan error)
		go func() { idle <- s.Idle(t.Context()) }()
		r := open(t, s, "a", 1)
		ms := fetch(t, r, 10)
		synctest.Wait()
		select {
		case <-idle:
			t.Fatal("Idle returned with messages in flight")
		default:
		}
		settle(t, r, sources.Reject, ms[0])
		if err := r.Settle(t.Context(), []sources.Settlement{{Message: ms[1], Outcome: sources.Retry, Delay: time.Minute}}); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		settle(t, r, sources.Done, fetch(t, r, 10)...)
		if d := time.Since(start); d != time.Minute {
			t.Fatalf("retried after %v, not a minute", d)
		}
		if err := <-idle; err != nil {
			t.Fatal(err)
		}
		if c := s.Counts("a"); c != (Counts{Done: 1, Rejected: 1}) {
			t.Fatalf("counts: %+v", c)
		}
		rej := s.Rejected("a")
		if len(rej) != 1 || string(rej[0].Message.Body) != "1" || rej[0].Err == nil {
			t.Fatalf("rejected: %+v", rej)
		}
	})
}

func TestCutAndRemove(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := New()
		_ = s.Send("a", "1")
		r := open(t, s, "a", 1)
		ms := fetch(t, r, 1)
		blocked := make(chan error)
		go func() { _, err := r.Fetch(t.Context(), 1); blocked <- err }()
		synctest.Wait()
		s.Cut("a")
		if err := <-blocked; !errors.Is(err, ErrCut) {
			t.Fatalf("Fetch in progress: %v", err)
		}
		done := []sources.Settlement{{Message: ms[0]}}
		if err := r.Settle(t.Context(), done); !errors.Is(err, ErrCut) {
			t.Fatalf("Settle: %v", err)
		}
		if _, err := s.Open(t.Context(), &rebalancer.Claim{Resource: "a"}); !errors.Is(err, ErrCut) {
			t.Fatalf("Open: %v", err)
		}
		s.Restore("a")
		if err := r.Settle(t.Context(), done); err != nil {
			t.Fatal(err)
		}
		_ = s.Send("a", "2")
		ms = fetch(t, r, 1)
		go func() { _, err := r.Fetch(t.Context(), 1); blocked <- err }()
		synctest.Wait()
		s.Remove("a")
		if err := <-blocked; !errors.Is(err, sources.ErrGone) {
			t.Fatalf("Fetch in progress: %v", err)
		}
		settle(t, r, sources.Done, ms...)
		if err := s.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if names, _ := s.Discover(t.Context(), "*"); len(names) != 0 {
			t.Fatalf("a removed resource is discovered: %q", names)
		}
		_ = s.Send("a", "3")
		if ms = fetch(t, r, 1); string(ms[0].Body) != "3" {
			t.Fatalf("got %q", ms[0].Body)
		}
	})
}

// TestCloseWakesAnotherReader: what one Reader gives back goes to the one that waits.
func TestCloseWakesAnotherReader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := New()
		_ = s.Send("a", "1")
		first, second := open(t, s, "a", 1), open(t, s, "a", 2)
		fetch(t, first, 1)
		got := make(chan int, 1)
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			ms, _ := second.Fetch(ctx, 1)
			got <- len(ms)
		}()
		synctest.Wait()
		_ = first.Close(t.Context())
		if n := <-got; n != 1 {
			t.Fatal("the Reader that waited got nothing")
		}
	})
}

func TestOverlaps(t *testing.T) {
	t.Parallel()
	s := New()
	_ = s.Send("a", "1", "2", "3")
	r1 := open(t, s, "a", 1)
	fetch(t, r1, 1)
	r2 := open(t, s, "a", 2)
	if n := s.Overlaps(); n != 0 {
		t.Fatalf("%d overlaps before the second reader delivered", n)
	}
	fetch(t, r2, 1)
	if n := s.Overlaps(); n != 1 {
		t.Fatalf("%d overlaps, want 1", n)
	}
	_ = r1.Close(context.Background())
	fetch(t, r2, 1)
	if n := s.Overlaps(); n != 1 {
		t.Fatalf("%d overlaps, want 1: the other reader is closed", n)
	}
}

// TestRandom compares a reader that settles in any order, gives back and is replaced with a plain model: nothing lost,
// nothing twice, and what is handed out to one reader without a give-back in between is in order.
func TestRandom(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	rnd := rand.New(rand.NewPCG(seed, 0))
	defer func() {
		if t.Failed() {
			t.Logf("seed %d: set it in TestRandom to replay", seed)
		}
	}()
	s := New()
	const n = 20000
	for i := range n {
		_ = s.Send("a", fmt.Sprint(i))
	}
	done := map[string]bool{}
	r := open(t, s, "a", 1)
	var hand []*rebalancer.Message
	for len(done) < n {
		if len(hand) == 0 || rnd.IntN(3) == 0 && s.Counts("a").Waiting > 0 {
			hand = append(hand, fetch(t, r, 1+rnd.IntN(3000))...)
		}
		rnd.Shuffle(rnd.IntN(len(hand)+1), func(i, j int) { hand[i], hand[j] = hand[j], hand[i] })
		k := rnd.IntN(len(hand) + 1)
		for _, m := range hand[:k] {
			if rnd.IntN(5) == 0 {
				settle(t, r, sources.Release, m, m)
				continue
			}
			settle(t, r, sources.Done, m, m)
			if done[m.ID] {
				t.Fatalf("message %s worked twice", m.ID)
			}
			done[m.ID] = true
		}
		hand = hand[k:]
		if got := s.Counts("a"); got.InFlight != len(hand) || got.Waiting != n-len(done)-len(hand) {
			t.Fatalf("counts %+v, in hand %d, done %d", got, len(hand), len(done))
		}
		if rnd.IntN(20) == 0 {
			_ = r.Close(context.Background())
			r, hand = open(t, s, "a", 2), nil
		}
	}
	if err := s.Idle(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// TestStuckHead: one delivery that is never settled must not make the list of deliveries grow.
func TestStuckHead(t *testing.T) {
	t.Parallel()
	s := New()
	r := open(t, s, "a", 1)
	_ = s.Send("a", "stuck")
	stuck := fetch(t, r, 1)
	for range 10000 {
		_ = s.Send("a", "x")
		settle(t, r, sources.Done, fetch(t, r, 1)...)
	}
	if n := len(r.(*reader).flight.list); n > 3000 {
		t.Fatalf("the list has %d places for one delivery", n)
	}
	settle(t, r, sources.Done, stuck...)
}

// BenchmarkFetchSettle measures Fetch and Settle alone, per message; the sender is left out.
func BenchmarkFetchSettle(b *testing.B) {
	for _, batch := range []int{1, 10, 100} {
		b.Run(fmt.Sprint(batch), func(b *testing.B) {
			s := New()
			r := open(b, s, "a", 1)
			ctx := context.Background()
			ms := make([]rebalancer.Message, 1000)
			for i := range ms {
				ms[i].ID, ms[i].Body = "id", []byte("body")
			}
			ss := make([]sources.Settlement, 0, batch)
			var spent time.Duration
			for left := b.N; left > 0; left -= len(ms) {
				_ = s.SendMessages("a", ms...)
				start := time.Now()
				for range len(ms) / batch {
					got, err := r.Fetch(ctx, batch)
					if err != nil {
						b.Fatal(err)
					}
					ss = ss[:0]
					for _, m := range got {
						ss = append(ss, sources.Settlement{Message: m})
					}
					if err := r.Settle(ctx, ss); err != nil {
						b.Fatal(err)
					}
				}
				spent += time.Since(start)
			}
			b.ReportMetric(float64(spent)/float64((b.N+len(ms)-1)/len(ms)*len(ms)), "ns/message")
		})
	}
}
