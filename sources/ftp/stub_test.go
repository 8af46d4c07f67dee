package ftp

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/internal/files"
	"github.com/rebalancer-go/rebalancer/sources/pickup"
)

// stub is a server that gives the replies that no server of the suite can be brought to.
type stub struct {
	t       *testing.T
	control net.Listener
	data    net.Listener
	replies map[string]string // by the command and what follows it, or by the command alone
	listing string
	silent  string        // a command without a reply
	patient time.Duration // of clients; 0: 5 s

	mu   sync.Mutex
	said []string
	end  chan error // of its connections, as far as there is room
}

func newStub(t *testing.T, replies map[string]string) *stub {
	t.Helper()
	s := &stub{t: t, replies: replies, end: make(chan error, 1)}
	for _, l := range []*net.Listener{&s.control, &s.data} {
		var err error
		if *l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := s.control.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { s.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = s.control.Close()
		_ = s.data.Close()
		wg.Wait()
	})
	return s
}

func (s *stub) serve(c net.Conn) {
	defer c.Close()
	fmt.Fprint(c, "220 stub\r\n")
	lines := bufio.NewScanner(c)
	defer func() {
		select {
		case s.end <- lines.Err():
		default:
		}
	}()
	for lines.Scan() {
		line := lines.Text()
		s.mu.Lock()
		s.said = append(s.said, line)
		s.mu.Unlock()
		command, _, _ := strings.Cut(line, " ")
		if command == s.silent {
			continue
		}
		reply, ok := s.replies[line]
		if !ok {
			reply, ok = s.replies[command]
		}
		if !ok {
			reply = s.usual(command)
		}
		switch command {
		case "LIST", "STOR", "RETR":
			fmt.Fprint(c, "150 here\r\n")
			d, err := s.data.Accept()
			if err != nil {
				return
			}
			fmt.Fprint(d, s.listing)
			_ = d.Close()
		}
		fmt.Fprintf(c, "%s\r\n", reply)
	}
}

func (s *stub) usual(command string) string {
	switch command {
	case "USER":
		return "331 password"
	case "PASS":
		return "230 in"
	case "FEAT":
		return "211-\r\n MDTM\r\n SIZE\r\n211 end"
	case "PWD":
		return `257 "/"`
	case "PASV":
		port := s.data.Addr().(*net.TCPAddr).Port
		return fmt.Sprintf("227 (10,1,2,3,%d,%d)", port/256, port%256)
	case "LIST", "STOR", "RETR":
		return "226 done"
	case "CWD":
		return "250 there"
	case "TYPE", "NOOP":
		return "200 fine"
	}
	return "500 unknown"
}

func (s *stub) place() *place {
	s.t.Helper()
	src, err := New(Config{URL: "ftp://u@" + s.control.Addr().String() + "/", Password: "p", Timeout: cmp.Or(s.patient, 5*time.Second), Policy: pickup.Policy{OnSuccess: pickup.Delete()}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = src.Close() })
	return &place{source: src, resource: "."}
}

// EPSV may be unknown, and PASV may name an address behind a NAT: data go to the host that was asked. The listing is that of
// another system, without a line for the directory.
func TestOtherServers(t *testing.T) {
	t.Parallel()
	s := newStub(t, map[string]string{})
	s.listing = "02-03-26  04:05PM       <DIR>          folder\r\n12-24-2025  11:00AM            12345 a file.txt\r\nnonsense\r\n"
	var names []string
	err := s.place().List(t.Context(), func(page []files.Entry) error {
		for _, e := range page {
			if e.Info != nil {
				t.Errorf("a time without seconds was used: %+v", e)
			}
			names = append(names, e.Name)
		}
		return nil
	})
	if err != nil || len(names) != 1 || names[0] != "a file.txt" {
		t.Errorf("%q, %v", names, err)
	}
}

// A server without a way to tell whether a file changed is refused.
func TestServerWithoutTimes(t *testing.T) {
	t.Parallel()
	s := newStub(t, map[string]string{"FEAT": "500 what?"})
	if err := s.place().List(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "MDTM") {
		t.Errorf("List: %v", err)
	}
}

// No room is an error that says so, and what was begun is removed.
func TestNoRoom(t *testing.T) {
	t.Parallel()
	for _, reply := range []string{"452 no", "552 no", "451 x: No space left on device", "426 x: Disk quota exceeded"} {
		s := newStub(t, map[string]string{"SIZE": "550 no", "CWD /failed/a": "550 no", "STOR": reply, "DELE": "250 gone"})
		err := s.place().Put(t.Context(), "failed", "a", []byte("body"))
		if !errors.Is(err, errFull) || broken(err) {
			t.Errorf("%s: %v", reply, err)
		}
		s.mu.Lock()
		if last := s.said[len(s.said)-1]; last != "DELE /failed/a" {
			t.Errorf("%s: the last command is %q", reply, last)
		}
		s.mu.Unlock()
	}
}

// FTPS at a server that does not speak TLS is an error before anybody logs in.
func TestNoTLS(t *testing.T) {
	t.Parallel()
	s := newStub(t, map[string]string{})
	p := s.place()
	src, err := New(Config{URL: "ftps://u:p@" + s.control.Addr().String() + "/", Policy: pickup.Policy{OnSuccess: pickup.Delete()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = src.Close() })
	p.source = src
	if err := p.List(t.Context(), nil); err == nil {
		t.Error("it listed")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range s.said {
		if line != "AUTH TLS" && line != "QUIT" {
			t.Errorf("sent %q without encryption", line)
		}
	}
}

// A reply whose connection ends is none; names in a reply do not change what it means.
func TestReplies(t *testing.T) {
	t.Parallel()
	for reply, want := range map[string]error{
		"550 /a: No such file or directory":                    fs.ErrNotExist,
		"550 /No such file or directory: Permission denied":    fs.ErrPermission,
		"553 Could not create file.":                           nil,
		"450 busy":                                             nil,
		"550 x: File exists":                                   fs.ErrExist,
		"421 closing":                                          net.ErrClosed,
		"500 OOPS: vsf_sysutil_recv_peek: no data":             net.ErrClosed,
		"550 /a: Not a directory":                              fs.ErrNotExist,
		"550 Read-only: x: Read-only file system":              fs.ErrPermission,
		"550 Permission denied: /x/No such file or directory.": nil,
	} {
		s := newStub(t, map[string]string{"NOOP": reply})
		r, err := s.place().source.dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		err = r.alive(t.Context())
		switch {
		case want == net.ErrClosed:
			if !broken(err) {
				t.Errorf("%s: %v", reply, err)
			}
		case broken(err) || want != nil && !errors.Is(err, want):
			t.Errorf("%s: %v", reply, err)
		case want == nil && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)):
			t.Errorf("%s: %v", reply, err)
		}
		_ = r.close()
	}
}

// A reply that makes no sense is an error, and nobody uses its connection any more.
func TestRepliesWithoutSense(t *testing.T) {
	t.Parallel()
	for command, reply := range map[string]string{"PWD": `257 "/home`, "PASV": "227 )10,1,2,3,4,5("} {
		s := newStub(t, map[string]string{command: reply})
		if err := s.place().List(t.Context(), func([]files.Entry) error { return nil }); err == nil || !broken(err) {
			t.Errorf("%s: %v", reply, err)
		}
	}
}

// Where a server will not tell whether a name is taken, nothing is renamed to it, nor written.
func TestTakenNobodyKnows(t *testing.T) {
	t.Parallel()
	s := newStub(t, map[string]string{"SIZE /in/a": "213 4", "MDTM": "213 20260102030405", "SIZE": "450 busy", "RNFR": "350 go on", "RNTO": "250 renamed", "MKD": "257 made"})
	p := s.place()
	p.resource = "in"
	r, err := p.source.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{"rename": r.rename(t.Context(), "/in/a", "/in/done/a"), "put": r.put(t.Context(), "/in/done/a", nil)} {
		if err == nil || broken(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
	_ = r.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.ContainsFunc(s.said, func(line string) bool { return strings.HasPrefix(line, "RNTO") || strings.HasPrefix(line, "STOR") }) {
		t.Errorf("sent were %q", s.said)
	}
}

// After a command without a reply nothing is sent over its connection: the reply, when it comes, would be taken for that to the next one.
func TestNoReply(t *testing.T) {
	t.Parallel()
	s := newStub(t, map[string]string{})
	s.silent, s.patient = "EPSV", 200*time.Millisecond
	if err := s.place().List(t.Context(), func([]files.Entry) error { return nil }); err == nil || !broken(err) {
		t.Errorf("List: %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(s.said, "PASV") {
		t.Errorf("sent were %q", s.said)
	}
}

// A command that is given up is withdrawn, as far as it has not been received.
func TestCommandsAreWithdrawn(t *testing.T) {
	t.Parallel()
	s := newStub(t, map[string]string{})
	s.silent, s.patient = "DELE", 200*time.Millisecond
	r, err := s.place().source.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := r.remove(t.Context(), "/a"); !broken(err) {
		t.Errorf("remove: %v", err)
	}
	_ = r.close()
	select {
	case err := <-s.end:
		if !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the connection ended with %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("the connection did not end")
	}
}

// TestLateReply: what comes after a read has ended for want of it is not read.
func TestLateReply(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	c := &timedConn{Conn: ours, limit: time.Millisecond}
	_, first := c.Read(make([]byte, 1))
	go func() { _, _ = theirs.Write([]byte("late")) }()
	c.limit = time.Minute
	if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil || !errors.Is(err, first) {
		t.Errorf("read %d bytes, %v; before: %v", n, err, first)
	}
	if _, err := c.Write([]byte("x")); !errors.Is(err, first) {
		t.Errorf("written: %v", err)
	}
}
