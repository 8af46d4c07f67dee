//go:build linux

package postgres

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
)

const secret = "s3cr3t-w0rd"

// A role that has the printed grants, on tables that somebody else made, needs no more; nor does one that owns its schema and makes the tables.
func TestRights(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, 15)
	schema := newSchema()
	p.Exec(t, `REVOKE CREATE ON DATABASE postgres FROM PUBLIC; CREATE ROLE "a user" LOGIN; CREATE ROLE stranger LOGIN; CREATE ROLE owner LOGIN;
		CREATE SCHEMA "of the owner" AUTHORIZATION owner`)
	p.Exec(t, DDL(schema))
	p.Exec(t, DDL(schema)) // it may be run again
	p.Exec(t, Grants(schema, "a user"))
	for user, place := range map[string]string{"a user": schema, "owner": "of the owner"} {
		s := openStore(t, p.URL(user, ""), Schema(place), CreateSchema())
		if err := s.Create(t.Context()); err != nil {
			t.Fatalf("Create as %s: %v", user, err)
		}
		uses(t, s)
	}
	s := openStore(t, p.URL("stranger", ""), Schema(schema))
	fails(t, s, true, "lacks a right", "Grants", schema)
	s = openStore(t, p.URL("stranger", ""), Schema("new"), CreateSchema())
	fails(t, s, true, "lacks a right", "new")
}

// uses does once what a store can do.
func uses(t *testing.T, s *Store) {
	t.Helper()
	h := session(t, s, "n", time.Minute)
	must(t, h, claim("k", backends.Check{Key: "k"}), backends.Txn{Deletes: []string{"k"}, Wake: []string{"a"}})
	if _, err := h.Renew(t.Context(), backends.RenewRequest{Incarnation: h.Opened().Incarnation, Digests: []string{""}, Sweep: true}); err != nil {
		t.Fatal(err)
	}
	if err := h.Listen(t.Context(), "a", func() {}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Supersede(t.Context(), "n"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Groups(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := h.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// fails opens a session, and wants an error that says all of these things and no secret.
func fails(t *testing.T, s *Store, fatal bool, says ...string) {
	t.Helper()
	_, err := s.Open(t.Context(), backends.SessionOptions{Group: "g", TTL: time.Minute})
	if err == nil {
		t.Fatalf("opened, want an error that says %q", says)
	}
	if errors.Is(err, backends.ErrFatal) != fatal {
		t.Errorf("fatal is %v, want %v: %v", !fatal, fatal, err)
	}
	for _, word := range append(says, s.schema) {
		if !strings.Contains(strings.ReplaceAll(err.Error(), `\"`, `"`), word) {
			t.Errorf("the error does not say %q: %v", word, err)
		}
	}
	if strings.Contains(err.Error(), secret) {
		t.Errorf("a secret in the error: %v", err)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, 15)
	p.Exec(t, `CREATE ROLE `+testserver.PasswordUser+` LOGIN PASSWORD 'right'`)
	open := func(url string, opts ...Option) *Store { return openStore(t, url, opts...) }
	fails(t, open(p.URL("postgres", "")), true, "schema or a table in it is missing", "DDL", p.Addr())
	fails(t, open(p.URL(testserver.PasswordUser, secret)), true, "password", p.Addr())
	fails(t, open(p.URL("nobody", secret)), true, "role", p.Addr())
	fails(t, open(strings.Replace(p.URL("postgres", secret), "/postgres?", "/missing?", 1)), true, "no such database", "missing")
	fails(t, open(strings.Replace(p.URL("postgres", secret), "sslmode=disable", "sslmode=require", 1)), true, "TLS", p.Addr())
	link := testserver.Proxy(t, p.Addr())
	addr := link.Addr()
	link.Cut()
	fails(t, open(p.URLAt(addr, "postgres", secret)), false, "cannot be reached", addr)
	fails(t, open("postgres://postgres:"+secret+"@no.such.host.invalid/postgres?sslmode=disable"), false, "cannot be reached", "no.such.host.invalid")
	if _, err := Open("postgres://u:" + url.QueryEscape(secret) + "@h:notaport/d"); !errors.Is(err, backends.ErrFatal) || strings.Contains(err.Error(), secret) {
		t.Errorf("a bad URL: %v", err)
	}
	if _, err := Open(p.URL("postgres", ""), Schema(strings.Repeat("s", 64))); !errors.Is(err, backends.ErrFatal) {
		t.Errorf("a schema's name that is too long: %v", err)
	}
	s := fresh(t, p)
	session(t, s, "n", time.Minute)
	p.Exec(t, in(s.schema, `UPDATE {t}record SET format = 99`))
	fails(t, openStore(t, p.URL("postgres", ""), Schema(s.schema)), true, "format 99")
}

func TestOldServersAreRefused(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{"15.3 (Debian 15.3-0)": true, "17.2": true, "18beta1": true, "14.9": false, "9.6.24": false, "": true, "unknown": true} {
		if err := supportedVersion(text); (err == nil) != ok || err != nil && (!errors.Is(err, backends.ErrFatal) || !strings.Contains(err.Error(), text)) {
			t.Errorf("version %q: %v", text, err)
		}
	}
}
