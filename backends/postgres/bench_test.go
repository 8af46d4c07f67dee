//go:build linux

package postgres

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/rebalancer-go/rebalancer/backends/storetest"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
)

func BenchmarkStore(b *testing.B) {
	storetest.Benchmark(b, fresh(b, testserver.StartPostgres(b, 15)))
}

// BenchmarkRaw is what the client does at best with the same tables: a bare update of a session, and n upserts in one transaction.
func BenchmarkRaw(b *testing.B) {
	s := fresh(b, testserver.StartPostgres(b, 15))
	if err := s.Create(b.Context()); err != nil {
		b.Fatal(err)
	}
	c, err := s.pool.Acquire(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Release()
	if _, err := c.Exec(b.Context(), in(s.schema, `INSERT INTO {t}sessions VALUES ('id', 'g', 'n', 0, 0, 0, 0, 0, '')`)); err != nil {
		b.Fatal(err)
	}
	b.Run("Renew", func(b *testing.B) {
		for b.Loop() {
			if _, err := c.Exec(b.Context(), in(s.schema, `UPDATE {t}sessions SET expires = expires + 1 WHERE id = 'id'`)); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprintf("Commit%d", n), func(b *testing.B) {
			for b.Loop() {
				var batch pgx.Batch
				batch.Queue("BEGIN")
				for i := range n {
					batch.Queue(in(s.schema, `INSERT INTO {t}entries VALUES ('g', $1, 'value', 1, '', 0)
						ON CONFLICT (grp, name) DO UPDATE SET version = entries.version + 1`), []byte(keyNumber(i)))
				}
				batch.Queue("COMMIT")
				if err := c.SendBatch(b.Context(), &batch).Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
