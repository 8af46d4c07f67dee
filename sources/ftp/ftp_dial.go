package ftp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/textproto"
	"strings"
	"sync"
	"time"

	lib "github.com/jlaffaye/ftp"
)

// ftpServer is how connections to one FTP server are made.
type ftpServer struct {
	target
	tls          *tls.Config // nil: none
	implicit     bool
	trustPassive bool
	ignoreUnique bool
}

// ftpDialer checks what concerns FTP and returns what connects; the violations are without a prefix.
func (c Config) ftpDialer(t target) (dialer, []error) {
	var errs []error
	if t.user == "" {
		t.user = "anonymous"
	}
	if !carries(t.user) {
		errs = append(errs, errors.New("the field User holds a byte that FTP cannot carry"))
	}
	s := ftpServer{target: t, trustPassive: c.TrustPassiveAddress, ignoreUnique: c.IgnoreUnique}
	if t.scheme == "ftps" {
		s.tls = &tls.Config{}
		if c.TLS != nil {
			s.tls = c.TLS.Clone()
		}
		if s.tls.ServerName == "" {
			s.tls.ServerName = t.host
		}
		if s.tls.MaxVersion == 0 {
			s.tls.MaxVersion = tls.VersionTLS12
		}
		s.implicit = c.ImplicitTLS || strings.HasSuffix(t.addr, ":990")
	}
	return s.connect, errs
}

// connect connects and logs in.
func (s ftpServer) connect(ctx context.Context) (remote, error) {
	password, err := s.password()
	if err != nil {
		return nil, err
	}
	if !carries(password) {
		return nil, errors.New("the password holds a byte that FTP cannot carry")
	}
	c := &ftpConn{server: s}
	if s.tls != nil { // a data connection must go on with the session of its own control connection
		c.tls = s.tls.Clone()
		c.tls.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	}
	if err := c.call(ctx, "connect to "+s.addr, c.greet); err != nil {
		c.kill()
		return nil, err
	}
	if err := c.call(ctx, fmt.Sprintf("log in to %s as %q", s.addr, s.user), func() error { return c.login(password) }); err != nil {
		c.kill()
		return nil, err
	}
	return c, nil
}

// greet connects, up to the first command of the login.
func (c *ftpConn) greet() (err error) {
	options := []lib.DialOption{
		lib.DialWithDialFunc(c.dial), lib.DialWithDebugOutput(&c.tap), lib.DialWithTrustPasvIP(c.server.trustPassive),
	}
	switch {
	case c.server.implicit:
		options = append(options, lib.DialWithTLS(c.tls))
	case c.tls != nil:
		options = append(options, lib.DialWithExplicitTLS(c.tls))
	}
	c.lib, err = lib.Dial(c.server.addr, options...)
	return err
}

func (c *ftpConn) login(password string) error {
	err := c.lib.Login(c.server.user, password)
	if err != nil {
		return err
	}
	if !c.lib.IsTimePreciseInList() && !c.lib.IsGetTimeSupported() {
		return errors.New("the server has neither MLST nor MDTM, so that nobody can tell whether a file changed")
	}
	c.mlst = c.lib.IsTimePreciseInList()
	c.dir, err = c.lib.CurrentDir()
	if err == nil && !strings.HasPrefix(c.dir, "/") {
		err = fmt.Errorf("the server says that the directory after the login is %q, which is no absolute path with slashes", c.dir)
	}
	return err
}

// dial makes the control connection and later each data connection.
func (c *ftpConn) dial(network, address string) (net.Conn, error) {
	// Without the deadline of the call: the dialer would use it, and fail a moment before the context says that it has ended.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), c.server.timeout)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	raw, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	timed := &timedConn{Conn: raw, limit: c.server.timeout}
	control, err := c.adopt(timed)
	if err != nil {
		return nil, err
	}
	var conn net.Conn = timed
	switch {
	case control && c.server.implicit:
		conn = tls.Client(timed, c.tls)
	case !control && c.tls != nil:
		conn = tlsData{tls.Client(timed, c.tls)}
	}
	if c.lines != nil && !control {
		return &listConn{Conn: conn, line: c.lines}, nil
	}
	return conn, nil
}

// tlsData is a data connection over TLS.
type tlsData struct{ *tls.Conn }

// Close closes it. What the server says over the control connection tells whether all was well; that it did not wait for
// our end of the data connection says nothing.
func (t tlsData) Close() error {
	_ = t.Conn.Close()
	return nil
}

// adopt notes a connection, so that kill can close it, and tells whether it is the control connection.
func (c *ftpConn) adopt(conn *timedConn) (control bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.killed {
		_ = conn.Close()
		return false, net.ErrClosed
	}
	if c.control == nil {
		c.control = conn
		return true, nil
	}
	c.data = conn
	return false, nil
}

// kill closes both connections at once, whoever uses them.
func (c *ftpConn) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.killed = true
	if c.control != nil {
		if !c.parted {
			withdraw(c.control.Conn)
		}
		_ = c.control.Conn.Close()
	}
	if c.data != nil {
		_ = c.data.Conn.Close()
	}
}

// withdraw makes the end of a connection drop what the other side has not received: a command that is given up here must not be
// delivered, and carried out, minutes later, when the network is back.
func withdraw(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
}

// timedConn gives each read and write a time of its own, so that no call waits for ever on a server that is frozen or gone. After an
// error it does nothing any more: a reply that comes late would be taken for that to the next command.
type timedConn struct {
	net.Conn
	limit time.Duration

	mu  sync.Mutex
	err error // the first
}

func (t *timedConn) failed() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

func (t *timedConn) note(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.err = err
	}
}

// Read reads within the limit.
func (t *timedConn) Read(p []byte) (int, error) {
	return t.within(t.Conn.SetReadDeadline, t.Conn.Read, p)
}

// Write writes within the limit.
func (t *timedConn) Write(p []byte) (int, error) {
	return t.within(t.Conn.SetWriteDeadline, t.Conn.Write, p)
}

func (t *timedConn) within(limit func(time.Time) error, do func([]byte) (int, error), p []byte) (n int, err error) {
	if err = t.failed(); err != nil {
		return 0, err
	}
	if err = limit(time.Now().Add(t.limit)); err == nil {
		n, err = do(p)
	}
	t.note(err)
	return n, err
}

// controlTap keeps what comes over the control connection while it is on: the client library leaves out a part of it. It is off
// during the login, so that it never holds a password.
type controlTap struct {
	mu  sync.Mutex
	on  bool
	buf []byte
}

// Write is called by the client library with all commands and replies.
func (t *controlTap) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.on {
		t.buf = append(t.buf, p...)
	}
	return len(p), nil
}

// during returns what was carried while f ran.
func (t *controlTap) during(f func()) string {
	t.mu.Lock()
	t.on, t.buf = true, t.buf[:0]
	t.mu.Unlock()
	f()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.on = false
	return string(t.buf)
}

// carries reports whether FTP can carry a text as a part of a command: a line end would begin another command, and servers
// take the byte 255 for a command of Telnet and drop it, with what follows: another file would be meant.
func carries(text string) bool {
	return !strings.ContainsAny(text, "\x00\r\n") && strings.IndexByte(text, 0xff) < 0
}

// code is that of the server's reply, 0 when the error is none.
func code(err error) int {
	var reply *textproto.Error
	if errors.As(err, &reply) {
		return reply.Code
	}
	return 0
}
