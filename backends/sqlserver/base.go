package sqlserver

import (
	"context"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/sqlstore"
)

const shortestTTL = time.Second

// base is the Store as package sqlstore sees it.
type base struct{ s *Store }

func (b base) Write(ctx context.Context, f func(*sqlstore.Tx) error) error {
	return b.s.persist(ctx, b.s.pooled, writing, false, f)
}

func (b base) Urgent(ctx context.Context, f func(*sqlstore.Tx) error) error {
	return b.s.persist(ctx, b.s.urgent, writing, true, f)
}

func (b base) Read(ctx context.Context, f func(*sqlstore.Tx) error) error {
	return b.s.persist(ctx, b.s.pooled, reading, true, f)
}

// Listen fails: the server has nothing that could wake a client.
func (b base) Listen(ctx context.Context, _ <-chan struct{}, _, _ string, _ func()) error {
	if b.s.ctx.Err() != nil {
		return backends.ErrClosed
	}
	return backends.ErrNoHints
}

func (b base) Wake(*sqlstore.Tx, string, []string) error { return nil }

func (b base) Woken(string, []string) {}

func (b base) Proof(time.Duration) (string, func()) { return "", func() {} }

func (b base) Dead(string) bool { return false }

func (b base) ShortestTTL() time.Duration { return shortestTTL }
