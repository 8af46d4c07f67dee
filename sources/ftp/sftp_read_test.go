//go:build linux

package ftp

import (
	"bytes"
	"crypto/sha256"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"
)

func TestSFTPReads(t *testing.T) {
	t.Parallel()
	_, r, dir := sftpWorld(t)
	src := rand.NewChaCha8([32]byte{6})
	for _, size := range []int{0, 1, probe, chunk - 1, chunk, chunk + 1, 3*chunk + probe, 5<<20 + 7} {
		body := make([]byte, size)
		src.Read(body)
		writeFile(t, dir+"/f", string(body))
		for _, offset := range []int{0, 1, size / 2, size - 1, size, size + 10} {
			if offset < 0 {
				continue
			}
			got, err := readWhole(t.Context(), r, dir+"/f", int64(offset))
			if want := string(body[min(offset, size):]); got != want || err != nil {
				t.Fatalf("%d bytes from %d: %d bytes, %v", size, offset, len(got), err)
			}
		}
	}
	expect(t, "open what is not there", second(r.open(t.Context(), dir+"/no", 0)), fs.ErrNotExist)
	if err := os.Chmod(dir+"/f", 0); err != nil {
		t.Fatal(err)
	}
	expect(t, "open what is forbidden", second(r.open(t.Context(), dir+"/f", 0)), fs.ErrPermission)
}

func second(_ io.ReadCloser, err error) error { return err }

// What is not read to its end is an error of Close. The connection goes on where the server owes no answer.
func TestSFTPClosesEarly(t *testing.T) {
	t.Parallel()
	s, r, dir := sftpWorld(t)
	writeFile(t, dir+"/f", strings.Repeat("x", 4<<20))
	for _, n := range []int64{0, 1, chunk, 1 << 20, 4 << 20} {
		f, err := r.open(t.Context(), dir+"/f", 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(io.Discard, f, n); err != nil {
			t.Fatal(err)
		}
		switch err := f.Close(); {
		case err == nil:
			t.Errorf("closed after %d bytes without an error", n)
		case broken(err):
			r = connected(t, sftpConfig(t, s, s.Addr()))
		default:
			expect(t, "the connection after it", r.alive(t.Context()), nil)
		}
	}
}

// A file that changes its length while it is read: the end is where the server says. Whoever reads compares it with what
// the file was.
func TestSFTPReadsWhatChanges(t *testing.T) {
	t.Parallel()
	_, r, dir := sftpWorld(t)
	const size = 6 << 20
	for _, now := range []int64{0, 3<<20 + 5, size + 1, size + 2*probe + 1} {
		writeFile(t, dir+"/f", strings.Repeat("x", size))
		f, err := r.open(t.Context(), dir+"/f", 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(io.Discard, f, 10); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(dir+"/f", now); err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, f)
		n += 10
		if least, most := min(now, size), max(now, 10+maxAhead*chunk); n < least || n > most || n == size || err != nil {
			t.Errorf("made %d bytes long during the read: read %d, %v", now, n, err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Reading is as fast as the library's own copy, of which it is made.
func TestSFTPThroughput(t *testing.T) {
	s, r, dir := sftpWorld(t)
	plain := connected(t, sftpConfig(t, s, s.Addr()))
	body := make([]byte, 16<<20)
	rand.NewChaCha8([32]byte{1}).Read(body)
	writeFile(t, dir+"/f", string(body))
	want := sha256.Sum256(body)
	ours := func() time.Duration {
		began := time.Now()
		f, err := r.open(t.Context(), dir+"/f", 0)
		if err != nil {
			t.Fatal(err)
		}
		return copied(t, f, began, want)
	}
	theirs := func() time.Duration {
		began := time.Now()
		f, err := plain.sftp.Open(dir + "/f")
		if err != nil {
			t.Fatal(err)
		}
		return copied(t, f, began, want)
	}
	best := 0.0
	for try := 0; try < 20 && best < 0.9; try++ { // a busy machine spoils some
		p, o := theirs(), ours()
		best = max(best, float64(p)/float64(o))
		t.Logf("16 MiB: the library's copy %v, ours %v", p, o)
	}
	if best < 0.9 {
		t.Errorf("at best %.2f of the library's throughput, want 0.9", best)
	}
}

func copied(t *testing.T, f io.ReadCloser, began time.Time, want [32]byte) time.Duration {
	t.Helper()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(h.Sum(nil), want[:]) {
		t.Fatal("what was read is not what was written")
	}
	return took
}
