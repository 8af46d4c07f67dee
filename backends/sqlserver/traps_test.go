package sqlserver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/sqlservertest"
	"github.com/rebalancer-go/rebalancer/internal/sqlstore"
	"github.com/rebalancer-go/rebalancer/internal/waittest"
)

func TestTraps(t *testing.T) {
	t.Parallel()
	for _, rowVersions := range []bool{true, false} {
		t.Run(fmt.Sprintf("RowVersions=%v", rowVersions), func(t *testing.T) {
			t.Parallel()
			dsn := databases.Database(t, rowVersions)
			for name, f := range map[string]func(*testing.T, string){
				"OpenRenewal":          renewalStillOpen,
				"OpenRenewalAndSweep":  sweepWhileRenewalIsOpen,
				"LateRenewal":          renewalAfterTheEnd,
				"SupersedeAfterTheEnd": supersedeAfterTheEnd,
				"VersionAfterLock":     versionAfterLock,
				"OpenCommit":           renewalsPassCommits,
				"BusyPool":             busyPool,
				"LongLists":            longLists,
				"Deadlock":             deadlocksAreRepeated,
				"CancelledCommit":      cancelledCommit,
				"SmallRole":            smallRole,
			} {
				t.Run(name, func(t *testing.T) { t.Parallel(); f(t, dsn) })
			}
		})
	}
}

// conn is one connection beside the store.
func conn(t testing.TB, dsn string) *sql.Conn {
	t.Helper()
	c, err := sqlservertest.Connect(t, dsn).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

const extend = `UPDATE {t}sessions SET expires = expires + 60000000 WHERE id = @p1 AND expires > @p2`

func serverClock(t *testing.T, c sqlservertest.Execer) int64 {
	t.Helper()
	return ask[int64](t, c, "SELECT "+clock)
}

// hasRunOut waits until the session has run out, as others see it.
func hasRunOut(t *testing.T, s *Store, c sqlservertest.Execer, id string) {
	t.Helper()
	end := ask[int64](t, c, in(s.schema, `SELECT expires FROM {t}sessions WHERE id = @p1`), []byte(id))
	waittest.Until(t, "the session has run out", func() bool { return serverClock(t, c) > end })
}

// A renewal that is still open when another node claims: the claim waits for it, and then finds the session alive.
func renewalStillOpen(t *testing.T, dsn string) {
	s := fresh(t, dsn)
	owner, taker := session(t, s, "owner", time.Second), session(t, s, "taker", time.Minute)
	must(t, owner, claim("k"))
	c, before := conn(t, dsn), owner.Opened().Time.UnixMicro()
	hasRunOut(t, s, c, owner.ID())
	sqlservertest.Exec(t, c, "BEGIN TRANSACTION")
	if n := sqlservertest.Exec(t, c, in(s.schema, extend), []byte(owner.ID()), before); n != 1 {
		t.Fatal("the owner's session has ended too soon for the test")
	}
	done := make(chan error, 1)
	go func() {
		rs, err := commitTo(t.Context(), taker, claim("k", backends.Check{Key: "k"}))
		if err == nil {
			err = rs[0].Err
		}
		done <- err
	}()
	select {
	case err := <-done:
		t.Fatalf("the claim did not wait: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	sqlservertest.Exec(t, c, "COMMIT TRANSACTION")
	if err := <-done; !errors.Is(err, backends.ErrConflict) {
		t.Fatalf("the claim of what is held: %v", err)
	}
	if _, err := renew(t.Context(), owner); err != nil {
		t.Fatalf("the owner: %v", err)
	}
}

// A sweep while a renewal is open must not end the session that is being renewed: a subquery would be answered from row versions.
func sweepWhileRenewalIsOpen(t *testing.T, dsn string) {
	s := fresh(t, dsn)
	owner, other := session(t, s, "owner", time.Second), session(t, s, "other", time.Minute)
	must(t, owner, claim("k"))
	c, before := conn(t, dsn), owner.Opened().Time.UnixMicro()
	hasRunOut(t, s, c, owner.ID())
	sqlservertest.Exec(t, c, "BEGIN TRANSACTION")
	sqlservertest.Exec(t, c, in(s.schema, extend), []byte(owner.ID()), before)
	done := make(chan error, 1)
	go func() {
		_, err := other.Renew(t.Context(), backends.RenewRequest{Incarnation: other.Opened().Incarnation, Sweep: true})
		done <- err
	}()
	select {
	case <-done:
		t.Fatal("the sweep passed a row that is locked")
	case <-time.After(300 * time.Millisecond):
	}
	sqlservertest.Exec(t, c, "COMMIT TRANSACTION")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if _, err := renew(t.Context(), owner); err != nil {
		t.Fatalf("the sweep ended a session while it was renewed: %v", err)
	}
}

// Who relies on the end of a session makes it final: a renewal that read its clock before the end, and comes late, fails.
func renewalAfterTheEnd(t *testing.T, dsn string) {
	s := fresh(t, dsn)
	owner, taker := session(t, s, "owner", time.Second), session(t, s, "taker", time.Minute)
	must(t, owner, claim("k"))
	c, before := conn(t, dsn), owner.Opened().Time.UnixMicro()
	waittest.Until(t, "the claim was taken over", func() bool {
		rs, err := commitTo(t.Context(), taker, claim("k", backends.Check{Key: "k"}))
		return err == nil && rs[0].Err == nil
	})
	if n := sqlservertest.Exec(t, c, in(s.schema, extend), []byte(owner.ID()), before); n != 0 {
		t.Fatal("a late renewal has revived a session whose end was relied on")
	}
}

// The same for a session that had run out when it was superseded.
func supersedeAfterTheEnd(t *testing.T, dsn string) {
	s := fresh(t, dsn)
	older, newer := session(t, s, "n", time.Second), session(t, s, "n", time.Minute)
	c := conn(t, dsn)
	hasRunOut(t, s, c, older.ID())
	if r, err := newer.Supersede(t.Context(), "n"); err != nil || r.Older != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	n := sqlservertest.Exec(t, c, in(s.schema, extend+` AND superseded = 0`), []byte(older.ID()), older.Opened().Time.UnixMicro())
	if n != 0 {
		t.Fatal("a late renewal has revived a session of a node that was superseded")
	}
}

// A version is drawn after the lock: a writer that waited gets one that is later than all that was written meanwhile.
func versionAfterLock(t *testing.T, dsn string) {
	s := fresh(t, dsn)
	h := session(t, s, "n", time.Minute)
	first := must(t, h, claim("k"))[0].Versions["k"]
	held, free := make(chan struct{}), make(chan struct{})
	go func() {
		_ = base{s}.Write(t.Context(), func(tx *sqlstore.Tx) error {
			tx.Add(s.lock("g", []sqlstore.Key{{Name: "k", Write: true}})...)
			if err := tx.Flush(); err != nil {
				return err
			}
			close(held)
			<-free
			return nil
		})
	}()
	<-held
	done := make(chan int64, 1)
	go func() {
		rs, err := commitTo(t.Context(), h, claim("k"))
		if err != nil || rs[0].Err != nil {
			t.Error(err, rs)
			done <- 0
			return
		}
		done <- rs[0].Versions["k"]
	}()
	select {
	case <-done:
		t.Error("the commit did not wait for the lock")
	case <-time.After(300 * time.Millisecond):
	}
	wall := serverClock(t, conn(t, dsn))
	close(free)
	if version := <-done; version <= first || version < wall {
		t.Fatalf("version %d, %d before, the clock was at %d while it waited", version, first, wall)
	}
}

// While a commit is open that checks the leader's entry, the leader is renewed and others commit under the same check.
func renewalsPassCommits(t *testing.T, dsn string) {
	s := fresh(t, dsn)
	leader, a, b := session(t, s, "l", time.Minute), session(t, s, "a", time.Minute), session(t, s, "b", time.Minute)
	v := must(t, leader, claim("leader"))[0].Versions["leader"]
	check := backends.Check{Key: "leader", Version: v}
	var nested error
	hook := func() {
		s.beforeCommit.Store(nil)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if _, err := renew(ctx, leader, "leader"); err != nil {
			nested = err
			return
		}
		rs, err := commitTo(ctx, b, claim("of b", check))
		if err == nil {
			err = rs[0].Err
		}
		nested = err
	}
	s.beforeCommit.Store(&hook)
	must(t, a, claim("of a", check))
	if nested != nil {
		t.Fatalf("beside an open commit: %v", nested)
	}
}

// A pool whose connections are all in use does not stop renewals.
func busyPool(t *testing.T, dsn string) {
	db := sqlservertest.Connect(t, dsn)
	db.SetMaxOpenConns(3)
	s, err := New(db, Schema(newSchema()), CreateSchema())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	h := session(t, s, "n", time.Minute)
	if _, err := renew(t.Context(), h); err != nil { // from here on it has its connection
		t.Fatal(err)
	}
	for range 2 {
		c, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	for range 5 {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		_, err := renew(ctx, h)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := h.Read(ctx, backends.ReadRequest{}); err == nil || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a read without a connection: %v", err)
	}
}

// Lists of more keys than one statement takes, and commits of more than one call takes, are whole.
func longLists(t *testing.T, dsn string) {
	s := fresh(t, dsn)
	h := session(t, s, "n", 10*time.Minute)
	const n = 1300
	var keys []string
	var all backends.Txn
	for i := range n {
		key := fmt.Sprintf("key %06d", i)
		keys = append(keys, key)
		all.Puts = append(all.Puts, backends.Put{Key: key, Value: []byte(key)})
		all.Checks = append(all.Checks, backends.Check{Key: key})
	}
	must(t, h, all)
	r, err := h.Read(t.Context(), backends.ReadRequest{Keys: keys})
	if err != nil || len(r.Entries) != n {
		t.Fatalf("%d of %d keys were read: %v", len(r.Entries), n, err)
	}
	reply, err := renew(t.Context(), h, keys...)
	if err != nil || len(reply.Keys) != n {
		t.Fatalf("a renewal tells of %d of %d keys: %v", len(reply.Keys), n, err)
	}
}

// The server breaks a circle of waiting by undoing one transaction, which is then repeated.
func deadlocksAreRepeated(t *testing.T, dsn string) {
	s := fresh(t, dsn)
	h := session(t, s, "n", time.Minute)
	must(t, h, backends.Txn{Puts: []backends.Put{{Key: "a"}, {Key: "b"}}})
	c := conn(t, dsn)
	touch := func(key string) sqlstore.Statement {
		return sqlstore.Statement{SQL: `UPDATE {t}entries SET gone = gone WHERE grp = ? AND name = ?`, Args: []any{[]byte("g"), []byte(key)}}
	}
	direct := in(s.schema, `UPDATE {t}entries SET gone = gone WHERE grp = @p1 AND name = @p2`)
	sqlservertest.Exec(t, c, "BEGIN TRANSACTION")
	sqlservertest.Exec(t, c, direct, []byte("g"), []byte("b"))
	tries := 0
	err := base{s}.Write(t.Context(), func(tx *sqlstore.Tx) error {
		tries++
		tx.Add(touch("a"))
		if err := tx.Flush(); err != nil {
			return err
		}
		other := make(chan error, 1)
		if tries == 1 {
			go func() {
				_, err := c.ExecContext(t.Context(), direct, []byte("g"), []byte("a"))
				_, end := c.ExecContext(t.Context(), "IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION")
				other <- errors.Join(err, end)
			}()
		}
		tx.Add(touch("b"))
		return tx.Flush()
	})
	if err != nil {
		t.Fatalf("after %d tries: %v", tries, err)
	}
}

// A commit whose answer is not waited for is unknown, not refused: the server may still carry it out.
func cancelledCommit(t *testing.T, dsn string) {
	s := fresh(t, dsn)
	h := session(t, s, "n", time.Minute)
	ctx, cancel := context.WithCancel(t.Context())
	hook := func() { cancel() }
	s.beforeCommit.Store(&hook)
	rs, err := commitTo(ctx, h, claim("k"))
	s.beforeCommit.Store(nil)
	if err == nil && (len(rs) != 1 || !errors.Is(rs[0].Err, backends.ErrUnknown)) {
		t.Fatalf("%v, %v", rs, err)
	}
	must(t, h, claim("k", backends.Check{Key: "k"})) // it was cancelled before it was sent, and left nothing behind, no lock either
}

// A user with the rights that Grants prints, and no others, can do everything but make the tables.
func smallRole(t *testing.T, dsn string) {
	s := fresh(t, dsn)
	if err := s.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	user := fmt.Sprintf("rebalancer_user_%d", time.Now().UnixNano())
	const password = "Very-Secret-1"
	db := sqlservertest.Connect(t, dsn)
	sqlservertest.Exec(t, db, "CREATE LOGIN "+user+" WITH PASSWORD = '"+password+"'")
	t.Cleanup(func() { _, _ = db.ExecContext(context.WithoutCancel(t.Context()), "DROP LOGIN "+user) })
	sqlservertest.Exec(t, db, "CREATE USER "+user+" FOR LOGIN "+user)
	t.Cleanup(func() { _, _ = db.ExecContext(context.WithoutCancel(t.Context()), "DROP USER "+user) })
	as := as(t, dsn, user, password)
	ask := func() error {
		small := openStore(t, as, Schema(s.schema))
		h, err := small.Open(t.Context(), backends.SessionOptions{Group: "g", Node: "n", TTL: time.Minute})
		if err != nil {
			return err
		}
		must(t, h, claim("small"))
		if _, err := h.Renew(t.Context(), backends.RenewRequest{Incarnation: h.Opened().Incarnation, Sweep: true}); err != nil {
			return err
		}
		if _, err := h.Supersede(t.Context(), "n"); err != nil {
			return err
		}
		return h.Close(t.Context())
	}
	if err := ask(); !errors.Is(err, backends.ErrFatal) {
		t.Errorf("without rights: %v", err)
	}
	sqlservertest.Exec(t, db, Grants(s.schema, user))
	if err := ask(); err != nil {
		t.Errorf("with the printed rights: %v", err)
	}
}
