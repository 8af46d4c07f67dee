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

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
	"github.com/rebalancer-go/rebalancer/sources"
)

// sftpReader opens the resource "in" of a source, by way of a proxy.
func sftpReader(t *testing.T) (s *testserver.OpenSSH, link *testserver.Link, r sources.Reader, dir string) {
	t.Helper()
	s = testserver.StartOpenSSH(t)
	link = testserver.Proxy(t, s.Addr())
	cfg, root := sftpRoot(t, s)
	cfg.URL = strings.Replace(cfg.URL, s.Addr(), link.Addr(), 1)
	dir = root + "/in"
	mkdir(t, dir)
	src := newSource(t, cfg)
	r, err := src.Open(t.Context(), &rebalancer.Claim{Group: "g", Resource: "in", Fence: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(context.Background()) }) // the source's Close tells
	return s, link, r, dir
}

func sftpFetch(t *testing.T, r sources.Reader) *rebalancer.Message {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		ms, err := r.Fetch(ctx, 1)
		if err == nil {
			return ms[0]
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}

// A file that is made shorter or longer, or is replaced, while it is read, is no whole file: over SFTP its end comes without an error.
func TestSFTPChangedWhileRead(t *testing.T) {
	t.Parallel()
	const size = 8 << 20
	for name, change := range map[string]func(path string) error{
		"shorter": func(p string) error { return os.Truncate(p, 5<<20) },
		"longer":  func(p string) error { return os.Truncate(p, size+1) },
		"empty":   func(p string) error { return os.Truncate(p, 0) },
		"replaced": func(p string) error {
			return errors.Join(os.WriteFile(p+".tmp", make([]byte, size-1), 0o644), os.Rename(p+".tmp", p))
		},
		"gone": os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, r, dir := sftpReader(t)
			writeFile(t, dir+"/f", strings.Repeat("x", size))
			m := sftpFetch(t, r)
			body, err := m.Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer body.Close()
			if _, err := io.CopyN(io.Discard, body, 1<<20); err != nil {
				t.Fatal(err)
			}
			if err := change(dir + "/f"); err != nil {
				t.Fatal(err)
			}
			if n, err := io.Copy(io.Discard, body); !errors.Is(err, rebalancer.ErrChanged) && name != "gone" || err == nil {
				t.Errorf("%d bytes more, error %v, want ErrChanged", n, err)
			}
		})
	}
}

// A connection that is cut in the middle of a file is followed by another one, which goes on where it was.
func TestSFTPReadGoesOn(t *testing.T) {
	t.Parallel()
	_, link, r, dir := sftpReader(t)
	want := strings.Repeat("0123456789abcdef", 1<<19)
	writeFile(t, dir+"/f", want)
	m := sftpFetch(t, r)
	body, err := m.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	var got strings.Builder
	for range 3 {
		if _, err := io.CopyN(&got, body, 1<<20); err != nil {
			t.Fatal(err)
		}
		link.Cut()
		link.Heal()
	}
	if _, err := io.Copy(&got, body); err != nil {
		t.Fatal(err)
	}
	if got.String() != want {
		t.Errorf("%d bytes, not what was written", got.Len())
	}
	if err := r.Settle(t.Context(), []sources.Settlement{{Message: m}}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir + "/f"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
}

// A server that is killed and comes back: errors meanwhile, and nothing is lost.
func TestSFTPServerComesBack(t *testing.T) {
	t.Parallel()
	s, _, r, dir := sftpReader(t)
	writeFile(t, dir+"/a", "one")
	m := sftpFetch(t, r)
	s.Kill()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := r.Fetch(ctx, 1); err == nil || errors.Is(err, sources.ErrGone) || ctx.Err() != nil {
		t.Errorf("Fetch from a server that is down: %v", err)
	}
	if err := r.Settle(ctx, []sources.Settlement{{Message: m}}); err == nil {
		t.Error("settled on a server that is down")
	}
	s.Restart()
	writeFile(t, dir+"/b", "two")
	if next := sftpFetch(t, r); next.Key != "b" {
		t.Errorf("got %q, want the file that came meanwhile", next.Key)
	}
	if err := r.Settle(ctx, []sources.Settlement{{Message: m}}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir + "/a"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file that was settled is still there: %v", err)
	}
}
