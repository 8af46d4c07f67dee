//go:build linux

package ftp

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/internal/files"
	"github.com/rebalancer-go/rebalancer/internal/programtest"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
	"github.com/rebalancer-go/rebalancer/sources"
)

// logs collects what a Logger was told.
type logs struct{ programtest.Buffer }

func (l *logs) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// plainKinds are the servers without TLS, one of each.
func plainKinds() []testserver.FTPOptions {
	return slices.DeleteFunc(slices.Clone(kinds), func(o testserver.FTPOptions) bool { return o.TLS != "" })
}

// open makes a source with a resource "in", and a place and a directory on the disk of it.
func openPlace(t *testing.T, s *testserver.FTP, change func(*Config)) (p *place, dir string) {
	t.Helper()
	c, root := config(t, s)
	if change != nil {
		change(&c)
	}
	dir = filepath.Join(root, "in")
	mkdir(t, dir)
	return &place{source: newSource(t, c), resource: "in"}, dir
}

// reader opens the resource "in" of a source.
func reader(t *testing.T, s *Source) sources.Reader {
	t.Helper()
	r, err := s.Open(ctx(t), &rebalancer.Claim{Group: "g", Resource: "in", Fence: 1})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// ctx bounds a step of a test.
func ctx(t *testing.T) context.Context {
	t.Helper()
	c, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return c
}

func fetch(t *testing.T, r sources.Reader) *rebalancer.Message {
	t.Helper()
	ms, err := r.Fetch(ctx(t), 1)
	if err != nil {
		t.Fatal(err)
	}
	return ms[0]
}

func settle(t *testing.T, r sources.Reader, o sources.Outcome, m *rebalancer.Message) error {
	t.Helper()
	return r.Settle(ctx(t), []sources.Settlement{{Message: m, Outcome: o, Err: errors.New("no good")}})
}

func write(t *testing.T, path, body string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(body), 0o644); err != nil {
		t.Fatal(err)
	}
}

func list(t *testing.T, p *place) map[string]*files.Info {
	t.Helper()
	got := map[string]*files.Info{}
	err := p.List(ctx(t), func(page []files.Entry) error {
		for _, e := range page {
			if _, ok := got[e.Name]; ok {
				t.Errorf("%q is listed twice", e.Name)
			}
			got[e.Name] = e.Info
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// stat observes a file that is there.
func stat(t *testing.T, p *place, name string) files.Info {
	t.Helper()
	i, err := p.Stat(ctx(t), name)
	if err != nil {
		t.Fatal(err)
	}
	return i
}
