package integration

import (
	"context"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/backends/postgres"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
)

// storeServers start a server each, and return the URL of a store on it.
func storeServers() map[string]func(t *testing.T) string {
	return map[string]func(t *testing.T) string{
		"redis": func(t *testing.T) string {
			return "redis://" + testserver.StartRedis(t, testserver.Redis).Addr()
		},
		"zookeeper": func(t *testing.T) string {
			return "zk://" + testserver.StartZooKeeper(t, "").Addr()
		},
		"postgres": func(t *testing.T) string {
			s := testserver.StartPostgres(t, 15)
			url := s.URL("postgres", "")
			store, err := postgres.Open(url)
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := store.Create(ctx); err != nil {
				t.Fatal(err)
			}
			return url
		},
	}
}

// Processes are killed and frozen at random moments, over servers instead of a file.
func TestFaultsOverServers(t *testing.T) {
	t.Parallel()
	for name, start := range storeServers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := start(t)
			t.Run("kill", func(t *testing.T) { t.Parallel(); killRounds(t, newCrewOver(t, url, 3, 6, 2*ttl), 8, 100) })
			t.Run("freeze", func(t *testing.T) { t.Parallel(); freezeRounds(t, newCrewOver(t, url, 3, 6, 2*ttl), 3, 30) })
		})
	}
}
