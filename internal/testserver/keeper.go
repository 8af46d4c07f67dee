//go:build linux

package testserver

import (
	"fmt"
	"sync"
	"testing"
)

// Keeper keeps servers that are slow to start for all tests of a package: a variable beside TestMain, which calls End after the tests. The zero value is ready.
type Keeper struct {
	mu       sync.Mutex
	rabbits  map[int]*RabbitMQ
	failed   map[int]bool
	cleanups []func()
}

// RabbitMQ is a server of a version (see StartRabbitMQ) that is started by the first test that asks for it. Tests share it: each makes a VHost of its
// own, and none kills, freezes or restarts it.
func (k *Keeper) RabbitMQ(t testing.TB, version int) *RabbitMQ {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.failed[version] {
		t.Fatalf("testserver: RabbitMQ %d did not start: an earlier test has its output", version)
	}
	r := k.rabbits[version]
	if r == nil {
		if k.rabbits == nil {
			k.rabbits, k.failed = map[int]*RabbitMQ{}, map[int]bool{}
		}
		k.failed[version] = true
		r = StartRabbitMQ(kept{t, k}, version)
		k.failed[version] = false
		k.rabbits[version] = r
	}
	return r.For(t)
}

// End ends all servers.
func (k *Keeper) End() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := len(k.cleanups) - 1; i >= 0; i-- {
		k.cleanups[i]()
	}
	k.cleanups, k.rabbits = nil, nil
}

// kept is the test that starts a server which outlives it.
type kept struct {
	testing.TB
	k *Keeper
}

// Cleanup is called with k.mu held.
func (t kept) Cleanup(f func()) { t.k.cleanups = append(t.k.cleanups, f) }

// Errorf is called by cleanups, when the test has ended.
func (t kept) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }
