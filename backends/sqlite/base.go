package sqlite

import (
	"context"
	"errors"
	"time"

	"github.com/rebalancer-go/rebalancer/internal/sqlstore"
)

// base is the Store as package sqlstore sees it.
type base struct{ s *Store }

func (s *Store) base() base { return base{s} }

func (b base) Proof(ttl time.Duration) (string, func()) { return b.s.proofs.give(ttl) }

func (b base) Dead(proof string) bool { return b.s.proofs.dead(proof) }

func (b base) ShortestTTL() time.Duration { return shortestTTL }

func (b base) Write(ctx context.Context, f func(*sqlstore.Tx) error) error {
	return b.s.do(ctx, func(file *file) error { return file.write(ctx, f) })
}

// Urgent is Write: all that write wait for the file's lock alike.
func (b base) Urgent(ctx context.Context, f func(*sqlstore.Tx) error) error { return b.Write(ctx, f) }

func (b base) Read(ctx context.Context, f func(*sqlstore.Tx) error) error {
	return b.s.do(ctx, func(file *file) error { return file.read(ctx, f) })
}

// do runs a call on the open file, again when the file turned out to be another one.
func (s *Store) do(ctx context.Context, call func(*file) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var err error
	for range 5 {
		var f *file
		if f, err = s.acquire(ctx); err != nil {
			break
		}
		err = call(f)
		if errors.Is(err, errMoved) {
			s.forget(f)
		}
		s.release(f)
		if !errors.Is(err, errMoved) {
			break
		}
	}
	return s.wrap(err)
}
