//go:build linux

package postgres

import (
	"errors"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
	"github.com/rebalancer-go/rebalancer/internal/waittest"
)

// A standby that lags is promoted: what was acknowledged after its last moment is lost, the timeline makes it a new incarnation, nobody who accepted the
// earlier one can renew or claim, and versions go on growing.
func TestPromotionOfALaggingStandby(t *testing.T) {
	t.Parallel()
	primary := testserver.StartPostgres(t, 15)
	primary.Exec(t, DDL(DefaultSchema))
	standby := primary.Standby()
	// Both addresses, as a program would name them.
	url := primary.URLAt(primary.Addr()+","+standby.Addr(), "postgres", "") + "&target_session_attrs=read-write&connect_timeout=2"
	s := openStore(t, url)
	h := session(t, s, "n", time.Minute)
	kept := must(t, h, claim("kept"))[0].Versions["kept"]
	c := connect(t, standby.URL("postgres", ""))
	waittest.Until(t, "the standby has it", func() bool {
		return ask[int](t, c, s, `SELECT count(*)::int FROM {t}entries WHERE name = 'kept'`) == 1
	})
	fails(t, openStore(t, standby.URL("postgres", "")), false, "standby")
	standby.Exec(t, `ALTER SYSTEM SET primary_conninfo = ''`)
	standby.Exec(t, `SELECT pg_reload_conf()`)
	waittest.Until(t, "the standby is cut off", func() bool { return ask[int](t, c, s, `SELECT count(*)::int FROM pg_stat_wal_receiver`) == 0 })
	lost := must(t, h, claim("lost"))[0].Versions["lost"]
	primary.Kill()
	standby.Exec(t, `SELECT pg_promote()`)
	var stamp backends.RenewReply
	waittest.Until(t, "the promoted one answers", func() bool {
		var err error
		stamp, err = renew(t.Context(), h)
		return errors.Is(err, backends.ErrIncarnation)
	})
	if stamp.Since.IsZero() || stamp.Incarnation == h.Opened().Incarnation {
		t.Fatalf("stamp %+v", stamp)
	}
	rs, err := commit(t.Context(), h, claim("lost", backends.Check{Key: "lost"}))
	if err != nil || !errors.Is(rs[0].Err, backends.ErrIncarnation) {
		t.Fatalf("a claim in the earlier incarnation: %v, %v", rs, err)
	}
	r, err := h.Read(t.Context(), backends.ReadRequest{Prefixes: []string{""}})
	if err != nil || len(r.Entries) != 1 || r.Entries[0].Version != kept {
		t.Fatalf("after the promotion: %+v, %v", r, err)
	}
	again := session(t, s, "m", time.Minute)
	if version := must(t, again, claim("lost", backends.Check{Key: "lost"}))[0].Versions["lost"]; version <= lost {
		t.Errorf("version %d after %d, which was lost", version, lost)
	}
	grace, err := commit(t.Context(), again, backends.Txn{Grace: time.Minute})
	if err != nil || !errors.Is(grace[0].Err, backends.ErrGrace) {
		t.Errorf("a claim within the grace: %v, %v", grace, err)
	}
}
