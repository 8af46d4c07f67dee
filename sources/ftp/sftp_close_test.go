//go:build linux

package ftp

import (
	"context"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/internal/readertest"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
	"github.com/rebalancer-go/rebalancer/internal/waittest"
)

// Bodies that were read in part do not hold up the end of their Reader when the server answers nothing, and nothing that read them is
// left when the source is closed. It runs alone: it looks at all goroutines.
func TestSFTPClosesWhileFrozen(t *testing.T) {
	s := testserver.StartOpenSSH(t)
	cfg, root := sftpRoot(t, s)
	const files = 5
	cfg.Connections, cfg.Timeout = files+1, 10*time.Minute
	mkdir(t, root+"/in")
	for i := range files {
		writeFile(t, root+"/in/"+string(rune('a'+i)), strings.Repeat("x", 8<<20))
	}
	src, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r := reader(t, src)
	defer src.Close()
	var bodies []io.ReadCloser
	for _, m := range readertest.Fetch(t, r, files) {
		body, err := m.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(io.Discard, body, 1<<20); err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, body)
	}
	s.Freeze()
	defer s.Thaw()
	reading := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, bodies[0])
		reading <- err
	}()
	short, cancel := context.WithTimeout(t.Context(), atMost)
	defer cancel()
	if err := r.Close(short); err != nil {
		t.Errorf("Reader.Close: %v", err)
	}
	if err := src.Close(); err != nil {
		t.Errorf("Source.Close: %v", err)
	}
	if err := short.Err(); err != nil {
		t.Error("closing waited for the server")
	}
	if err := <-reading; err == nil {
		t.Error("what was under way when the Reader closed was read to its end")
	}
	for _, of := range []string{"/pkg/sftp.", "/crypto/ssh.", "ftp.(*ahead)"} {
		// Those of the libraries have been told; the scheduler decides when they run.
		waittest.Until(t, of+" has ended", func() bool { return !strings.Contains(stacks(), of) })
	}
}

// stacks are those of all goroutines.
func stacks() string {
	buf := make([]byte, 1<<20)
	return string(buf[:runtime.Stack(buf, true)])
}

// What runs beside the calls of a connection has ended when close returns, and nothing is started after it.
func TestSFTPNothingOutlivesClose(t *testing.T) {
	t.Parallel()
	_, r, _ := sftpWorld(t)
	ended := make(chan struct{})
	r.start(func() {
		defer close(ended)
		_ = r.ssh.Wait()
		for range 100 {
			runtime.Gosched()
		}
	})
	_ = r.close()
	select {
	case <-ended:
	default:
		t.Error("it runs after close")
	}
	if r.start(func() { t.Error("it was started after close") }) {
		t.Error("started after close")
	}
}
