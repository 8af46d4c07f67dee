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

func TestTraps(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, 15, "-c", "synchronous_commit=off", "-c", "default_transaction_isolation=serializable", "-c", "default_transaction_read_only=on")
	t.Cleanup(func() { noDeadlock(t, p) })
	for name, f := range map[string]func(*testing.T, *testserver.Postgres){
		"OpenRenewal":        renewalStillOpen,
		"OpenEnd":            endStillOpen,
		"OpenCommit":         commitStillOpen,
		"VersionAfterLock":   versionAfterLock,
		"Places":             placesAreLeft,
		"Durable":            durable,
		"SilentTransaction":  silentTransaction,
		"RenewalsPassCommit": renewalsOfOthers,
		"LongLists":          longLists,
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); f(t, p) })
	}
}

// A renewal that is still open when another node claims: the claim waits for it, and then finds the session alive.
func renewalStillOpen(t *testing.T, p *testserver.Postgres) {
	s := fresh(t, p)
	owner, taker := session(t, s, "owner", time.Second), session(t, s, "taker", time.Minute)
	must(t, owner, claim("k"))
	c := connect(t, p.URL("postgres", ""))
	exec(t, c, s, begin)
	if n := exec(t, c, s, `UPDATE {t}sessions SET expires = expires + 60000000 WHERE id = $1 AND expires > (extract(epoch FROM now()) * 1000000)::bigint`,
		[]byte(owner.ID())); n != 1 {
		t.Fatal("the owner's session has ended too soon for the test")
	}
	waittest.Until(t, "the session has run out, as others see it", func() bool {
		r, err := taker.Read(t.Context(), backends.ReadRequest{Keys: []string{"k"}})
		return err == nil && len(r.Entries) == 0
	})
	done := make(chan error, 1)
	go func() {
		rs, err := commit(t.Context(), taker, claim("k", backends.Check{Key: "k"}))
		if err == nil {
			err = rs[0].Err
		}
		done <- err
	}()
	look := connect(t, p.URL("postgres", ""))
	waittest.Until(t, "it waits", func() bool { return waits(t, look, s) })
	exec(t, c, s, `COMMIT`)
	if err := <-done; !errors.Is(err, backends.ErrConflict) {
		t.Fatalf("the claim of what is held: %v", err)
	}
	if _, err := renew(t.Context(), owner); err != nil {
		t.Fatalf("the owner: %v", err)
	}
}

// The other way round: who relies on the end of a session makes it final, so that a renewal that has been under way since before fails.
func endStillOpen(t *testing.T, p *testserver.Postgres) {
	s := fresh(t, p)
	owner, taker := session(t, s, "owner", time.Second), session(t, s, "taker", time.Minute)
	must(t, owner, claim("k"))
	c := connect(t, p.URL("postgres", ""))
	exec(t, c, s, begin) // now() stays before the end of the session
	exec(t, c, s, `SELECT now()`)
	waittest.Until(t, "the session was taken over", func() bool {
		rs, err := commit(t.Context(), taker, claim("k", backends.Check{Key: "k"}))
		return err == nil && rs[0].Err == nil
	})
	if n := exec(t, c, s, `UPDATE {t}sessions SET expires = expires + 60000000 WHERE id = $1 AND expires > (extract(epoch FROM now()) * 1000000)::bigint`,
		[]byte(owner.ID())); n != 0 {
		t.Fatal("a renewal under way has revived a session whose end was relied on")
	}
	exec(t, c, s, `COMMIT`)
}

// A commit that is still open when its own session runs out: whoever relies on that end waits for the commit, so none comes after it.
func commitStillOpen(t *testing.T, p *testserver.Postgres) {
	s := fresh(t, p)
	owner := session(t, s, "owner", time.Second)
	must(t, owner, claim("k"))
	taker := session(t, openStore(t, p.URL("postgres", ""), Schema(s.schema)), "taker", time.Minute)
	reached, goOn := make(chan struct{}), make(chan struct{})
	pause := func() { close(reached); <-goOn }
	s.beforeCommit.Store(&pause)
	late, taken := make(chan error, 1), make(chan error, 1)
	try := func(h backends.Session, key string, done chan error) {
		rs, err := commit(t.Context(), h, claim(key))
		if err == nil {
			err = rs[0].Err
		}
		done <- err
	}
	go try(owner, "late", late)
	<-reached
	c := connect(t, p.URL("postgres", ""))
	waittest.Until(t, "the session has run out", func() bool {
		return ask[bool](t, c, s, `SELECT expires < (extract(epoch FROM now()) * 1000000)::bigint FROM {t}sessions WHERE id = $1`, []byte(owner.ID()))
	})
	go try(taker, "k", taken)
	waittest.Until(t, "it waits, or did not", func() bool { return waits(t, c, s) || len(taken) > 0 })
	if len(taken) > 0 {
		t.Fatal("the end of a session was relied on while its last commit was open")
	}
	close(goOn)
	if err := errors.Join(<-late, <-taken); err != nil {
		t.Fatal(err)
	}
}

// A version is drawn after the lock: a writer that waited gets one that is later than all that was written meanwhile.
func versionAfterLock(t *testing.T, p *testserver.Postgres) {
	s := fresh(t, p)
	h := session(t, s, "n", time.Minute)
	first := must(t, h, claim("k"))[0].Versions["k"]
	c := connect(t, p.URL("postgres", ""))
	exec(t, c, s, begin)
	exec(t, c, s, `SELECT 1 FROM {t}entries WHERE name = 'k' FOR UPDATE`)
	done := make(chan int64, 1)
	go func() {
		rs, err := commit(t.Context(), h, claim("k"))
		if err != nil || rs[0].Err != nil {
			t.Error(err, rs)
			done <- 0
			return
		}
		done <- rs[0].Versions["k"]
	}()
	look := connect(t, p.URL("postgres", ""))
	waittest.Until(t, "it waits", func() bool { return waits(t, look, s) })
	wall := ask[int64](t, c, s, `SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint`)
	exec(t, c, s, `COMMIT`)
	if version := <-done; version <= first || version < wall {
		t.Fatalf("version %d, %d before, the clock was at %d while it waited", version, first, wall)
	}
}

// A commit that depends on the absence of keys leaves nothing of the rows that held their place.
func placesAreLeft(t *testing.T, p *testserver.Postgres) {
	s := fresh(t, p)
	a, b := session(t, s, "a", time.Minute), session(t, s, "b", time.Minute)
	done := make(chan error, 2)
	for h, txn := range map[backends.Session]backends.Txn{
		a: claim("a", backends.Check{Key: "b"}, backends.Check{Key: "c"}), b: claim("b", backends.Check{Key: "a"}, backends.Check{Key: "c"}),
	} {
		go func() { _, err := commit(t.Context(), h, txn); done <- err }()
	}
	if err := errors.Join(<-done, <-done); err != nil {
		t.Fatal(err)
	}
	if n := ask[int](t, connect(t, p.URL("postgres", "")), s, `SELECT count(*)::int FROM {t}entries WHERE version = 0`); n != 0 {
		t.Errorf("%d rows that held a place are left", n)
	}
}

// Every write waits for the disk, although this server's default is not to; a stricter setting than that stays.
func durable(t *testing.T, p *testserver.Postgres) {
	s := fresh(t, p)
	if err := s.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := connect(t, p.URL("postgres", ""))
	exec(t, c, s, `SET default_transaction_read_only = off`)
	exec(t, c, s, `CREATE TABLE {t}seen (setting text)`)
	exec(t, c, s, `CREATE FUNCTION {t}look() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		INSERT INTO `+quote(s.schema)+`.seen VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$`)
	for _, table := range []string{"sessions", "entries", "record"} {
		exec(t, c, s, `CREATE TRIGGER look AFTER INSERT OR UPDATE OR DELETE ON {t}`+table+` EXECUTE FUNCTION {t}look()`)
	}
	work := func(s *Store, want string) {
		t.Helper()
		exec(t, c, s, `TRUNCATE {t}seen`)
		h := session(t, s, "n", time.Minute)
		if _, err := h.Renew(t.Context(), backends.RenewRequest{Incarnation: h.Opened().Incarnation, Sweep: true}); err != nil {
			t.Fatal(err)
		}
		must(t, h, claim("k"))
		if _, err := h.Supersede(t.Context(), "n"); err != nil {
			t.Fatal(err)
		}
		if err := h.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := ask[int](t, c, s, `SELECT count(*)::int FROM {t}seen`); n < 8 {
			t.Fatalf("%d writes were seen", n)
		}
		if n := ask[int](t, c, s, `SELECT count(*)::int FROM {t}seen WHERE setting <> $1`, want); n != 0 {
			t.Errorf("%d writes were made with another setting than %s", n, want)
		}
	}
	work(s, "on")
	work(openStore(t, p.URL("postgres", "")+"&synchronous_commit=remote_apply", Schema(s.schema)), "remote_apply")
	work(openStore(t, p.URL("postgres", "")+"&synchronous_commit=local", Schema(s.schema)), "on")
}

// A process that falls silent within a commit (it is frozen, or cut off) does not keep its locks: the server ends its transaction, which then fails
// with an error that says that nothing was applied.
func silentTransaction(t *testing.T, p *testserver.Postgres) {
	s := fresh(t, p)
	other := session(t, s, "other", time.Minute)
	must(t, other, claim("k"))
	silent, reached := make(chan struct{}), make(chan error, 1)
	go func() {
		tries := 0
		reached <- base{s}.Write(t.Context(), func(tx *sqlstoreTx) error {
			if tries++; tries > 1 {
				return errSecondTry
			}
			tx.Add(lock("g", keysNamed("k"))...)
			if err := tx.Flush(); err != nil {
				return err
			}
			close(silent)
			<-time.After(longestPause + 2*time.Second)
			return nil
		})
	}()
	<-silent
	start := time.Now()
	must(t, other, backends.Txn{Puts: []backends.Put{{Key: "k"}}})
	if took := time.Since(start); took > longestPause+10*time.Second {
		t.Errorf("the other waited %v", took)
	}
	if err := <-reached; !errors.Is(err, errSecondTry) {
		t.Errorf("the silent one: %v, want that it is tried again", err)
	}
}

// A renewal of one node does not wait for a commit of another that depends on other keys, even one whose transaction is open.
func renewalsOfOthers(t *testing.T, p *testserver.Postgres) {
	s := fresh(t, p)
	a, b := session(t, s, "a", time.Minute), session(t, s, "b", time.Minute)
	must(t, a, claim("of a"))
	err := base{s}.Write(t.Context(), func(tx *sqlstoreTx) error {
		tx.Add(lock("g", keysNamed("of a"))...)
		if err := tx.Flush(); err != nil {
			return err
		}
		if _, err := renew(t.Context(), b, "of a"); err != nil {
			return err
		}
		if _, err := renew(t.Context(), a, "of a"); err != nil {
			return err
		}
		rs, err := commit(t.Context(), b, claim("of b"))
		if err == nil {
			err = rs[0].Err
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Lists of more keys than one statement takes are split, and are whole.
func longLists(t *testing.T, p *testserver.Postgres) {
	s := fresh(t, p)
	h := session(t, s, "n", 10*time.Minute)
	const n = 12_000
	var keys []string
	var all backends.Txn
	for i := range n {
		key := keyNumber(i)
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
