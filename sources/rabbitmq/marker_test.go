//go:build linux

package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rebalancer-go/rebalancer/internal/waittest"
	"github.com/rebalancer-go/rebalancer/sources"
)

// TestQueueThatIsDownIsNotGone: what waits for a token goes on only when the broker says that there is none.
func TestQueueThatIsDownIsNotGone(t *testing.T) {
	t.Parallel()
	answer := func(reason string) error { return explain(&amqp.Error{Code: amqp.NotFound, Reason: reason}) }
	if there, err := thereAfter(answer("NOT_FOUND - no queue 'x' in vhost '/'")); there || err != nil {
		t.Errorf("no queue: %v %v", there, err)
	}
	for _, reason := range []string{
		"NOT_FOUND - home node 'rabbit@a' of durable queue 'x' in vhost '/' is down or inaccessible",
		"NOT_FOUND - failed to perform operation on queue 'x' in vhost '/' due to timeout",
		"NOT_FOUND - queue 'x' in vhost '/' process is stopped by supervisor",
	} {
		if err := answer(reason); errors.Is(err, sources.ErrGone) || !strings.Contains(err.Error(), "cannot be reached") {
			t.Errorf("%s: %v", reason, err)
		}
		if there, err := thereAfter(answer(reason)); there || err == nil || errors.Is(err, sources.ErrGone) {
			t.Errorf("%s: %v %v", reason, there, err)
		}
	}
	if there, err := thereAfter(amqp.ErrClosed); there || !errors.Is(err, amqp.ErrClosed) {
		t.Errorf("%v %v", there, err)
	}
	if there, err := thereAfter(nil); !there || err != nil {
		t.Errorf("%v %v", there, err)
	}
}

// TestMarkersOfOthers: a header does not delete queues of others, and a marker that is not understood is not passed.
func TestMarkersOfOthers(t *testing.T) {
	t.Parallel()
	everywhere(t, kinds[1:2], func(t *testing.T, b *bench, k kind) {
		for i, m := range []marker{{kind: tells, tokens: []string{"precious"}}, {kind: "dance", tokens: []string{own + "x"}}, {kind: ends, tokens: []string{own + "x", "precious"}}} {
			queue := fmt.Sprint("q", i)
			b.declare(queue, k)
			b.declare("precious", k)
			must(t, b.publish(queue, m.publishing()))
			b.send(queue, 1)
			s := b.source(nil)
			r := open(t, s, queue)
			_, err := r.Fetch(within30(t), 1)
			if want := []string{"precious", "newer", "precious"}[i]; err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %v, want a word of %s", m, err, want)
			}
			quiet(t, r)
			must(t, s.Close())
		}
		b.ready("precious") // is there
	})
}

// TestMarkerNeedsRights: a user who may not delete tokens is told so, and nothing passes.
func TestMarkerNeedsRights(t *testing.T) {
	t.Parallel()
	everywhere(t, kinds[:1], func(t *testing.T, b *bench, k kind) {
		user := "reader-" + b.vhost
		b.r.User(user, "secret")
		b.r.Permit(user, b.vhost, "^$", "^$", ".*")
		b.declare("q", k)
		token := own + "q.x"
		b.declare(token, k)
		must(t, b.publish("q", (&marker{kind: tells, tokens: []string{token}}).publishing()))
		b.send("q", 1)
		s := b.source(func(c *Config) { c.URLs = []string{b.r.URLAt(b.r.Addr(), user, "secret", b.vhost)} })
		r := open(t, s, "q")
		if _, err := r.Fetch(within30(t), 1); err == nil || !strings.Contains(err.Error(), "configure") {
			t.Errorf("%v, want a word of the right to configure", err)
		}
		b.r.Permit(user, b.vhost, `^rebalancer\.`, "^$", ".*")
		deadline := within30(t)
		for {
			ms, err := r.Fetch(deadline, 1)
			if err == nil {
				settle(t, r, sources.Done, ms...)
				break
			}
			if deadline.Err() != nil {
				t.Fatal(err)
			}
		}
		must(t, s.Close())
	})
}

// TestMarkerBehindARejectedMessage: a Fetch that waits for what is before a marker is woken when that is in the dead-letter place.
func TestMarkerBehindARejectedMessage(t *testing.T) {
	t.Parallel()
	everywhere(t, kinds[:1], func(t *testing.T, b *bench, k kind) {
		b.declare("q", k)
		b.declare("dead", k)
		token := own + "q.x"
		b.declare(token, k)
		b.send("q", 1)
		must(t, b.publish("q", (&marker{kind: tells, tokens: []string{token}}).publishing()))
		s := b.source(func(c *Config) { c.EagerStart, c.Prefetch, c.DeadLetter = true, 100, Queue("dead") })
		r := open(t, s, "q")
		m := fetch(t, r, 1)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan struct{})
		go func() { defer close(ended); _, _ = r.Fetch(ctx, 1) }()
		waittest.Until(t, "Fetch waits", func() bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.waiting && r.live != nil && r.live.window.len() == 2
		})
		settle(t, r, sources.Reject, m...)
		waittest.Until(t, "the marker passes", func() bool { return b.total("q") == 0 })
		cancel()
		<-ended
		must(t, s.Close())
	})
}
