package main

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/rebalancer-go/rebalancer/backends"
)

func TestDoctor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.want(codeDone, "ok  session", "", "doctor")
	for _, step := range []string{"write", "renew", "read", "hints", "close"} {
		if !strings.Contains(r.out, "ok  "+step) {
			t.Errorf("no word about %s:\n%s", step, r.out)
		}
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
