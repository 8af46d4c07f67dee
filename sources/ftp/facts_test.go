//go:build linux

package ftp

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	lib "github.com/jlaffaye/ftp"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
	"github.com/rebalancer-go/rebalancer/sources"
)

// Names from servers are what somebody uploaded: none leads outside, none is taken for an option, and what cannot be sent is
// reported and left alone.
func TestNames(t *testing.T) {
	t.Parallel()
	each(t, plainKinds(), func(t *testing.T, s *testserver.FTP) {
		var log logs
		p, dir := openPlace(t, s, func(c *Config) { c.Logger = log.logger() })
		good := []string{"-ld", " leading", "trailing ", ".hidden", "a b", "*", "[x]", "\xc3\x28", "größe", "CASE", "case", "name", "{%s}", "~", "-a"}
		if s.Options.Kind != "pure-ftpd" { // it shows another character for the one, and refuses to read the other
			good = append(good, "a\x01b", "a\\b")
		}
		bad := []string{"line\nname", "cr\rx", "\xff\xfe", "x\n-rw-r--r--    1 0        0               5 Nov 30 15:53 y", "y\ntype=file;size=1;modify=20010101000000; .."}
		for _, name := range append(slices.Clone(good), bad...) {
			write(t, filepath.Join(dir, name), "hello")
		}
		for link, to := range map[string]string{"link": "name", "dangling": "nowhere", "up": ".."} {
			if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
				t.Fatal(err)
			}
		}
		mkdir(t, filepath.Join(dir, "directory"))
		got := list(t, p)
		for name := range got { // a line of one of the bad ones can look like a file, which is then not there
			if _, err := p.Stat(ctx(t), name); errors.Is(err, fs.ErrNotExist) && !slices.Contains(good, name) {
				delete(got, name)
			}
		}
		slices.Sort(good)
		if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, good) {
			t.Errorf("listed %q, want %q", names, good)
		}
		if !strings.Contains(log.String(), "without a usable name") {
			t.Errorf("nothing was reported: %s", log.String())
		}
		for _, name := range good {
			i := stat(t, p, name)
			c, err := p.Open(ctx(t), name, i)
			if err != nil {
				t.Fatalf("%q: %v", name, err)
			}
			var b bytes.Buffer
			if _, err = b.ReadFrom(c); err != nil || b.String() != "hello" {
				t.Errorf("%q holds %q, %v", name, b.String(), err)
			}
			_ = c.Close()
			if err := p.Remove(ctx(t), name, i); err != nil {
				t.Errorf("%q: %v", name, err)
			}
		}
		if left := plain(t, dir); len(left) != len(bad) {
			t.Errorf("left are %q, want those that cannot be sent", left)
		}
		for _, name := range []string{"\xff\xfe", "line\nname", "\r"} {
			if _, err := p.Stat(ctx(t), name); !errors.Is(err, fs.ErrInvalid) {
				t.Errorf("Stat(%q): %v", name, err)
			}
		}
	})
}

// A listing that says nothing of why it is empty is no proof that a directory is.
func TestMissingAndUnreadable(t *testing.T) {
	t.Parallel()
	each(t, plainKinds(), func(t *testing.T, s *testserver.FTP) {
		p, dir := openPlace(t, s, nil)
		if got := list(t, p); len(got) != 0 {
			t.Errorf("an empty directory has %v", got)
		}
		at := func(resource string) error {
			return (&place{source: p.source, resource: resource}).List(ctx(t), nil)
		}
		root := filepath.Dir(dir)
		write(t, filepath.Join(root, "file"), "")
		for name, mode := range map[string]os.FileMode{"closed": 0o700, "unreadable": 0o711} {
			mkdir(t, filepath.Join(root, name, "below"))
			write(t, filepath.Join(root, name, "x"), "x")
			if err := os.Chmod(filepath.Join(root, name), mode); err != nil {
				t.Fatal(err)
			}
			if err := at(name); !errors.Is(err, fs.ErrPermission) || errors.Is(err, sources.ErrGone) {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, name := range []string{"missing", "missing/below", "file", "file/below"} {
			if err := at(name); !errors.Is(err, sources.ErrGone) {
				t.Errorf("%s: %v", name, err)
			}
			if _, err := p.source.Open(ctx(t), &rebalancer.Claim{Resource: name}); !errors.Is(err, sources.ErrGone) {
				t.Errorf("Open of %s: %v", name, err)
			}
		}
		if err := at("closed/below"); err == nil || errors.Is(err, sources.ErrGone) {
			t.Errorf("closed/below: %v", err)
		}
		closed := &place{source: p.source, resource: "closed"}
		if _, err := closed.Stat(ctx(t), "x"); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a file that cannot be seen: %v", err)
		}
		if _, err := p.source.Discover(ctx(t), "closed/*"); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("Discover: %v", err)
		}
	})
}

// What a file is known by is exact to the second, however old it is, and the same whether it was listed or looked at.
func TestIdentity(t *testing.T) {
	t.Parallel()
	each(t, plainKinds(), func(t *testing.T, s *testserver.FTP) {
		p, dir := openPlace(t, s, nil)
		for name, at := range map[string]time.Time{"old": time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC), "new": time.Now().UTC().Truncate(time.Second)} {
			write(t, filepath.Join(dir, name), "12345")
			if err := os.Chtimes(filepath.Join(dir, name), at, at); err != nil {
				t.Fatal(err)
			}
			i := stat(t, p, name)
			if i.Size != 5 || !i.ModTime.Equal(at) {
				t.Errorf("%s is %+v, want the time %v", name, i, at)
			}
			listed := list(t, p)[name]
			if s.Options.Kind == "vsftpd" {
				if listed != nil {
					t.Errorf("a listing without seconds made %+v", *listed)
				}
			} else if listed == nil || !listed.Same(i) || i.Tag == "" {
				t.Errorf("listed %+v, looked at %+v", listed, i)
			}
		}
	})
}

// Nothing is done to a file that is not the one wanted, and a refusal says why.
func TestRefusals(t *testing.T) {
	t.Parallel()
	each(t, plainKinds(), func(t *testing.T, s *testserver.FTP) {
		p, dir := openPlace(t, s, nil)
		write(t, filepath.Join(dir, "a"), "first")
		i := stat(t, p, "a")
		other := i
		other.Size++
		moveTo := func(as string) error { return p.Move(ctx(t), "a", i, "done", as) }
		for what, err := range map[string]error{
			"remove": p.Remove(ctx(t), "a", other), "move": p.Move(ctx(t), "a", other, "done", "a"), "rename": p.Rename(ctx(t), "a", other, "b"),
		} {
			if !errors.Is(err, rebalancer.ErrChanged) {
				t.Errorf("%s of another file: %v", what, err)
			}
		}
		if _, err := p.Open(ctx(t), "a", other); !errors.Is(err, rebalancer.ErrChanged) {
			t.Errorf("open of another file: %v", err)
		}
		for what, err := range map[string]error{"remove": p.Remove(ctx(t), "b", i), "move": p.Move(ctx(t), "b", i, "done", "b")} {
			if !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s of a file that is not there: %v", what, err)
			}
		}
		mkdir(t, filepath.Join(dir, "done"))
		write(t, filepath.Join(dir, "done", "a"), "taken")
		mkdir(t, filepath.Join(dir, "done", "folder"))
		for _, as := range []string{"a", "folder"} {
			if err := moveTo(as); !errors.Is(err, fs.ErrExist) {
				t.Errorf("move over %s: %v", as, err)
			}
		}
		if err := p.Put(ctx(t), "done", "a", []byte("x")); !errors.Is(err, fs.ErrExist) {
			t.Errorf("put over another: %v", err)
		}
		if err := os.Chmod(filepath.Join(dir, "done"), 0o755); err != nil { // root's
			t.Fatal(err)
		}
		for what, err := range map[string]error{"move": moveTo("b"), "put": p.Put(ctx(t), "done", "b", []byte("x"))} {
			if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) {
				t.Errorf("%s into a folder that may not be written: %v", what, err)
			}
		}
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := p.Remove(ctx(t), "a", i); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a deletion that is not allowed: %v", err)
		}
		if err := p.Move(ctx(t), "a", i, "new", "a"); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a folder that cannot be made: %v", err)
		}
		if b, err := os.ReadFile(filepath.Join(dir, "done", "a")); string(b) != "taken" {
			t.Errorf("the other file holds %q, %v", b, err)
		}
		if b, err := os.ReadFile(filepath.Join(dir, "a")); string(b) != "first" {
			t.Errorf("the file holds %q, %v", b, err)
		}
	})
}

// A file that takes the name between the look and the move is put back.
func TestReplacedBeforeMove(t *testing.T) {
	t.Parallel()
	each(t, plainKinds(), func(t *testing.T, s *testserver.FTP) {
		p, dir := openPlace(t, s, nil)
		write(t, filepath.Join(dir, "a"), "first")
		i := stat(t, p, "a")
		p.source.pause = func() { write(t, filepath.Join(dir, "a"), "second, longer") }
		if err := p.Move(ctx(t), "a", i, "done/{2006}", "a"); !errors.Is(err, rebalancer.ErrChanged) {
			t.Errorf("move: %v", err)
		}
		if b, err := os.ReadFile(filepath.Join(dir, "a")); string(b) != "second, longer" {
			t.Errorf("the new file: %q, %v", b, err)
		}
	})
}

// renamer tells when something was renamed.
type renamer struct {
	remote
	renamed func(n int)
	n       int
}

func (r *renamer) rename(ctx context.Context, from, to string) error {
	err := r.remote.rename(ctx, from, to)
	r.n++
	r.renamed(r.n)
	return err
}

// A file that replaced the one that was worked, and whose name is taken when it is to be put back, does not count as settled: it is in the folder, unworked.
// Where the connection breaks in between, the next one puts it back.
func TestReplacedTwiceBeforeMove(t *testing.T) {
	t.Parallel()
	each(t, plainKinds(), func(t *testing.T, s *testserver.FTP) {
		for _, breaks := range []bool{false, true} {
			p, dir := openPlace(t, s, nil)
			a := filepath.Join(dir, "a")
			write(t, a, "first")
			i := stat(t, p, "a")
			for _, l := range p.source.pool.idle {
				_ = l.close()
			}
			p.source.pool.idle = nil
			dial := p.source.pool.dial
			p.source.pool.dial = func(ctx context.Context) (remote, error) {
				r, err := dial(ctx)
				if err != nil {
					return nil, err
				}
				return &renamer{remote: r, renamed: func(n int) {
					switch {
					case n == 1 && breaks:
						_ = r.close()
						p.source.pool.dial = dial
					case n == 1:
						write(t, a, "third, by now")
					}
				}}, nil
			}
			p.source.pause = func() { write(t, a, "second, longer") }
			err := p.Move(ctx(t), "a", i, "done", "a")
			if b, rerr := os.ReadFile(a); breaks && (!errors.Is(err, rebalancer.ErrChanged) || string(b) != "second, longer") {
				t.Errorf("broken off: %v; %q, %v", err, b, rerr)
			}
			if !breaks && (err == nil || broken(err) || errors.Is(err, rebalancer.ErrChanged) || errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), "done/a")) {
				t.Errorf("its name is taken: %v", err)
			}
		}
	})
}

// The servers of the suite refuse data connections that do not resume the session, so that the suite shows that ours do.
func TestSessionsAreRequired(t *testing.T) {
	t.Parallel()
	with := slices.DeleteFunc(slices.Clone(kinds), func(o testserver.FTPOptions) bool { return o.TLS != "explicit" || o.Kind == "pure-ftpd" })
	each(t, with, func(t *testing.T, s *testserver.FTP) {
		c := s.CA.Client(t, "")
		c.ServerName = "localhost"
		control := true
		l, err := lib.Dial(s.Addr(), lib.DialWithExplicitTLS(c), lib.DialWithDialFunc(func(n, a string) (net.Conn, error) {
			conn, err := net.DialTimeout(n, a, 10*time.Second)
			if err != nil || control {
				control = false
				return conn, err
			}
			return tls.Client(conn, c), conn.SetDeadline(time.Now().Add(10 * time.Second))
		}))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Quit()
		if err := l.Login(s.User, s.Password); err != nil {
			t.Fatal(err)
		}
		if _, err := l.List(""); err == nil {
			t.Error("a data connection with a session of its own was taken")
		}
	})
}
