//go:build linux

package stores

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

// ledger is where workers note themselves what they work: it sees two at once, and fences that do not grow.
type ledger struct {
	t  *testing.T
	mu sync.Mutex

	owner map[string]entry // by resource, of those worked now
	top   map[string]entry // by resource, the greatest fence so far
	began int              // pieces of work
	since time.Time        // of the last begin or end
}

type entry struct {
	node  string
	fence int64
	at    time.Time
}

func newLedger(t *testing.T) *ledger {
	return &ledger{t: t, owner: map[string]entry{}, top: map[string]entry{}, since: time.Now()}
}

func (l *ledger) begin(node, resource string, fence int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if o, ok := l.owner[resource]; ok {
		l.t.Errorf("OVERLAP: %s works %s under fence %d since %v, %s begins under %d", o.node, resource, o.fence, now.Sub(o.at), node, fence)
	}
	if top := l.top[resource]; fence < top.fence || fence == top.fence && node != top.node {
		l.t.Errorf("FENCE: %s works %s under %d after %s did under %d", node, resource, fence, top.node, top.fence)
	}
	l.owner[resource] = entry{node, fence, now}
	l.top[resource] = l.owner[resource]
	l.began++
	l.since = now
}

func (l *ledger) end(node, resource string, fence int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o := l.owner[resource]; o.node == node && o.fence == fence {
		delete(l.owner, resource)
		l.since = time.Now()
	}
}

// counts is how many resources each node works.
func (l *ledger) counts() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := map[string]int{}
	for _, o := range l.owner {
		n[o.node]++
	}
	return n
}

// begun is how often work has begun.
func (l *ledger) begun() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.began
}

// works returns the owners by resource.
func (l *ledger) works() map[string]entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := map[string]entry{}
	for r, o := range l.owner {
		all[r] = o
	}
	return all
}

func (l *ledger) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return fmt.Sprintf("%d pieces of work, %d at this moment", l.began, len(l.owner))
}
