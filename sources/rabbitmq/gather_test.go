//go:build linux

package rabbitmq

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rebalancer-go/rebalancer/internal/waittest"
	"github.com/rebalancer-go/rebalancer/sources"
)

// TestOrderWhenOwnersComeAndGo: each owner gives back what it was sent, in good order or by a crash, before it has worked what the one before it gave back. The
// broker puts what is returned behind what was returned before, so that an owner must have had all of that.
func TestOrderWhenOwnersComeAndGo(t *testing.T) {
	t.Parallel()
	everywhere(t, []kind{kinds[1], kinds[3]}, func(t *testing.T, b *bench, k kind) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		rnd := rand.New(rand.NewPCG(seed, 0))
		for _, prefetch := range []int{0, 30} {
			b.sent = 0
			const queue = "q"
			b.declare(queue, k)
			const n = 150
			b.send(queue, n)
			open := func() (*Source, *reader) {
				s := b.source(func(c *Config) { c.Prefetch, c.DeliveryLimit = prefetch, -1 })
				return s, open(t, s, queue)
			}
			next := 1
			for round := range 12 {
				s, r := open()
				if round == 0 { // all at once in hand
					settle(t, r, sources.Done, fetch(t, r, 1)...)
					next++
				}
				switch what := rnd.IntN(4); what {
				case 0: // it leaves as soon as it has asked
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rnd.IntN(3000))*time.Microsecond)
					_, _ = r.Fetch(ctx, 1)
					cancel()
					must(t, r.Close(within30(t)))
				default:
					ms := fetch(t, r, 1+rnd.IntN(10))
					if got := texted(ms); got != numbers(next, next+len(ms)-1) {
						t.Fatalf("prefetch %d, round %d: got %s, want from %d on", prefetch, round, got, next)
					}
					done := rnd.IntN(1 + len(ms))
					settle(t, r, sources.Done, ms[:done]...)
					if next += done; what == 1 { // it crashes
						waittest.Until(t, "all that was returned is gathered", func() bool {
							r.mu.Lock()
							defer r.mu.Unlock()
							return r.live == nil || r.live.gathered && r.live.want == r.live.prefetch
						})
						waittest.Until(t, "acknowledged", func() bool { return b.total(queue) == n-next+1 })
						c, err := s.consuming.get(t.Context(), "")
						must(t, err)
						_ = c.wire.Close()
						_ = r.Close(within30(t))
						break
					}
					must(t, r.Close(within30(t)))
				}
				must(t, s.Close())
			}
			_, r := open()
			for ; next <= n; next++ {
				m := fetch(t, r, 1)[0]
				if string(m.Body) != fmt.Sprint(next) {
					t.Fatalf("prefetch %d, at the end: got %s, want %d", prefetch, m.Body, next)
				}
				settle(t, r, sources.Done, m)
			}
			must(t, r.Close(within30(t)))
			must(t, b.remove(queue))
		}
	})
}

// TestSuspectsAreWorkedAlone: where the first message was returned often, those behind it are not held beside it, and so not returned with it.
func TestSuspectsAreWorkedAlone(t *testing.T) {
	t.Parallel()
	everywhere(t, kinds[1:2], func(t *testing.T, b *bench, k kind) {
		const limit, n = 12, 10
		b.declare("q", k.with(amqp.Table{"x-delivery-limit": limit}))
		b.send("q", n)
		hold := func(messages int, eager bool) (counts []int) {
			s := b.source(func(c *Config) { c.DeliveryLimit, c.EagerStart = limit, eager })
			r := open(t, s, "q")
			for _, m := range fetch(t, r, messages) {
				counts = append(counts, m.Attempt-1)
			}
			r.mu.Lock()
			here := r.live.window.len()
			r.mu.Unlock()
			if here != messages {
				t.Errorf("%d messages are here, want %d", here, messages)
			}
			must(t, r.Close(within30(t)))
			must(t, s.Close())
			return counts
		}
		hold(n, true)
		for range limit/4 - 1 {
			hold(n, false)
		}
		hold(1, false) // it was returned limit/4 times
		if got, want := fmt.Sprint(hold(n, true)), fmt.Sprint(append(slices.Repeat([]int{limit / 4}, n-1), limit/4+1)); got != want {
			t.Errorf("they were returned %s times, want %s", got, want)
		}
	})
}

func TestSuspect(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		set     int
		told    facts
		version string
		want    int
	}{
		{version: "4.0.5", want: defaultLimit / 4},
		{version: "3.10.8", want: unknownSuspect},
		{version: "", want: unknownSuspect},
		{told: facts{told: true}, version: "3.10.8", want: never}, // the default there
		{told: facts{told: true}, version: "4.0.5", want: defaultLimit / 4},
		{told: facts{told: true, limit: 40}, version: "3.10.8", want: 10},
		{told: facts{told: true, limit: -1}, version: "4.0.5", want: never},
		{set: 3, told: facts{told: true, limit: 40}, version: "4.0.5", want: 0},
		{set: -1, told: facts{told: true, limit: 40}, version: "4.0.5", want: never},
	} {
		s := &Source{settings: settings{Config: Config{DeliveryLimit: c.set}}}
		conn := &conn{Connection: &amqp.Connection{Properties: amqp.Table{"version": c.version}}}
		if got := s.suspect(conn, c.told); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
	if never != math.MaxInt {
		t.Error("never can be reached")
	}
}
