//go:build linux

package stores

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/backends/sqlite"
	"github.com/rebalancer-go/rebalancer/internal/programtest"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
)

var (
	seed = flag.Uint64("seed", 0, "of the random runs; 0: another one for each run")
	soak = flag.Bool("soak", false, "run the long version of the random runs")
	only = flag.String("store", "", "run only over stores whose name begins so")
)

func TestMain(m *testing.M) {
	os.Exit(testserver.ExitCode(m.Run(), 20*time.Second))
}

// system is a store's server, or whatever takes its place, for one test.
type system struct {
	group string
	ttl   time.Duration
	addr  string // host:port of the server; "": there is none
	open  func(t *testing.T, addr string) backends.Store

	// Faults; nil where the store has no such thing. The last one undoes what the one before it did.
	kill, restart, freeze, thaw func()
	// lose empties the store, or takes it back to what it was when keep was called, under the nodes that use it.
	wipe, keep, back func()
}

// kind is a store on a version of its server.
type kind struct {
	name  string
	newer bool // of two versions that are tried
	start func(t *testing.T) *system
}

func kinds() []kind {
	return []kind{
		{"sqlite", false, startSQLite},
		{"redis-7.0", false, redisOn(testserver.Redis)},
		{"valkey-8.1", true, redisOn(testserver.Valkey)},
		{"zookeeper-3.8", false, zookeeperOn(func(testing.TB) string { return "" })},
		{"zookeeper-3.9", true, zookeeperOn(testserver.Root)},
		{"postgres-15", false, postgresOn(15)},
		{"postgres-17", true, postgresOn(17)},
	}
}

func startSQLite(t *testing.T) *system {
	path := filepath.Join(t.TempDir(), "group.db")
	return &system{group: "g", ttl: 2 * time.Second, open: func(t *testing.T, _ string) backends.Store {
		t.Helper()
		s, err := sqlite.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}}
}

// eachKind runs a test for each store.
func eachKind(t *testing.T, test func(t *testing.T, k kind)) {
	t.Helper()
	ran := 0
	for _, k := range kinds() {
		if strings.HasPrefix(k.name, *only) {
			ran++
			t.Run(k.name, func(t *testing.T) { t.Parallel(); test(t, k) })
		}
	}
	if ran == 0 {
		t.Fatalf("no store has a name that begins with %q", *only)
	}
}

// scenario is a test of a group that does nothing to the server.
type scenario func(t *testing.T, sys *system, global bool)

var modes = map[string]bool{"resource barrier": false, "global barrier": true}

// overAll runs a test over each store in both modes, with a server for each. The short version takes each of two versions of a server for one of the modes,
// and for the other one with another seed.
func overAll(t *testing.T, test scenario) {
	t.Helper()
	eachKind(t, func(t *testing.T, k kind) {
		for mode, global := range modes {
			if !*soak && k.name != "sqlite" && k.newer == (global == (*seed%2 == 0)) {
				continue
			}
			t.Run(mode, func(t *testing.T) { t.Parallel(); test(t, k.start(t), global) })
		}
	})
}

// shared runs scenarios over each store in both modes, as groups beside each other on one server.
func shared(t *testing.T, scenarios map[string]scenario) {
	t.Helper()
	eachKind(t, func(t *testing.T, k kind) {
		sys := k.start(t)
		for name, run := range scenarios {
			for mode, global := range modes {
				t.Run(name+"/"+mode, func(t *testing.T) {
					t.Parallel()
					own := *sys
					own.group = name + " with " + mode
					run(t, &own, global)
				})
			}
		}
	})
}

// random is the chance of one test, and says how to have it again.
func random(t *testing.T) *rand.Rand {
	t.Helper()
	return programtest.Random(t, *seed, func(test string, seed uint64) string {
		top, _, _ := strings.Cut(test, "/")
		return fmt.Sprintf("go test ./integration/stores -run '^%s$' -args -seed=%d -soak=%v", top, seed, *soak)
	})
}
