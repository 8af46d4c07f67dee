package sqlstore

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
)

// Base is what a database's own package gives.
type Base interface {
	// Write runs f in a transaction that is durable when Write returns nil. An error that does not match
	// backends.ErrUnknown says that nothing was applied. f may be run again after it failed.
	Write(ctx context.Context, f func(*Tx) error) error
	// Read runs f in a transaction that only reads. Tx.Now is not later than what f sees.
	Read(ctx context.Context, f func(*Tx) error) error
	// Listen is backends.Session.Listen; ended is closed when the session ends through this handle.
	Listen(ctx context.Context, ended <-chan struct{}, group, address string, hint func()) error
	// Wake is called in the transaction with the addresses of the transactions that were applied.
	Wake(tx *Tx, group string, addresses []string) error
	// Woken is called after that transaction has ended well.
	Woken(group string, addresses []string)
	// Proof makes a session's proof of life, whose name is kept with the session, for Dead; "" when there is none. release
	// is called when the session was closed.
	Proof() (name string, release func())
	// Dead tells whether it is proved that the process of that Proof, and whatever it left running, is gone.
	Dead(proof string) bool
	// ShortestTTL is the least that a session may ask for.
	ShortestTTL() time.Duration
}

// Querier is a connection or a transaction.
type Querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Tx is an open transaction.
type Tx struct {
	Ctx         context.Context
	Q           Querier
	Now         int64 // the store's clock in µs
	Wall        int64 // wall time in µs, for versions; drawn after the locks
	Incarnation string
	Since       int64 // µs of the store's clock; 0: proved that nobody works under an earlier incarnation
	// Rebind rewrites ? placeholders; nil leaves them.
	Rebind func(string) string
	// Lock orders the writers of these keys, where the database lets writers run side by side; nil where it does not. It
	// may move Now and Wall on.
	Lock func(group string, keys []string) error
}

func (t *Tx) exec(query string, args ...any) (int64, error) {
	if t.Rebind != nil {
		query = t.Rebind(query)
	}
	r, err := t.Q.ExecContext(t.Ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// query runs f for each row.
func (t *Tx) query(f func(*sql.Rows) error, query string, args ...any) error {
	if t.Rebind != nil {
		query = t.Rebind(query)
	}
	rows, err := t.Q.QueryContext(t.Ctx, query, args...)
	if err != nil {
		return err
	}
	for rows.Next() {
		if err := f(rows); err != nil {
			_ = rows.Close()
			return err
		}
	}
	if err := rows.Err(); err != nil {
		_ = rows.Close()
		return err
	}
	return rows.Close()
}

func (t *Tx) stamp() backends.Stamp {
	s := backends.Stamp{Time: time.UnixMicro(t.Now), Incarnation: t.Incarnation}
	if t.Since != 0 {
		s.Since = time.UnixMicro(t.Since)
	}
	return s
}

// marks is n placeholders.
func marks(n int) string { return strings.TrimSuffix(strings.Repeat("?,", n), ",") }

// nobody is the session of an entry that is not bound. Not nil: that would be NULL.
func nobody() []byte { return []byte{} }
