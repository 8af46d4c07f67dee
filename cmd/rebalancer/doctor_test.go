package main

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/sources"
)

func TestDoctor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.want(codeDone, "Store", "", "doctor")
	said := strings.Join(strings.Fields(r.out), " ")
	for _, step := range []string{"session", "write", "renew", "read", "hints", "close"} {
		if !strings.Contains(said, "ok "+step) {
			t.Errorf("no word about %s:\n%s", step, r.out)
		}
	}
	if !strings.Contains(r.out, "no server to ask") {
		t.Errorf("nothing of durability:\n%s", r.out)
	}
	if groups, err := w.store.Groups(t.Context()); err != nil || len(groups) != 0 {
		t.Errorf("it left %q behind, %v", groups, err)
	}
}

// ill is a store with a server that can be reached, and nothing more.
type ill struct{ backends.Store }

var errIll = errors.New("permission denied")

func (ill) Close() error                               { return nil }
func (ill) Version(context.Context) (string, error)    { return "Test 7", nil }
func (ill) Warnings(context.Context) ([]string, error) { return []string{"may lose data"}, nil }
func (ill) Open(context.Context, backends.SessionOptions) (backends.Session, error) {
	return nil, errIll
}

func TestDoctorFindsSomething(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	out, errs := w.runOver(ill{}, "doctor")
	if !strings.Contains(out, "Test 7") || !strings.Contains(out, "FAILED  session") || !strings.Contains(errs, "session: permission denied") {
		t.Errorf("stdout:\n%s\nstderr:\n%s", out, errs)
	}
	out, _ = w.runOver(inspected{w.store}, "doctor")
	if !strings.Contains(out, "may lose data") {
		t.Errorf("stdout:\n%s", out)
	}
}

// inspected is a store that works, and has something to say.
type inspected struct{ backends.Store }

func (inspected) Close() error                               { return nil }
func (inspected) Version(context.Context) (string, error)    { return "Test 7", nil }
func (inspected) Warnings(context.Context) ([]string, error) { return []string{"may lose data"}, nil }

// opening is a store that cannot be opened for this reason.
func opening(err error) []storeDriver {
	return []storeDriver{{scheme: "test", open: func(context.Context, *url.URL, bool) (backends.Store, error) { return nil, err }}}
}

func TestDoctorSaysWhatToDo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	out, errs := w.runWith(opening(fmt.Errorf("connect: %w", syscall.ECONNREFUSED)), "doctor")
	if !strings.Contains(out, "FAILED  open") || !strings.Contains(out, "to do: nothing listens there") || !strings.Contains(errs, "open: connect") {
		t.Errorf("stdout:\n%s\nstderr:\n%s", out, errs)
	}
	for want, err := range map[string]error{
		"host's name":                    fmt.Errorf("x: %w", &net.DNSError{Err: "no such host", Name: "h"}),
		"REBALANCER_STORE_PASSWORD":      errors.New("FATAL: password authentication failed for user \"x\""),
		"rebalancer schema":              errors.New("ERROR: permission denied for table entries"),
		"authority of the server's":      x509.UnknownAuthorityError{},
		"name that the server's":         x509.HostnameError{Certificate: &x509.Certificate{}},
		"no answer in time":              context.DeadlineExceeded,
		"make the resource":              fmt.Errorf("queue: %w", sources.ErrGone),
		"ended the connection":           syscall.ECONNRESET,
		"give this user the right to it": fs.ErrPermission,
	} {
		if got := advice("store", err); !strings.Contains(got, want) {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
	if got := advice("source", errors.New("operation error SQS: AccessDenied")); !strings.Contains(got, "documentation of the source") {
		t.Errorf("%q", got)
	}
	if got := advice("store", errors.New("something else")); got != "" {
		t.Errorf("%q", got)
	}
}

func TestDoctorInJSON(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var got struct {
		OK       bool
		Findings []finding
	}
	r := w.want(codeDone, "", "", "doctor", "-o", "json")
	if err := json.Unmarshal([]byte(r.out), &got); err != nil || !got.OK || len(got.Findings) < 6 || got.Findings[0].About != "store" {
		t.Errorf("%v: %s", err, r.out)
	}
	out, _ := w.runOver(ill{}, "doctor", "-o", "json")
	if err := json.Unmarshal([]byte(out), &got); err != nil || got.OK || got.Findings[len(got.Findings)-1].State != stateFailed {
		t.Errorf("%v: %s", err, out)
	}
	w.want(codeUsage, "", "text or json", "doctor", "-o", "xml")
	w.want(codeUsage, "", "need --source", "doctor", "--resource", "x")
}

func TestVersions(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"PostgreSQL 17.2":                 "ok PostgreSQL 17.2; tests ran on PostgreSQL 15.20 and 17.12",
		"PostgreSQL 14.1 (Debian 14.1-1)": "warning PostgreSQL 14.1 is none that the tests ran on: PostgreSQL 15.20 and 17.12; use PostgreSQL 15.20 or newer",
		"PostgreSQL 18.0":                 "note PostgreSQL 18.0 is none that the tests ran on: PostgreSQL 15.20 and 17.12",
		"Redis 7.2.1":                     "note Redis 7.2.1 is none that the tests ran on: Redis 7.0.15",
		"Redis 7.0.1, Valkey 8.1.9":       "ok Redis 7.0.1; tests ran on Redis 7.0.15\nok Valkey 8.1.9; tests ran on Valkey 8.1.1",
		"RabbitMQ 3.9.1":                  "warning RabbitMQ 3.9.1 is none that the tests ran on: RabbitMQ 3.10.8 and 4.0.5; use RabbitMQ 3.10.8 or newer",
		"220 (vsFTPd 3.0.5)":              "ok vsFTPd 3.0.5; tests ran on vsFTPd 3.0.3",
		"SSH-2.0-OpenSSH_9.2p1 Debian":    "ok OpenSSH 9.2; tests ran on OpenSSH 9.2",
		"Something 1.0":                   "",
	} {
		d := &doctor{}
		d.version(said)
		var got []string
		for _, f := range d.findings {
			line := f.State + " " + f.Text
			if f.Do != "" {
				line += "; " + f.Do
			}
			got = append(got, line)
		}
		if strings.Join(got, "\n") != want {
			t.Errorf("%s: %q, want %q", said, got, want)
		}
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range testedServers() {
		for _, v := range s.versions {
			if !strings.Contains(string(readme), v) {
				t.Errorf("the README does not say that %s %s was tested", s.name, v)
			}
		}
	}
}

func TestSchema(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := func(args ...string) (string, string) {
		return w.runWith(storeDrivers(), append([]string{"schema"}, args...)...)
	}
	for url, want := range map[string]string{
		"postgres://me@h/d?rebalancer_schema=mine": `"mine"`,
		"redis://h":        "ACL SETUSER rebalancer",
		"sqlite:///x/y.db": "no preparation",
		"zk://a:1,b:2/c":   "no preparation",
	} {
		if out, errs := p("--store", url); !strings.Contains(out, want) {
			t.Errorf("%s: %s%s", url, out, errs)
		}
	}
	if _, errs := p("--store", "ftp://u:secret@h"); !strings.Contains(errs, "not known") || strings.Contains(errs, "secret") {
		t.Errorf("%s", errs)
	}
	if out, _ := p("--store", "postgres://me:secret@h/d"); strings.Contains(out, "secret") || !strings.Contains(out, "me") {
		t.Errorf("%s", out)
	}
}

func TestParameterIsTakenOut(t *testing.T) {
	t.Parallel()
	u, _ := url.Parse("postgres://h/d?a=b&rebalancer_schema=x%20y")
	got, value := withoutParameter(u, schemaParameter)
	if got.String() != "postgres://h/d?a=b" || value != "x y" {
		t.Errorf("%s %q", got, value)
	}
}
