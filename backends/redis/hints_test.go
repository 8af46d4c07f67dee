package redis

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
)

// mutes are connections of which nothing is heard any more, while new ones work: what is left when a firewall has forgotten them.
type mutes struct {
	mu  sync.Mutex
	all []*mute
}

type mute struct {
	net.Conn
	on atomic.Bool
}

func (m *mute) Read(p []byte) (int, error) {
	for {
		n, err := m.Conn.Read(p)
		if err != nil || !m.on.Load() {
			return n, err
		}
	}
}

func (ms *mutes) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	m := &mute{Conn: c}
	ms.mu.Lock()
	defer ms.mu.Unlock()
	ms.all = append(ms.all, m)
	return m, nil
}

func (ms *mutes) muteAll() {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	for _, m := range ms.all {
		m.on.Store(true)
	}
}

// A subscription whose connection is silent is made again: no error tells that it is dead.
func TestSilentSubscriptionIsMadeAgain(t *testing.T) {
	onEach(t, func(t *testing.T, kind testserver.RedisKind) {
		server := testserver.StartRedis(t, kind)
		var ms mutes
		s := over(t, redis.NewClient(&redis.Options{Addr: server.Addr(), Dialer: ms.dial, ReadTimeout: time.Second}))
		h, by := begin(t, s, 10*time.Minute), begin(t, connect(t, server.Addr()), 10*time.Minute)
		var hints atomic.Int64
		if err := h.Listen(t.Context(), "a", func() { hints.Add(1) }); err != nil {
			t.Fatal(err)
		}
		ms.muteAll()
		before := hints.Load()
		eventually(t, time.Minute, func() error {
			commitOne(t, by, by.Opened().Incarnation, backends.Txn{Wake: []string{"a"}})
			if hints.Load() == before {
				return errors.New("no hint came")
			}
			return nil
		})
	})
}

// Hints that came while the connection was lost are made up for by one.
func TestLostConnectionGivesAHint(t *testing.T) {
	onEach(t, func(t *testing.T, kind testserver.RedisKind) {
		server := testserver.StartRedis(t, kind)
		h := begin(t, connect(t, server.Addr()), 10*time.Minute)
		var hints atomic.Int64
		if err := h.Listen(t.Context(), "a", func() { hints.Add(1) }); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			before := hints.Load()
			server.Must("CLIENT", "KILL", "TYPE", "pubsub")
			eventually(t, 30*time.Second, func() error {
				if hints.Load() == before {
					return errors.New("no hint came")
				}
				return nil
			})
		}
	})
}
