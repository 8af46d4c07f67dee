//go:build linux

package postgres

import (
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/internal/testserver"
)

// What a server does to its tables over the years does not look like a loss.
func TestMaintenanceKeepsTheIncarnation(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, 15)
	s := fresh(t, p)
	h := session(t, s, "n", time.Minute)
	for _, work := range []string{"VACUUM (FREEZE, ANALYZE)", "VACUUM (FULL, FREEZE)", "REINDEX TABLE", "CLUSTER"} {
		if work == "CLUSTER" {
			p.Exec(t, in(s.schema, `ALTER TABLE {t}record CLUSTER ON record_pkey`))
		}
		p.Exec(t, in(s.schema, work+" {t}record"))
		if _, err := renew(t.Context(), h); err != nil {
			t.Fatalf("renewal after %s: %v", work, err)
		}
	}
}

// Where the server has no connection left for the own one, renewals go through the pool.
func TestNoConnectionLeft(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, 15)
	p.Exec(t, `CREATE ROLE few LOGIN CONNECTION LIMIT 1`)
	p.Exec(t, DDL("few")+Grants("few", "few"))
	s := openStore(t, p.URL("few", "")+"&pool_max_conns=1", Schema("few"))
	h := session(t, s, "n", time.Minute)
	for range 3 {
		if _, err := renew(t.Context(), h); err != nil {
			t.Fatalf("renewal: %v", err)
		}
	}
	fails(t, openStore(t, p.URL("few", ""), Schema("few")), false, "no connection left", "max_connections")
}
