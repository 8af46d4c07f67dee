package file

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rebalancer-go/rebalancer"
)

// TestRawFileCloses: a Close beside Reads neither waits for them nor gives their descriptor to another file meanwhile.
func TestRawFileCloses(t *testing.T) {
	t.Parallel()
	top := root(t)
	p := filepath.Join(top, "in", "a")
	write(t, p, "body")
	if err := os.Truncate(p, 64<<20); err != nil {
		t.Fatal(err)
	}
	s := newSource(t, quick(top))
	h, err := s.open("in")
	if err != nil {
		t.Fatal(err)
	}
	defer h.close()
	for range 50 {
		c, err := h.openFile("a")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Stat(); err != nil {
			t.Fatal(err)
		}
		var reader sync.WaitGroup
		begun := make(chan struct{})
		reader.Go(func() {
			buf := make([]byte, 1<<20)
			for i := 0; ; i++ {
				if _, err := c.Read(buf); err != nil {
					if err != io.EOF && !errors.Is(err, fs.ErrClosed) {
						t.Error(err)
					}
					return
				}
				if i == 0 {
					close(begun)
				}
			}
		})
		<-begun
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		reader.Wait()
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("Read after Close: %v", err)
		}
		if _, err := c.Stat(); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("Stat after Close: %v", err)
		}
		if err := c.Close(); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("a second Close: %v", err)
		}
		var st unix.Stat_t
		if err := unix.Fstat(c.(*rawFile).fd, &st); err == nil && st.Size == 64<<20 {
			t.Fatal("the descriptor was left open") // another test may have the number by now, but of another file
		}
	}
}

func TestOpenFileRefuses(t *testing.T) {
	t.Parallel()
	top := root(t)
	in := filepath.Join(top, "in")
	if err := errors.Join(os.Symlink("/etc/hostname", filepath.Join(in, "link")), unix.Mkfifo(filepath.Join(in, "pipe"), 0o600)); err != nil {
		t.Fatal(err)
	}
	s := newSource(t, quick(top))
	h, err := s.open("in")
	if err != nil {
		t.Fatal(err)
	}
	defer h.close()
	if _, err := h.openFile("link"); !errors.Is(err, rebalancer.ErrChanged) {
		t.Errorf("a link: %v", err)
	}
	if _, err := h.openFile("none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing: %v", err)
	}
	c, err := h.openFile("pipe")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Stat(); !errors.Is(err, errNotRegular) {
		t.Errorf("a pipe: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, err := h.observe("link"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("observe a link: %v", err)
	}
}
