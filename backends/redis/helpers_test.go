package redis

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
)

// onEach runs a test on both kinds of servers.
func onEach(t *testing.T, f func(t *testing.T, kind testserver.RedisKind)) {
	t.Parallel()
	for _, kind := range []testserver.RedisKind{testserver.Redis, testserver.Valkey} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			f(t, kind)
		})
	}
}

// connect opens a store that is closed at the end of the test.
func connect(t testing.TB, addr string, opts ...Option) *Store {
	t.Helper()
	s := openURL(t, "redis://"+addr, opts...)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// over makes a store over a client of the test.
func over(t testing.TB, client redis.UniversalClient, opts ...Option) *Store {
	t.Helper()
	s, err := New(client, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.Close()
		_ = client.Close()
	})
	return s
}

func short(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func begin(t testing.TB, s *Store, ttl time.Duration) backends.Session {
	t.Helper()
	h, err := s.Open(short(t), backends.SessionOptions{Group: "g", Node: "n", TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func renewIn(t testing.TB, h backends.Session, incarnation string) (backends.RenewReply, error) {
	t.Helper()
	return h.Renew(short(t), backends.RenewRequest{Incarnation: incarnation})
}

func mustRenew(t testing.TB, h backends.Session) backends.RenewReply {
	t.Helper()
	r, err := renewIn(t, h, h.Opened().Incarnation)
	if err != nil {
		t.Fatalf("renewal: %v", err)
	}
	return r
}

func commitOne(t testing.TB, h backends.Session, incarnation string, txn backends.Txn) backends.Result {
	t.Helper()
	r, err := h.Commit(short(t), backends.CommitRequest{Incarnation: incarnation, Txns: []backends.Txn{txn}})
	if err != nil {
		t.Fatalf("commit: %v", err)
	}
	return r.Results[0]
}

func mustPut(t testing.TB, h backends.Session, key string, bound bool) int64 {
	t.Helper()
	r := commitOne(t, h, h.Opened().Incarnation, backends.Txn{Puts: []backends.Put{{Key: key, Value: []byte("v"), Bound: bound}}})
	if r.Err != nil {
		t.Fatalf("put: %v", r.Err)
	}
	return r.Versions[key]
}

func versionOf(t testing.TB, h backends.Session, key string) int64 {
	t.Helper()
	r, err := h.Read(short(t), backends.ReadRequest{Keys: []string{key}, NamesOnly: true})
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	if len(r.Entries) == 0 {
		return 0
	}
	return r.Entries[0].Version
}

// eventually polls until f gives nil.
func eventually(t testing.TB, patience time.Duration, f func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("in vain for %v: %v", patience, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func wantErr(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%s: %v, want %v", what, err, want)
	}
}

// counter counts what a client sends: commands, each pipeline once.
type counter struct {
	mu    sync.Mutex
	names []string
}

func (c *counter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *counter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.add(cmd.Name())
		return next(ctx, cmd)
	}
}

func (c *counter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.add("pipeline")
		return next(ctx, cmds)
	}
}

func (c *counter) add(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.names = append(c.names, name)
}

// take gives what was sent since the last call.
func (c *counter) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	names := c.names
	c.names = nil
	return names
}
