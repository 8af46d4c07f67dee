package ftp

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebalancer-go/rebalancer/internal/files"
	"github.com/rebalancer-go/rebalancer/sources/pickup"
)

// memory is a remote without a server: each path is a file with the same body. What a test does not use is not there.
type memory struct {
	remote
	closed atomic.Int32
}

const memoryBody = "body"

func (m *memory) home() string                { return "/" }
func (m *memory) alive(context.Context) error { return nil }
func (m *memory) close() error                { m.closed.Add(1); return nil }
func (m *memory) stat(context.Context, string) (entry, error) {
	return entry{info: &files.Info{Size: int64(len(memoryBody))}}, nil
}
func (m *memory) open(context.Context, string, int64) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(memoryBody)), nil
}

// memoryPlace is a place whose connections are memories.
func memoryPlace(t *testing.T, c Config, dial dialer) *place {
	t.Helper()
	c.URL, c.OnSuccess = "ftp://host/", pickup.Delete()
	src, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	src.pool = newPool(dial, src.connections, src.timeout)
	return &place{source: src, resource: "."}
}

func inMemory(context.Context) (remote, error) { return &memory{}, nil }

// Handlers that each have one file open and want another one do not wait for each other for ever: one is turned away after Timeout, with an
// error that says what to do, and what it gives back is enough for the others.
func TestHandlersThatWaitForEachOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := memoryPlace(t, Config{Connections: 4, Timeout: 10 * time.Second}, inMemory)
		defer p.source.Close()
		want := files.Info{Size: int64(len(memoryBody))}
		var all sync.WaitGroup
		var refused atomic.Int32
		began := time.Now()
		handler := func() error {
			first, err := p.Open(t.Context(), "a", want)
			if err != nil {
				return err
			}
			defer first.Close()
			time.Sleep(time.Second) // until all have one
			second, err := p.Open(t.Context(), "b", want)
			if err != nil {
				return err
			}
			return second.Close()
		}
		for range 3 {
			all.Go(func() {
				if err := handler(); err != nil {
					refused.Add(1)
					if !strings.Contains(err.Error(), "raise Connections") {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		if n, took := refused.Load(), time.Since(began); n != 1 || took != 11*time.Second {
			t.Errorf("%d handlers were turned away, after %v; want 1 after 11 s", n, took)
		}
	})
}

// While something is read, a file waits for its turn as long as it takes, and no longer than its context.
func TestFilesWaitForReaders(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := memoryPlace(t, Config{Connections: 2, Timeout: 10 * time.Second}, inMemory)
		defer p.source.Close()
		want := files.Info{Size: int64(len(memoryBody))}
		slow, err := p.Open(t.Context(), "slow", want)
		if err != nil {
			t.Fatal(err)
		}
		waiting := make(chan error, 1)
		go func() {
			c, err := p.Open(t.Context(), "next", want)
			if err == nil {
				err = c.Close()
			}
			waiting <- err
		}()
		hurry, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if _, err := p.Open(hurry, "x", want); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("without a place to sit: %v", err)
		}
		for range len(memoryBody) - 1 {
			if _, err := slow.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(9 * time.Second)
		}
		if err := slow.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-waiting; err != nil {
			t.Error(err)
		}
	})
}

// Connections that are being made count, also when who wanted them has gone: the server may allow no more.
func TestDialsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int32
		slow := func(ctx context.Context) (remote, error) {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			time.Sleep(time.Minute)
			return &memory{}, ctx.Err()
		}
		p := memoryPlace(t, Config{Connections: 3}, slow)
		defer p.source.Close()
		for range 20 {
			hurry, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, err := p.Stat(hurry, "f"); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Stat: %v", err)
			}
			cancel()
		}
		if most.Load() > 3 {
			t.Errorf("%d connections were made at once, want at most 3", most.Load())
		}
		if _, err := p.Stat(t.Context(), "f"); err != nil {
			t.Error(err)
		}
		if n := len(p.source.pool.slots); n > 2 { // those that are still being made
			t.Errorf("%d connections count as in use", n)
		}
		time.Sleep(2 * time.Minute)
		if n := len(p.source.pool.slots); n != 0 {
			t.Errorf("%d connections count as in use, want none", n)
		}
	})
}
