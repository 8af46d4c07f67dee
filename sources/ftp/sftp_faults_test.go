//go:build linux

package ftp

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/internal/testserver"
)

// calls are all that a connection can be asked for.
func calls(dir string) map[string]func(context.Context, remote) error {
	return map[string]func(context.Context, remote) error{
		"list": func(ctx context.Context, r remote) error {
			return r.list(ctx, dir, func([]entry) error { return nil })
		},
		"stat":   func(ctx context.Context, r remote) error { _, err := r.stat(ctx, dir+"/f"); return err },
		"open":   func(ctx context.Context, r remote) error { _, err := r.open(ctx, dir+"/f", 0); return err },
		"remove": func(ctx context.Context, r remote) error { return r.remove(ctx, dir+"/f") },
		"rename": func(ctx context.Context, r remote) error { return r.rename(ctx, dir+"/f", dir+"/g") },
		"put":    func(ctx context.Context, r remote) error { return r.put(ctx, dir+"/h", []byte("x")) },
		"mkdir":  func(ctx context.Context, r remote) error { return r.mkdir(ctx, dir+"/d") },
		"alive":  func(ctx context.Context, r remote) error { return r.alive(ctx) },
	}
}

const (
	shortTimeout = 300 * time.Millisecond
	// atMost is what a machine that is busy adds to a timeout.
	atMost = 20 * time.Second
)

// A frozen server takes connections and answers nothing. Each call ends with its timeout, or with its context.
func TestSFTPFrozenServer(t *testing.T) {
	t.Parallel()
	s := testserver.StartOpenSSH(t)
	cfg := sftpConfig(t, s, s.Addr())
	writeFile(t, s.Data+"/f", strings.Repeat("x", 8<<20))
	connections := map[string]*sftpRemote{}
	for name := range calls("") {
		connections[name] = connected(t, cfg)
		connections[name+" cancelled"] = connected(t, cfg)
	}
	reading := connected(t, cfg)
	f, err := reading.open(t.Context(), s.Data+"/f", 0)
	if err != nil {
		t.Fatal(err)
	}
	s.Freeze()
	defer s.Thaw()
	for name, call := range calls(s.Data) {
		r := connections[name]
		r.timeout = shortTimeout
		ends(t, name, call(t.Context(), r), os.ErrDeadlineExceeded)
		ends(t, name+", once more", call(t.Context(), r), os.ErrDeadlineExceeded)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		ends(t, name+" whose context ends", call(ctx, connections[name+" cancelled"]), context.DeadlineExceeded)
		cancel()
	}
	reading.timeout = shortTimeout
	_, err = io.Copy(io.Discard, f)
	ends(t, "read", err, os.ErrDeadlineExceeded)
	if err := f.Close(); !broken(err) {
		t.Errorf("close of what could not be read: %v", err)
	}
	cfg.Timeout = shortTimeout
	_, err = dialSFTP(t.Context(), cfg)
	ends(t, "dial", err, os.ErrDeadlineExceeded)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	cfg.Timeout = time.Minute
	_, err = dialSFTP(ctx, cfg)
	ends(t, "dial whose context ends", err, context.DeadlineExceeded)
}

func ends(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) || !broken(got) {
		t.Errorf("%s: error %v, want %v", what, got, want)
	}
}

// A connection that is cut breaks all calls at once, and the next one goes on where a read was.
func TestSFTPCutConnection(t *testing.T) {
	t.Parallel()
	s := testserver.StartOpenSSH(t)
	link := testserver.Proxy(t, s.Addr())
	cfg := sftpConfig(t, s, link.Addr())
	body := strings.Repeat("0123456789abcdef", 1<<19)
	writeFile(t, s.Data+"/f", body)
	r := connected(t, cfg)
	f, err := r.open(t.Context(), s.Data+"/f", 0)
	if err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 100_000)
	if _, err := io.ReadFull(f, first); err != nil {
		t.Fatal(err)
	}
	link.Cut()
	rest, err := io.ReadAll(f)
	if !broken(err) {
		t.Fatalf("read over a connection that was cut: %v", err)
	}
	if err := f.Close(); !broken(err) {
		t.Errorf("close over a connection that was cut: %v", err)
	}
	for name, call := range calls(s.Data) {
		if err := call(t.Context(), r); !broken(err) {
			t.Errorf("%s over a connection that was cut: %v", name, err)
		}
	}
	if _, err := dialSFTP(t.Context(), cfg); err == nil {
		t.Error("connected where nothing listens")
	}
	link.Heal()
	tail, err := readWhole(t.Context(), connected(t, cfg), s.Data+"/f", int64(len(first)+len(rest)))
	if err != nil || string(first)+string(rest)+tail != body {
		t.Errorf("%d bytes, then %d and %d from there on, %v; want %d", len(first), len(rest), len(tail), err, len(body))
	}
}

// What reads takes as long as it likes: the timeout is for the server alone.
func TestSFTPSlowReader(t *testing.T) {
	t.Parallel()
	s := testserver.StartOpenSSH(t)
	cfg := sftpConfig(t, s, s.Addr())
	writeFile(t, s.Data+"/f", strings.Repeat("x", 8<<20))
	r := connected(t, cfg)
	f, err := r.open(t.Context(), s.Data+"/f", 0)
	if err != nil {
		t.Fatal(err)
	}
	r.timeout = atMost
	if _, err := io.CopyN(io.Discard, f, 1000); err != nil {
		t.Fatal(err)
	}
	r.timeout = time.Nanosecond // what has come meanwhile needs none
	ahead := f.(*ahead)
	deadline := time.Now().Add(atMost)
	for len(ahead.queue) == 0 || len(ahead.queue[0].done) == 0 {
		if time.Now().After(deadline) {
			t.Fatal("nothing was read ahead")
		}
		time.Sleep(time.Millisecond) // between two looks
	}
	if _, err := io.CopyN(io.Discard, f, chunk); err != nil {
		t.Fatal(err)
	}
	r.timeout = atMost
	if _, err := io.Copy(io.Discard, f); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// A directory is listed by pages, each with a timeout of its own, while the server answers slowly.
func TestSFTPKilledServer(t *testing.T) {
	t.Parallel()
	s := testserver.StartOpenSSH(t)
	cfg := sftpConfig(t, s, s.Addr())
	in := s.Mkdir("in")
	for i := range 1000 {
		writeFile(t, in+"/"+strings.Repeat("x", i%50)+string(rune('a'+i%26))+strings.Repeat("y", i/50), "")
	}
	r := connected(t, cfg)
	pages := 0
	err := r.list(t.Context(), in, func([]entry) error {
		if pages++; pages == 2 {
			s.Kill()
		}
		return nil
	})
	if !broken(err) || pages < 2 {
		t.Errorf("killed after 2 pages of a listing: %v after %d", err, pages)
	}
	s.Restart()
	if all, _ := listed(t, connected(t, cfg), in); len(all) != 1000 {
		t.Errorf("%d names after the start, want 1000", len(all))
	}
}
