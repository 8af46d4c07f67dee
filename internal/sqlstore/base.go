package sqlstore

import (
	"context"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
)

// Base is what a database's own package gives.
type Base interface {
	// Write runs f in a transaction, which is durable when Write returns nil. Statements that f leaves in the Tx are sent with
	// the commit. An error that does not match backends.ErrUnknown says that nothing was applied; an error of f comes
	// back so. f may be run again after it failed, or after what it has sent failed.
	Write(ctx context.Context, f func(*Tx) error) error
	// Urgent is Write for renewals, which nothing else that the process does may hold up.
	Urgent(ctx context.Context, f func(*Tx) error) error
	// Read runs f in a transaction that only reads. Tx.Now is not later than what f sees.
	Read(ctx context.Context, f func(*Tx) error) error
	// Listen is backends.Session.Listen; ended is closed when the session ends through this handle.
	Listen(ctx context.Context, ended <-chan struct{}, group, address string, hint func()) error
	// Wake is called in the transaction with the addresses of the transactions that are applied.
	Wake(tx *Tx, group string, addresses []string) error
	// Woken is called after that transaction has ended well.
	Woken(group string, addresses []string)
	// Proof makes a session's proof of life, whose name is kept with the session, for Dead; "" when there is none. release
	// may be called more than once, and is when the session has ended. ttl bounds for how long the session outlives its last call.
	Proof(ttl time.Duration) (name string, release func())
	// Dead tells whether it is proved that the process of that Proof, and whatever it left running, is gone. It does not wait.
	Dead(proof string) bool
	// ShortestTTL is the least that a session may ask for.
	ShortestTTL() time.Duration
}

// Statement is one SQL statement in the words of Dialect, and what becomes of its outcome.
type Statement struct {
	SQL  string
	Args []any // int64, string, []byte; [][]byte for a list; and whatever else the database's own statements need
	// Growing: how the database does it best depends on how much is stored, so it must not keep to a plan.
	Growing bool
	// Row is called for each row that it returns; nil: it returns none, or they do not matter. dest are *int64, *string, *[]byte.
	// A NULL gives zero, "" or nil.
	Row func(scan Scan) error
	// Done is called with the number of rows that it changed; nil: it does not matter.
	Done func(changed int64) error
}

// Scan reads the columns of a row.
type Scan func(dest ...any) error

// Tx is an open transaction. The clock and the incarnation are there after the first Flush at the latest.
type Tx struct {
	Now         int64 // the store's clock in µs, the same during the whole transaction
	Incarnation string
	Since       int64 // µs of the store's clock; 0: proved that nobody works under an earlier incarnation
	Dialect     Dialect
	// Run carries out statements in order, in one round trip where the database can.
	Run func([]Statement) error

	pending []Statement
}

// Add queues statements for the next Flush, or for the commit.
func (t *Tx) Add(ss ...Statement) { t.pending = append(t.pending, ss...) }

// Flush carries out what is queued.
func (t *Tx) Flush() error { return t.Run(t.Pending()) }

// Pending takes what is queued.
func (t *Tx) Pending() []Statement {
	ss := t.pending
	t.pending = nil
	return ss
}

func (t *Tx) stamp() backends.Stamp {
	s := backends.Stamp{Time: time.UnixMicro(t.Now), Incarnation: t.Incarnation}
	if t.Since != 0 {
		s.Since = time.UnixMicro(t.Since)
	}
	return s
}

// nobody is the session of an entry that is not bound. Not nil: that would be NULL.
func nobody() []byte { return []byte{} }
