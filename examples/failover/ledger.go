// Package failover shows how to test what your own handler does when its node fails: in virtual time, with the store and
// the source in memory, so that a fail-over of half a minute takes a millisecond. The handler is in this file, its tests
// are in ledger_test.go; run them with
//
//	go test -v ./examples/failover
package failover

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/rebalancer-go/rebalancer"
)

// Ledger is the handler under test. It books amounts into accounts; each account is a resource. It stands for a
// database, so it does what a table with a column for the fence would do.
type Ledger struct {
	Work time.Duration // how long booking one amount takes

	mu       sync.Mutex
	accounts map[string]account
}

type account struct {
	fence  int64           // the greatest that wrote here
	booked map[string]bool // IDs of messages: delivery is at least once
	total  int
}

// Handle works one message. Its body is an amount.
func (l *Ledger) Handle(ctx context.Context, m *rebalancer.Message) error {
	amount, err := strconv.Atoi(string(m.Body))
	if err != nil {
		return rebalancer.Permanent(fmt.Errorf("message %s: %w", m.ID, err)) // no retry can help
	}
	select {
	case <-time.After(l.Work):
	case <-ctx.Done():
		return context.Cause(ctx) // the claim is lost, or the time to drain is over: book nothing
	}
	return l.book(m.Resource, m.ID, m.Fence, amount)
}

// book is the write. A smaller fence than the account has seen comes from a node that was replaced.
func (l *Ledger) book(name, id string, fence int64, amount int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.accounts[name]
	if fence < a.fence {
		return rebalancer.ErrLost
	}
	if a.booked == nil {
		a.booked = map[string]bool{}
	}
	if !a.booked[id] {
		a.booked[id] = true
		a.total += amount
	}
	a.fence = fence
	if l.accounts == nil {
		l.accounts = map[string]account{}
	}
	l.accounts[name] = a
	return nil
}

// Total is what stands in an account.
func (l *Ledger) Total(name string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.accounts[name].total
}
