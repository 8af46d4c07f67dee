package redis

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/backends/storetest"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, testserver.Leftovers()...) }

func TestContractOnRedis(t *testing.T) { contract(t, testserver.Redis) }

func TestContractOnValkey(t *testing.T) { contract(t, testserver.Valkey) }

func contract(t *testing.T, kind testserver.RedisKind) {
	t.Parallel()
	storetest.Run(t, storetest.Driver{TTL: 2 * time.Second, Rounds: 10, Place: func(t *testing.T) storetest.Place { return place(t, kind) }})
}

// place is a server of its own for each case.
func place(t *testing.T, kind testserver.RedisKind) storetest.Place {
	server := testserver.StartRedis(t, kind)
	var mu sync.Mutex
	var behind time.Duration
	var stores []*Store
	set := func(s *Store) {
		s.scripts = newScripts(strconv.FormatInt(behind.Microseconds(), 10))
	}
	return storetest.Place{
		Open: func(t *testing.T) backends.Store {
			mu.Lock()
			defer mu.Unlock()
			s := openURL(t, "redis://"+server.Addr())
			set(s)
			stores = append(stores, s)
			return s
		},
		Lose: func(*testing.T) { server.Must("FLUSHALL") },
		StepBack: func(_ *testing.T, d time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			behind += d
			for _, s := range stores {
				set(s)
			}
		},
		RollBack: func(t *testing.T) func(*testing.T) {
			server.Must("SAVE")
			dump := filepath.Join(server.Dir, "dump.rdb")
			saved, err := os.ReadFile(dump)
			if err != nil {
				t.Fatal(err)
			}
			return func(t *testing.T) {
				server.Kill()
				if err := os.WriteFile(dump, saved, 0o644); err != nil {
					t.Fatal(err)
				}
				server.Restart()
			}
		},
		Rows: func(t *testing.T) int { return rows(t, server) },
	}
}

func openURL(t testing.TB, url string, opts ...Option) *Store {
	t.Helper()
	s, err := Open(url, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// rows counts what is stored of sessions and of bound entries, of the group of the suite.
func rows(t *testing.T, server *testserver.RedisServer) int {
	t.Helper()
	sp := spaceOf(DefaultPrefix, "group")
	n := 0
	for i, name := range keyNames {
		command := map[string]string{"sessions": "ZCARD", "nodes": "HLEN", "by-node": "ZCARD", "sent": "HLEN", "bound-names": "ZCARD",
			"bound-versions": "HLEN", "bound-values": "HLEN", "bound": "ZCARD"}[name]
		if command == "" {
			continue
		}
		got, err := strconv.Atoi(strings.TrimSpace(server.Must(command, sp.keys[i])))
		if err != nil {
			t.Fatal(err)
		}
		n += got
	}
	return n
}
