package sqlserver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/sqlstore"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files instead of comparing with them")

// golden compares a text with a file of testdata.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != text {
		t.Errorf("%s has changed; look at the difference, try it on a server, and run the test with -rewrite.\n--- now:\n%s", path, text)
	}
}

func TestGoldenSchema(t *testing.T) {
	t.Parallel()
	golden(t, "schema.sql", DDL("my [odd] 'name'")+"\n"+Grants("my [odd] 'name'", "app]user"))
}

// callsOf is how many calls, one after the other, each takes: a renewal and a read one, and one more what is swept besides; a commit begins, reads, writes and commits.
var callsOf = map[string]int{"open": 4, "groups": 1, "renew": 2, "read": 1, "commit": 4, "supersede": 4, "close": 3, "create": 4}

// Every call of the contract, as it is sent.
func TestGoldenCalls(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	calls := map[string]func(backends.Session, *Store) error{
		"open":   func(backends.Session, *Store) error { return nil },
		"groups": func(_ backends.Session, s *Store) error { _, err := s.Groups(ctx); return err },
		"renew": func(h backends.Session, _ *Store) error {
			_, err := h.Renew(ctx, backends.RenewRequest{Incarnation: "inc", Keys: []string{"a", "b", "c"}, Digests: []string{"p/"}, Sweep: true})
			return err
		},
		"read": func(h backends.Session, _ *Store) error {
			_, err := h.Read(ctx, backends.ReadRequest{Prefixes: []string{"p/", "\xff"}, Keys: []string{"a"}})
			return err
		},
		"commit": func(h backends.Session, _ *Store) error {
			r, err := h.Commit(ctx, backends.CommitRequest{Incarnation: "inc", Txns: []backends.Txn{
				{Checks: []backends.Check{{Key: "leader", Version: 7}}, Puts: []backends.Put{{Key: "new", Value: []byte("v"), Bound: true}, {Key: "leader", Value: []byte("w")}}},
			}})
			if err == nil {
				err = r.Results[0].Err
			}
			return err
		},
		"supersede": func(h backends.Session, _ *Store) error { _, err := h.Supersede(ctx, "node"); return err },
		"close":     func(h backends.Session, _ *Store) error { return h.Close(ctx) },
		"create":    func(_ backends.Session, s *Store) error { return s.Create(ctx) },
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := &fakeServer{}
			db := sql.OpenDB(fake)
			defer func() { _ = db.Close() }()
			s, err := New(db)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			h, err := s.Open(ctx, backends.SessionOptions{Group: "group", Node: "node", TTL: 30 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			text := fake.take()
			if name != "open" {
				if err := call(h, s); err != nil {
					t.Fatal(err)
				}
				text = fake.take()
			}
			if n := strings.Count(text, "-- call\n"); n != callsOf[name] {
				t.Errorf("%d calls, that is round trips, want %d", n, callsOf[name])
			}
			golden(t, name+".sql", strings.ReplaceAll(text, h.ID(), "SESSION"))
		})
	}
}

// Establishing the record, once it is missing.
func TestGoldenRecord(t *testing.T) {
	t.Parallel()
	fake := &fakeServer{absent: true}
	db := sql.OpenDB(fake)
	defer func() { _ = db.Close() }()
	s, err := New(db)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if _, err := s.Groups(t.Context()); err != nil {
		t.Fatal(err)
	}
	golden(t, "record.sql", fake.take())
}

// Many writes are split over calls that the server takes, in one transaction; the commit comes last.
func TestLongCommitsAreSplit(t *testing.T) {
	t.Parallel()
	fake := &fakeServer{}
	db := sql.OpenDB(fake)
	defer func() { _ = db.Close() }()
	s, err := New(db)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	err = base{s}.Write(t.Context(), func(tx *sqlstore.Tx) error {
		for range 1500 {
			tx.Add(sqlstore.Statement{SQL: `UPDATE {t}entries SET value = ? WHERE name = ?`, Args: []any{[]byte("v"), []byte("n")}, Done: sqlstore.AllChanged(1)})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if fake.widest > 2100 || fake.calls < 4 {
		t.Errorf("%d calls, the widest had %d arguments", fake.calls, fake.widest)
	}
	if text := fake.take(); strings.Count(text, "BEGIN TRANSACTION") != 1 || !strings.HasSuffix(strings.TrimSpace(text), commit) {
		t.Errorf("it is no single transaction:\n%.300s", text)
	}
}

// fakeServer answers each set of rows that a call asks for with one row, as far as it knows what is asked.
type fakeServer struct {
	mu     sync.Mutex
	text   strings.Builder
	absent bool // the record is, until it is written
	calls  int
	widest int
}

func (f *fakeServer) take() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	text := f.text.String()
	f.text.Reset()
	return text
}

func (f *fakeServer) Connect(context.Context) (driver.Conn, error) { return fakeConn{f}, nil }
func (f *fakeServer) Driver() driver.Driver                        { return nil }

type fakeConn struct{ f *fakeServer }

func (fakeConn) Prepare(string) (driver.Stmt, error) { return nil, errors.New("never") }
func (fakeConn) Begin() (driver.Tx, error)           { return nil, errors.New("never") }
func (fakeConn) Close() error                        { return nil }

func (c fakeConn) note(query string, args []driver.NamedValue) {
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	c.f.calls++
	c.f.widest = max(c.f.widest, len(args))
	fmt.Fprintf(&c.f.text, "-- call\n%s\n", strings.TrimSpace(query))
	for i, a := range args {
		switch v := a.Value.(type) {
		case []byte:
			fmt.Fprintf(&c.f.text, "-- @p%d = %q\n", i+1, v)
		case int64:
			if v > 1e15 {
				v = 1e15 // a clock
			}
			fmt.Fprintf(&c.f.text, "-- @p%d = %d\n", i+1, v)
		case string:
			if len(v) == 26 {
				v = "RANDOM"
			}
			fmt.Fprintf(&c.f.text, "-- @p%d = N'%s'\n", i+1, v)
		}
	}
}

func (c fakeConn) ExecContext(_ context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.note(query, args)
	return driver.RowsAffected(1), nil
}

func (c fakeConn) QueryContext(_ context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.note(query, args)
	r := &fakeRows{}
	for _, line := range strings.Split(query, "\n") {
		switch {
		case strings.HasPrefix(line, "SELECT @now, @incarnation"):
			if c.f.absent {
				c.f.absent = false
				r.sets = append(r.sets, []driver.Value{int64(1e15), nil, nil})
				return r, nil
			}
			r.sets = append(r.sets, []driver.Value{int64(1e15), "inc", int64(1e14)})
		case strings.HasPrefix(line, "SELECT @incarnation"):
		case strings.HasPrefix(line, "SELECT CASE WHEN expires"):
			r.sets = append(r.sets, []driver.Value{int64(1), int64(0)})
		case strings.HasPrefix(line, "SELECT e.name, e.version, e.session, e.gone"):
			r.sets = append(r.sets, []driver.Value{[]byte("leader"), int64(7), []byte{}, int64(0), int64(1)})
		case strings.HasPrefix(line, "SELECT e.name"), strings.HasPrefix(line, "SELECT DISTINCT"), strings.HasPrefix(line, "SELECT id, proof"):
			r.sets = append(r.sets, nil)
		case strings.HasPrefix(line, "SELECT"):
			r.sets = append(r.sets, []driver.Value{int64(1)})
		}
	}
	return r, nil
}

// fakeRows has one row in each set; nil: none.
type fakeRows struct {
	sets [][]driver.Value
	at   int
	read bool
}

func (r *fakeRows) Columns() []string {
	if r.at >= len(r.sets) {
		return nil
	}
	return make([]string, max(1, len(r.sets[r.at])))
}
func (r *fakeRows) Close() error { return nil }
func (r *fakeRows) Next(dest []driver.Value) error {
	if r.read || r.at >= len(r.sets) || r.sets[r.at] == nil {
		return io.EOF
	}
	r.read = true
	copy(dest, r.sets[r.at])
	return nil
}
func (r *fakeRows) HasNextResultSet() bool { return r.at+1 < len(r.sets) }
func (r *fakeRows) NextResultSet() error {
	r.at, r.read = r.at+1, false
	if r.at >= len(r.sets) {
		return io.EOF
	}
	return nil
}
