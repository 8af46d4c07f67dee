package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rebalancer-go/rebalancer"
)

// The service's tables. owners has the greatest fence under which each queue was worked; orders is written once for each order.
// Processes that start together make them one after the other.
const tables = `
SELECT pg_advisory_xact_lock(7364123);
CREATE TABLE IF NOT EXISTS owners (queue text PRIMARY KEY, fence bigint NOT NULL);
CREATE TABLE IF NOT EXISTS orders (queue text, id text, customer text NOT NULL, amount bigint NOT NULL, place bigserial, PRIMARY KEY (queue, id));`

// Ledger is where orders go.
type Ledger struct{ db *pgxpool.Pool }

// Handle books an order, "CUSTOMER AMOUNT". The booking and the check of the fence are one transaction: a process that was replaced, and does not know it yet, books
// nothing more. An order that comes again, which at least once means, is booked once: it is known by its message id,
// which its publisher must set, and which is unique in its queue.
func (l *Ledger) Handle(ctx context.Context, m *rebalancer.Message) error {
	customer, amount, ok := strings.Cut(string(m.Body), " ")
	n, err := strconv.ParseInt(amount, 10, 64)
	if !ok || err != nil {
		return rebalancer.Permanent(fmt.Errorf("order %s is not CUSTOMER AMOUNT", m.ID)) // no retry helps: to orders.dead at once
	}
	if m.ID == "" { // all orders without one would be the same order
		return rebalancer.Permanent(fmt.Errorf("an order in %s has no message id: its publisher must set one", m.Resource))
	}
	return pgx.BeginFunc(ctx, l.db, func(tx pgx.Tx) error {
		// The row stays locked until the commit, so that no newer owner comes between the check and the booking.
		tag, err := tx.Exec(ctx, `INSERT INTO owners VALUES ($1, $2) ON CONFLICT (queue) DO UPDATE SET fence = excluded.fence WHERE owners.fence <= excluded.fence`, m.Resource, m.Fence)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return fmt.Errorf("%s has a newer owner: %w", m.Resource, rebalancer.ErrLost)
		}
		_, err = tx.Exec(ctx, `INSERT INTO orders (queue, id, customer, amount) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`, m.Resource, m.ID, customer, n)
		return err
	})
}
