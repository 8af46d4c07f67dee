package sqlserver

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	mssql "github.com/microsoft/go-mssqldb"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/sqlstore"
)

// as is the URL with another user.
func as(t testing.TB, dsn, user, password string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(user, password)
	return u.String()
}

// opens tells how opening a session ends.
func opens(t *testing.T, dsn string, opts ...Option) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_, err := openStore(t, dsn, opts...).Open(ctx, backends.SessionOptions{Group: "g", TTL: time.Minute})
	return err
}

func wants(t *testing.T, err error, fatal bool, words ...string) {
	t.Helper()
	if err == nil || errors.Is(err, backends.ErrFatal) != fatal {
		t.Errorf("error %v, fatal: %v", err, errors.Is(err, backends.ErrFatal))
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the error does not say %q: %v", w, err)
		}
	}
	if strings.Contains(err.Error(), "Secret") {
		t.Errorf("the error shows a secret: %v", err)
	}
}

func TestErrorsOfServers(t *testing.T) {
	t.Parallel()
	dsn := databases.Database(t, true)
	wants(t, opens(t, dsn), true, "is missing", "CreateSchema")
	wants(t, opens(t, as(t, dsn, "nobody", "Secret")), true, "login")
	wants(t, opens(t, strings.Replace(dsn, "database=", "database=not_", 1)), true, "no such database")
}

func TestUnreachableServersAreNotFatal(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	err = opens(t, "sqlserver://user:Secret@"+addr+"?database=d")
	wants(t, err, false, addr, "cannot be reached")
}

// A server that accepts and then says nothing is left when the context ends, and leaves nothing behind.
func TestSilentServersAreLeft(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(io.Discard, c); _ = c.Close() }()
		}
	}()
	s := openStore(t, "sqlserver://user:Secret@"+l.Addr().String()+"?database=d")
	for _, call := range []func(context.Context) error{
		func(ctx context.Context) error {
			_, err := s.Open(ctx, backends.SessionOptions{Group: "g", TTL: time.Minute})
			return err
		},
		func(ctx context.Context) error { _, err := s.Groups(ctx); return err },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		began := time.Now()
		err := call(ctx)
		cancel()
		if took := time.Since(began); err == nil || took > 5*time.Second || errors.Is(err, backends.ErrFatal) {
			t.Errorf("%v after %v", err, took)
		}
	}
}

func TestWhatErrorsMean(t *testing.T) {
	t.Parallel()
	s := openStore(t, "sqlserver://user:Secret@h?database=d")
	for number, fatal := range map[int32]bool{badLogin: true, cannotOpen: true, noObject: true, noRight: true, noFunction: true, readOnly: false, logFull: false, deadlock: false} {
		err := s.wrap(fmt.Errorf("x: %w", mssql.Error{Number: number, Class: 14, Message: "said the server"}))
		wants(t, err, fatal, "h:1433/d", "said the server")
	}
	if err := s.wrap(mssql.Error{Number: longKey, Class: 16}); !errors.Is(err, backends.ErrInvalid) {
		t.Error(err)
	}
	wants(t, s.wrap(errors.New("TLS Handshake failed: x509: certificate is valid for a, not b")), true, "not for this name")
	wants(t, s.wrap(errors.New("TLS Handshake failed: x509: certificate signed by unknown authority")), true, "not trusted")
	for _, c := range []struct {
		err  error
		want bool
	}{
		{mssql.Error{Number: deadlock, Class: 13}, true},
		{mssql.Error{Number: notGranted, Class: 16}, true},
		{mssql.Error{Number: noRight, Class: 14}, false},
		{driver.ErrBadConn, true},
		{io.EOF, true},
		{context.Canceled, false},
		{fmt.Errorf("%w: %w", backends.ErrUnknown, io.EOF), false},
		{&net.OpError{Op: "dial", Err: errors.New("connection refused")}, false},
		{&net.OpError{Op: "read", Err: errors.New("connection reset by peer")}, true},
		{sqlstore.Refuse(errors.New("an entry changed")), false},
		{fmt.Errorf("%w: the tables have another format", backends.ErrFatal), false},
		{fmt.Errorf("reading: %w", &net.OpError{Op: "write", Err: io.ErrNoProgress}), true},
	} {
		if got := passing(c.err); got != c.want {
			t.Errorf("passing(%v) = %v", c.err, got)
		}
	}
}

func TestOpenRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	for _, dsn := range []string{"sqlserver://user:Secret%zz@h", "sqlserver://user:Secret@h:port", "sqlserver://user:Secret@h?encrypt=perhaps", "sqlserver://user:Secret@h?connection+timeout=x"} {
		_, err := Open(dsn)
		wants(t, err, true)
	}
	for _, name := range []string{"", strings.Repeat("x", 129), "a\x00"} {
		_, err := Open("sqlserver://user:Secret@h", Schema(name))
		wants(t, err, true, "1 to 128")
	}
}

// TestOutcomeOfCommits: what says that nothing was applied, and what leaves it open.
func TestOutcomeOfCommits(t *testing.T) {
	t.Parallel()
	victim := mssql.Error{Number: deadlock, Class: 13}
	for _, c := range []struct {
		what    string
		err     error
		more    bool
		unknown bool
	}{
		{"it was applied", nil, true, false},
		{"the record is another one, so nothing was carried out", sqlstore.ErrRecord, true, false},
		{"the server refused it", victim, false, false},
		{"one of our statements refused it", sqlstore.Refuse(errors.New("no")), false, false},
		{"the server refused it, or what was asked behind it", victim, true, true},
		{"an answer behind it could not be read", sqlstore.Refuse(errors.New("no")), true, true},
		{"the connection broke", io.ErrUnexpectedEOF, false, true},
		{"the server ended the connection", mssql.Error{Number: 596, Class: fatalClass}, false, true},
		{"the time was over", context.DeadlineExceeded, false, true},
	} {
		if got := outcome(c.err, c.more); errors.Is(got, backends.ErrUnknown) != c.unknown || (got == nil) != (c.err == nil) {
			t.Errorf("%s: %v", c.what, got)
		}
	}
}
