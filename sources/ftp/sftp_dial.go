package ftp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
)

// sftpDial connects to one server.
type sftpDial struct {
	target
	ssh SSH
}

// dial connects and logs in. Where the server presents a key that is not pinned, it is asked for its others.
func (d *sftpDial) dial(ctx context.Context) (*sftpRemote, error) {
	var first error
	var without []string
	for {
		keys, err := d.hostKeys(without)
		if err != nil {
			return nil, fmt.Errorf("connect to %s: %w", d.addr, err)
		}
		r, err := d.connect(ctx, keys)
		switch {
		case err == nil:
			return r, nil
		case keys.presented == "" || len(plainAlgorithms(append(without, keys.presented))) == 0:
			if first != nil {
				return nil, first
			}
			return nil, err
		}
		if first == nil {
			first = err
		}
		without = append(without, keys.presented)
	}
}

// connect is one try, bounded by ctx and the timeout as a whole.
func (d *sftpDial) connect(ctx context.Context, keys *hostKeys) (*sftpRemote, error) {
	deadline := time.Now().Add(d.timeout)
	tcp, err := (&net.Dialer{Deadline: deadline}).DialContext(ctx, "tcp", d.addr)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", d.addr, err)
	}
	stop := context.AfterFunc(ctx, func() { tcp.Close() })
	defer stop()
	r, err := d.start(ctx, tcp, deadline, keys)
	if err == nil && !stop() {
		r.close()
		err = ctx.Err()
	}
	if err == nil {
		return r, nil
	}
	tcp.Close()
	var slow net.Error
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("connect to %s: %w", d.addr, ctx.Err())
	case keys.refused != nil:
		return nil, fmt.Errorf("connect to %s: %w", d.addr, keys.refused)
	case errors.As(err, &slow) && slow.Timeout():
		return nil, fmt.Errorf("connect to %s: no answer within %v: %w", d.addr, d.timeout, err)
	}
	return nil, fmt.Errorf("connect to %s: %w", d.addr, err)
}

// start makes an SFTP session of a connection.
func (d *sftpDial) start(ctx context.Context, tcp net.Conn, deadline time.Time, keys *hostKeys) (*sftpRemote, error) {
	methods, done, err := d.login(ctx, deadline)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := tcp.SetDeadline(deadline); err != nil {
		return nil, err
	}
	conn, channels, requests, err := ssh.NewClientConn(tcp, d.addr, &ssh.ClientConfig{
		User: d.user, Auth: methods, HostKeyCallback: keys.callback, HostKeyAlgorithms: keys.algorithms,
	})
	if err != nil {
		if strings.Contains(err.Error(), "unable to authenticate") {
			return nil, fmt.Errorf("the login of %q is refused, check its password or key: %w", d.user, err)
		}
		return nil, err
	}
	client := ssh.NewClient(conn, channels, requests)
	r, err := d.session(client)
	if err == nil {
		err = tcp.SetDeadline(time.Time{})
	}
	if err != nil {
		client.Close()
		return nil, err
	}
	r.tcp = tcp
	return r, nil
}

// session opens the subsystem and learns the directory of the login.
func (d *sftpDial) session(client *ssh.Client) (*sftpRemote, error) {
	s, err := client.NewSession()
	if err != nil {
		return nil, err
	}
	in, err := s.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := s.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.RequestSubsystem("sftp"); err != nil {
		return nil, fmt.Errorf("the server has no SFTP for this user: %w", err)
	}
	t := &tap{from: out, to: in}
	c, err := sftp.NewClientPipe(t, t, sftp.UseFstat(true))
	if err != nil {
		return nil, fmt.Errorf("the server does not speak SFTP to this user: %w", err)
	}
	r := &sftpRemote{ssh: client, sftp: c, tap: t, addr: d.addr, timeout: d.timeout}
	r.refuses = strings.HasPrefix(string(client.ServerVersion()), "SSH-2.0-OpenSSH")
	if r.homeDir, err = c.RealPath("."); err == nil && !strings.HasPrefix(r.homeDir, "/") {
		err = fmt.Errorf("the server calls the directory of the login %q, which is not an absolute path", r.homeDir)
	}
	return r, err
}
