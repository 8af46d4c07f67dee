package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rebalancer-go/rebalancer"
)

// tables are the ledger's own, and the one that keeps the greatest fence of each resource that has written here.
const tables = `
CREATE SCHEMA IF NOT EXISTS fencing_example;
CREATE TABLE IF NOT EXISTS fencing_example.fences (resource text PRIMARY KEY, fence bigint NOT NULL);
CREATE TABLE IF NOT EXISTS fencing_example.bookings (account text, message text, amount bigint NOT NULL, PRIMARY KEY (account, message));`

// take notes the fence of a claim unless a newer claim was here. It locks the row until the transaction ends, so an older
// owner that came first is waited for, and one that comes later finds the newer fence.
const take = `
INSERT INTO fencing_example.fences VALUES ($1, $2)
ON CONFLICT (resource) DO UPDATE SET fence = excluded.fence WHERE fences.fence <= excluded.fence`

// book does nothing for a message that was booked before: after a crash it is delivered again.
const book = `INSERT INTO fencing_example.bookings VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`

// Ledger books amounts into accounts. Each account is a resource of the group.
type Ledger struct{ db *pgxpool.Pool }

// Handle works one message, whose body is an amount: the fence first, then what is to be written, in one transaction.
func (l *Ledger) Handle(ctx context.Context, m *rebalancer.Message) error {
	amount, err := strconv.ParseInt(string(m.Body), 10, 64)
	if err != nil {
		return rebalancer.Permanent(fmt.Errorf("message %s is no amount: %w", m.ID, err))
	}
	return pgx.BeginFunc(ctx, l.db, func(tx pgx.Tx) error {
		taken, err := tx.Exec(ctx, take, m.Resource, m.Fence)
		if err != nil {
			return fmt.Errorf("take the fence of %s: %w", m.Resource, err)
		}
		if taken.RowsAffected() == 0 {
			return rebalancer.ErrLost // a newer claim has written: roll back, and let the group look at this one
		}
		_, err = tx.Exec(ctx, book, m.Resource, m.ID, amount)
		return err
	})
}

// Total is what stands in an account.
func (l *Ledger) Total(ctx context.Context, account string) (total int64, err error) {
	const sum = `SELECT coalesce(sum(amount), 0) FROM fencing_example.bookings WHERE account = $1`
	err = l.db.QueryRow(ctx, sum, account).Scan(&total)
	return total, err
}
