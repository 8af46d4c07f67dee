package redis

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
)

// A server that is killed and has no data afterwards begins an incarnation, and versions go on growing.
func TestKilledWithoutData(t *testing.T) {
	onEach(t, func(t *testing.T, kind testserver.RedisKind) {
		server := testserver.StartRedis(t, kind)
		h := begin(t, connect(t, server.Addr()), 10*time.Second)
		before := mustPut(t, h, "k", true)
		server.Kill()
		server.Restart()
		r, err := renewIn(t, h, h.Opened().Incarnation)
		wantErr(t, "renewal after the loss", err, backends.ErrSessionLost)
		again := begin(t, connect(t, server.Addr()), 10*time.Second)
		if o := again.Opened(); o.Incarnation == h.Opened().Incarnation || o.Incarnation != r.Incarnation || o.Since.IsZero() {
			t.Fatalf("stamp %+v after the loss, before %+v, in the refusal %+v", o, h.Opened(), r.Stamp)
		}
		res := commitOne(t, again, again.Opened().Incarnation, backends.Txn{Puts: []backends.Put{{Key: "k"}}, Grace: time.Hour})
		wantErr(t, "commit within the grace", res.Err, backends.ErrGrace)
		if after := mustPut(t, again, "k", true); after <= before {
			t.Fatalf("version %d after %d", after, before)
		}
	})
}

// A server that is killed and comes back with its data may have lost the last of them: an incarnation too, but claims and sessions are there.
func TestRestartWithAppendOnlyFile(t *testing.T) {
	onEach(t, func(t *testing.T, kind testserver.RedisKind) {
		server := testserver.StartRedis(t, kind, "--appendonly", "yes", "--appendfsync", "always")
		h := begin(t, connect(t, server.Addr()), time.Minute)
		before := mustPut(t, h, "k", true)
		server.Kill()
		server.Restart()
		r, err := renewIn(t, h, h.Opened().Incarnation)
		wantErr(t, "renewal after the restart", err, backends.ErrIncarnation)
		res := commitOne(t, h, h.Opened().Incarnation, backends.Txn{Puts: []backends.Put{{Key: "k"}}})
		wantErr(t, "commit in the earlier incarnation", res.Err, backends.ErrIncarnation)
		if v := versionOf(t, h, "k"); v != before {
			t.Fatalf("the claim has version %d, it had %d", v, before)
		}
		if again, err := renewIn(t, h, r.Incarnation); err != nil || again.Incarnation != r.Incarnation || !again.Since.Equal(r.Since) {
			t.Fatalf("renewal in the new incarnation: %+v, %v", again.Stamp, err)
		}
	})
}

func TestFrozenServer(t *testing.T) {
	onEach(t, func(t *testing.T, kind testserver.RedisKind) {
		server := testserver.StartRedis(t, kind)
		s := connect(t, server.Addr())
		h := begin(t, s, time.Minute)
		server.Freeze()
		keepsDeadlines(t, s, h)
		server.Thaw()
		eventually(t, 10*time.Second, func() error {
			_, err := renewIn(t, h, h.Opened().Incarnation)
			return err
		})
	})
}

// keepsDeadlines makes every call while the server does not answer.
func keepsDeadlines(t *testing.T, s *Store, h backends.Session) {
	t.Helper()
	inc := h.Opened().Incarnation
	for name, call := range map[string]func(context.Context) error{
		"Open": func(ctx context.Context) error {
			_, err := s.Open(ctx, backends.SessionOptions{Group: "other", TTL: time.Minute})
			return err
		},
		"Groups": func(ctx context.Context) error { _, err := s.Groups(ctx); return err },
		"Renew": func(ctx context.Context) error {
			_, err := h.Renew(ctx, backends.RenewRequest{Incarnation: inc})
			return err
		},
		"Read": func(ctx context.Context) error { _, err := h.Read(ctx, backends.ReadRequest{}); return err },
		"Commit": func(ctx context.Context) error {
			r, err := h.Commit(ctx, backends.CommitRequest{Incarnation: inc, Txns: []backends.Txn{{Puts: []backends.Put{{Key: "late"}}}}})
			if err != nil {
				t.Errorf("a commit that was sent: %v", err)
			} else if !errors.Is(r.Results[0].Err, backends.ErrUnknown) {
				t.Errorf("a commit without an answer: %v", r.Results[0].Err)
			}
			return r.Results[0].Err
		},
		"Supersede": func(ctx context.Context) error { _, err := h.Supersede(ctx, "nobody"); return err },
		"Listen":    func(ctx context.Context) error { return h.Listen(ctx, "unheard", func() {}) },
		"Warnings":  func(ctx context.Context) error { _, err := s.Warnings(ctx); return err },
		"Close":     h.Close,
	} {
		for _, cancelled := range []bool{false, true} {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			if cancelled { // a context without a deadline
				cancel()
				ctx, cancel = context.WithCancel(t.Context())
				time.AfterFunc(100*time.Millisecond, cancel)
			}
			start := time.Now()
			err := call(ctx)
			cancel()
			if took := time.Since(start); err == nil || took > 3*time.Second {
				t.Errorf("%s with a server that does not answer: %v after %v", name, err, took)
			}
		}
	}
}

func TestCutAndBlackhole(t *testing.T) {
	onEach(t, func(t *testing.T, kind testserver.RedisKind) {
		server := testserver.StartRedis(t, kind)
		link := testserver.Proxy(t, server.Addr())
		s, other := connect(t, link.Addr()), connect(t, server.Addr())
		h, by := begin(t, s, time.Minute), begin(t, other, time.Minute)
		var hints atomic.Int64
		if err := h.Listen(t.Context(), "a", func() { hints.Add(1) }); err != nil {
			t.Fatal(err)
		}
		for name, fault := range map[string]func(){"cut": link.Cut, "blackhole": link.Blackhole} {
			tried := begin(t, s, time.Minute)
			fault()
			keepsDeadlines(t, s, tried)
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			if _, err := h.Renew(ctx, backends.RenewRequest{Incarnation: h.Opened().Incarnation}); err == nil {
				t.Fatalf("%s: a renewal succeeded", name)
			}
			cancel()
			link.Heal()
			eventually(t, 20*time.Second, func() error {
				_, err := renewIn(t, h, h.Opened().Incarnation)
				return err
			})
			before := hints.Load()
			eventually(t, 20*time.Second, func() error {
				commitOne(t, by, by.Opened().Incarnation, backends.Txn{Wake: []string{"a"}})
				if hints.Load() == before {
					return errors.New("no hint came after " + name)
				}
				return nil
			})
		}
	})
}

// A client that repeats commands by itself sends a commit twice when the answer is lost: it is applied once.
func TestRepeatedCommitIsAppliedOnce(t *testing.T) {
	onEach(t, func(t *testing.T, kind testserver.RedisKind) {
		server := testserver.StartRedis(t, kind)
		link := testserver.Proxy(t, server.Addr())
		client := redis.NewClient(&redis.Options{Addr: link.Addr(), ReadTimeout: 300 * time.Millisecond, MaxRetries: 3, MinRetryBackoff: 50 * time.Millisecond})
		s := over(t, client)
		h := begin(t, s, time.Minute)
		watch := begin(t, connect(t, server.Addr()), time.Minute)
		first := mustPut(t, h, "k", true)
		link.Deaf()
		done := make(chan backends.Result, 1)
		go func() {
			done <- commitOne(t, h, h.Opened().Incarnation, backends.Txn{Checks: []backends.Check{{Key: "k", Version: first}},
				Puts: []backends.Put{{Key: "k", Bound: true}}})
		}()
		var second int64
		eventually(t, 10*time.Second, func() error {
			if second = versionOf(t, watch, "k"); second == first {
				return errors.New("not applied")
			}
			return nil
		})
		link.Heal()
		r := <-done
		wantErr(t, "a commit that was repeated", r.Err, backends.ErrUnknown)
		if now := versionOf(t, watch, "k"); now != second {
			t.Fatalf("it was applied twice: version %d, then %d", second, now)
		}
	})
}

func TestFlushUnderASession(t *testing.T) {
	onEach(t, func(t *testing.T, kind testserver.RedisKind) {
		server := testserver.StartRedis(t, kind)
		h := begin(t, connect(t, server.Addr()), time.Minute)
		before := mustPut(t, h, "k", true)
		server.Must("FLUSHALL")
		res := commitOne(t, h, h.Opened().Incarnation, backends.Txn{Puts: []backends.Put{{Key: "k", Bound: true}}})
		wantErr(t, "commit after the flush", res.Err, backends.ErrSessionLost)
		again := begin(t, connect(t, server.Addr()), time.Minute)
		if again.Opened().Incarnation == h.Opened().Incarnation {
			t.Fatal("the same incarnation")
		}
		if after := mustPut(t, again, "k", true); after <= before {
			t.Fatalf("version %d after %d", after, before)
		}
	})
}
