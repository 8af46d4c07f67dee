//go:build linux

package ftp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/internal/files"
	"github.com/rebalancer-go/rebalancer/internal/readertest"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
	"github.com/rebalancer-go/rebalancer/sources"
	"github.com/rebalancer-go/rebalancer/sources/pickup"
)

// faultKinds are one without and one with TLS of each.
var faultKinds = []testserver.FTPOptions{
	{Kind: "vsftpd"}, {Kind: "vsftpd", TLS: "explicit"}, {Kind: "proftpd"}, {Kind: "proftpd", TLS: "explicit"}, {Kind: "pure-ftpd"}, {Kind: "pure-ftpd", TLS: "explicit"},
}

// A server that answers nothing, on connections that stay open, holds no call longer than the timeout.
func TestFrozen(t *testing.T) {
	t.Parallel()
	each(t, faultKinds, func(t *testing.T, s *testserver.FTP) {
		p, dir := openPlace(t, s, nil)
		write(t, filepath.Join(dir, "a"), strings.Repeat("x", 32<<20))
		connect := func() *ftpConn {
			r, err := p.source.dial(ctx(t))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = r.close() })
			return r.(*ftpConn)
		}
		reading := connect()
		body, err := reading.open(ctx(t), p.dir(reading)+"/a", 0)
		if err != nil {
			t.Fatal(err)
		}
		calls := map[string]func(*ftpConn) error{
			"list":   func(c *ftpConn) error { return c.list(ctx(t), p.dir(c), func([]entry) error { return nil }) },
			"stat":   func(c *ftpConn) error { _, err := c.stat(ctx(t), p.dir(c)+"/a"); return err },
			"remove": func(c *ftpConn) error { return c.remove(ctx(t), p.dir(c)+"/a") },
			"put":    func(c *ftpConn) error { return c.put(ctx(t), p.dir(c)+"/b", []byte("b")) },
			"alive":  func(c *ftpConn) error { return c.alive(ctx(t)) },
		}
		conns := map[string]*ftpConn{}
		for what := range calls {
			conns[what] = connect()
			conns[what].limit(time.Second)
		}
		reading.limit(time.Second)
		s.Freeze()
		began := time.Now()
		var wg sync.WaitGroup
		for what, call := range calls {
			wg.Go(func() {
				if err := call(conns[what]); !broken(err) || !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("%s of a frozen server: %v", what, err)
				}
			})
		}
		wg.Go(func() {
			if _, err := io.Copy(io.Discard, body); !broken(err) {
				t.Errorf("a file of a frozen server: %v", err)
			}
			_ = body.Close()
		})
		wg.Wait()
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("it took %v", took)
		}
		short, cancel := context.WithTimeout(ctx(t), 100*time.Millisecond)
		defer cancel()
		if err := p.List(short, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a login at a frozen server: %v", err)
		}
		s.Thaw()
		list(t, p) // what was asked for in the meantime may have been done
	})
}

// limit sets the timeout of connections that are there.
func (c *ftpConn) limit(d time.Duration) {
	c.server.timeout = d
	c.control.limit = d
	if c.data != nil {
		c.data.limit = d
	}
}

// A file that was half read when the server was killed is read on where it was, unless it changed.
func TestResume(t *testing.T) {
	t.Parallel()
	each(t, faultKinds, func(t *testing.T, s *testserver.FTP) {
		p, dir := openPlace(t, s, nil)
		body := make([]byte, 48<<20)
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		for i, r := 0, rand.New(rand.NewPCG(seed, 0)); i < len(body); i += 1 + r.IntN(1000) {
			body[i] = byte(r.Uint32())
		}
		write(t, filepath.Join(dir, "a"), string(body))
		i := stat(t, p, "a")
		for _, change := range []bool{false, true} {
			c, err := p.Open(ctx(t), "a", i)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			got := make([]byte, 1_000_001)
			if _, err := io.ReadFull(c, got); err != nil {
				t.Fatal(err)
			}
			s.Kill()
			if change {
				write(t, filepath.Join(dir, "a"), string(body[1:]))
			}
			s.Restart()
			rest, err := io.ReadAll(c)
			switch {
			case change && err == nil:
				t.Error("a file that changed was read on")
			case !change && (err != nil || !bytes.Equal(append(got, rest...), body)):
				t.Errorf("%d bytes after %d, %v", len(rest), len(got), err)
			}
			if now, err := c.Stat(); !change && (err != nil || !now.Same(i)) {
				t.Errorf("at the end: %v, %v", now, err)
			}
		}
	})
}

// Many names come by pages; a listing that breaks off in the middle begins again, and no name comes twice.
func TestManyEntries(t *testing.T) {
	t.Parallel()
	const n = 30_000
	from := filepath.Join(t.TempDir(), "many")
	mkdir(t, from)
	for i := range n {
		f, err := os.OpenFile(filepath.Join(from, fmt.Sprintf("%06d %s", i, strings.Repeat("long ", 4))), os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
	}
	for _, o := range plainKinds() {
		s := testserver.StartFTP(t, o)
		p, dir := openPlace(t, s, nil)
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(from, dir); err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		killed, largest := false, 0
		err := p.List(ctx(t), func(page []files.Entry) error {
			largest = max(largest, len(page))
			for _, e := range page {
				if seen[e.Name] {
					t.Errorf("%s: %q came twice", o.Kind, e.Name)
				}
				seen[e.Name] = true
			}
			for l := range p.source.pool.out { // none is lent or given back meanwhile
				if !killed {
					killed = true
					l.remote.(*ftpConn).kill()
				}
			}
			return nil
		})
		if err != nil || len(seen) != n || !killed || largest > pageSize {
			t.Errorf("%s: %d names, pages of %d, %v\n%s", o.Kind, len(seen), largest, err, s.Output())
		}
		if err := os.Rename(dir, from); err != nil {
			t.Fatal(err)
		}
		s.Kill()
	}
}

// What each asks for ends a listing, and is returned as it is.
func TestListStops(t *testing.T) {
	t.Parallel()
	each(t, plainKinds(), func(t *testing.T, s *testserver.FTP) {
		p, dir := openPlace(t, s, nil)
		write(t, filepath.Join(dir, "a"), "")
		stop := errors.New("enough")
		if err := p.List(ctx(t), func([]files.Entry) error { return stop }); err != stop {
			t.Errorf("List: %v", err)
		}
		list(t, p)
	})
}

// Connections that the server closed while they were idle are noticed, and others take their place.
func TestIdleConnections(t *testing.T) {
	t.Parallel()
	each(t, faultKinds, func(t *testing.T, s *testserver.FTP) {
		p, dir := openPlace(t, s, nil)
		write(t, filepath.Join(dir, "a"), "x")
		i := stat(t, p, "a")
		s.Restart()
		stat(t, p, "a")
		s.Restart()
		if c, err := p.Open(ctx(t), "a", i); err != nil {
			t.Error(err)
		} else {
			_ = c.Close()
		}
		s.Restart()
		if err := p.Move(ctx(t), "a", i, "done", "a"); err != nil {
			t.Error(err)
		}
		for _, l := range p.source.pool.idle {
			l.since = l.since.Add(-2 * probeAfter)
		}
		s.Restart()
		list(t, p)
	})
}

// Wrong credentials and another certificate are errors of the resource that say so, and heal.
func TestWrongLogin(t *testing.T) {
	t.Parallel()
	with := slices.DeleteFunc(slices.Clone(kinds), func(o testserver.FTPOptions) bool { return o.Kind == "vsftpd" || o.TLS == "implicit" })
	each(t, with, func(t *testing.T, s *testserver.FTP) {
		secret := filepath.Join(t.TempDir(), "password")
		write(t, secret, "wrong-secret\n")
		p, _ := openPlace(t, s, func(c *Config) { c.Password, c.PasswordFile = "", secret })
		err := p.List(ctx(t), nil)
		if err == nil || !strings.Contains(err.Error(), "log in to") || strings.Contains(err.Error(), "wrong-secret") {
			t.Errorf("with a wrong password: %v", err)
		}
		write(t, secret, s.Password+"\n")
		list(t, p)
		if err := os.Remove(secret); err != nil {
			t.Fatal(err)
		}
		s.Restart()
		if err := p.List(ctx(t), nil); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "PasswordFile") {
			t.Errorf("without the file: %v", err)
		}
	})
}

func TestCertificateChanged(t *testing.T) {
	t.Parallel()
	with := slices.DeleteFunc(slices.Clone(kinds), func(o testserver.FTPOptions) bool { return o.TLS == "" })
	each(t, with, func(t *testing.T, s *testserver.FTP) {
		p, dir := openPlace(t, s, nil)
		write(t, filepath.Join(dir, "a"), "x")
		list(t, p)
		s.Certify(testserver.NewCA(t))
		s.Restart()
		if err := p.List(ctx(t), nil); err == nil || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("with a certificate of somebody else: %v", err)
		}
		s.Certify(s.CA)
		s.Restart()
		if got := list(t, p); len(got) != 1 {
			t.Errorf("after that: %v", got)
		}
	})
}

// A handler that holds files open leaves a connection for the rest, and Close of the source ends its reads.
func TestConnections(t *testing.T) {
	t.Parallel()
	s := testserver.StartFTP(t, testserver.FTPOptions{Kind: "pure-ftpd"})
	p, dir := openPlace(t, s, func(c *Config) { c.Connections = 2 })
	for _, name := range []string{"a", "b"} {
		write(t, filepath.Join(dir, name), strings.Repeat(name, 32<<20))
	}
	r := reader(t, p.source)
	a, b := fetch(t, r), fetch(t, r)
	body, err := a.Open(ctx(t))
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(ctx(t), 100*time.Millisecond)
	defer cancel()
	if _, err := b.Open(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a second file over two connections: %v", err)
	}
	if err := settle(t, r, sources.Reject, b); err != nil {
		t.Errorf("while a file is open: %v", err)
	}
	if err := p.source.Close(); err != nil {
		t.Error(err)
	}
	if _, err := io.Copy(io.Discard, body); err == nil {
		t.Error("a file was read to its end after Close")
	}
	if _, err := p.Stat(ctx(t), "a"); !errors.Is(err, sources.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// An upload that goes on slowly is not delivered before its end; one that is renamed or interrupted and continued is whole.
func TestUploads(t *testing.T) {
	t.Parallel()
	each(t, plainKinds(), func(t *testing.T, s *testserver.FTP) {
		p, dir := openPlace(t, s, func(c *Config) {
			c.StableFor, c.Interval, c.IdleInterval = 2*time.Second, 50*time.Millisecond, 50*time.Millisecond
			c.OnFailure = pickup.Action{}
		})
		up := newSource(t, atHome(t, s))
		l, err := up.pool.take(ctx(t), true)
		if err != nil {
			t.Fatal(err)
		}
		sender := l.remote.(*ftpConn)
		target := "/home/" + filepath.Base(filepath.Dir(dir)) + "/in/slow"
		in, out := io.Pipe()
		done := make(chan error, 1)
		sender.ctx = ctx(t)
		go func() { done <- sender.lib.Stor(target, in) }()
		const steps = 20
		go func() {
			for i := range steps {
				fmt.Fprintf(out, "%d\n", i)
				<-time.After(100 * time.Millisecond)
			}
			_ = out.Close()
		}()
		m := fetch(t, reader(t, p.source))
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
		default:
			t.Fatal("delivered while the upload went on")
		}
		if got, err := readertest.Read(ctx(t), m); err != nil || strings.Count(got, "\n") != steps {
			t.Errorf("%q, %v", got, err)
		}
		up.pool.give(l, errGivenUp)
	})
}
