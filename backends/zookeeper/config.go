package zookeeper

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/rebalancer-go/rebalancer/backends"
)

// DefaultRoot is below which everything is kept when the connect string names no chroot.
const DefaultRoot = "/rebalancer"

const defaultPort = "2181"

// config is what a store was opened with.
type config struct {
	servers      []string // host:port
	root         string   // no slash at its end
	chroot       bool     // the root was named, and must be there
	user, digest string   // digest is user:password; empty: none
	acl          []zk.ACL
	tls          *tls.Config
	dial         func(ctx context.Context, network, address string) (net.Conn, error)
}

// Option changes how a store is opened.
type Option func(*config) error

// WithServers names the servers of the ensemble, each host or host:port. It adds to those of the connect string. The default port is 2181.
func WithServers(servers ...string) Option {
	return func(c *config) error {
		for _, s := range servers {
			address, err := serverAddress(s)
			if err != nil {
				return err
			}
			c.servers = append(c.servers, address)
		}
		return nil
	}
}

// WithChroot names the znode below which everything is kept; it must exist. Without it, and without one in the connect string,
// it is DefaultRoot, which is made.
func WithChroot(path string) Option {
	return func(c *config) error {
		path = strings.TrimRight(path, "/")
		if path == "" {
			return nil
		}
		if !strings.HasPrefix(path, "/") || strings.Contains(path, "//") || strings.ContainsAny(path, "\x00\n") {
			return fmt.Errorf("the chroot %q is no path of ZooKeeper: it begins with / and has no empty part", path)
		}
		c.root, c.chroot = path, true
		return nil
	}
}

// WithDigest authenticates each connection by the scheme "digest". What the store makes is then open to this user alone, unless
// WithACL says otherwise.
func WithDigest(user, password string) Option {
	return func(c *config) error {
		if user == "" || strings.Contains(user, ":") {
			return errors.New("a digest needs the name of a user, without a colon")
		}
		c.user, c.digest = user, user+":"+password
		return nil
	}
}

// WithACL is put on everything that the store makes. All nodes of a group need all rights but admin.
func WithACL(acl ...zk.ACL) Option {
	return func(c *config) error {
		c.acl = slices.Clone(acl)
		return nil
	}
}

// WithTLS connects with TLS, as an ensemble with a secureClientPort asks for. An empty ServerName is filled in with the server's host.
func WithTLS(t *tls.Config) Option {
	return func(c *config) error {
		if t == nil {
			return errors.New("WithTLS needs a tls.Config")
		}
		c.tls = t.Clone()
		return nil
	}
}

// WithDialer connects through f, below TLS when there is any.
func WithDialer(f func(ctx context.Context, network, address string) (net.Conn, error)) Option {
	return func(c *config) error {
		c.dial = f
		return nil
	}
}

// parse reads zk://[user:password@]host[:port],…[/chroot] and the options. No error repeats the password.
func parse(connect string, opts []Option) (config, error) {
	var c config
	var errs []error
	if connect != "" {
		errs = append(errs, c.parseURL(connect))
	}
	for _, o := range opts {
		errs = append(errs, o(&c))
	}
	if err := errors.Join(errs...); err != nil {
		return c, fmt.Errorf("zookeeper store: %w: %w", backends.ErrFatal, err)
	}
	if len(c.servers) == 0 {
		return c, fmt.Errorf("zookeeper store: %w: no server is named: zk://host1:2181,host2:2181/chroot", backends.ErrFatal)
	}
	if c.root == "" {
		c.root = DefaultRoot
	}
	if c.acl == nil {
		c.acl = zk.WorldACL(zk.PermAll)
		if c.digest != "" {
			c.acl = zk.AuthACL(zk.PermAll)
		}
	}
	if c.dial == nil {
		c.dial = (&net.Dialer{KeepAlive: 15 * time.Second}).DialContext
	}
	return c, nil
}

func (c *config) parseURL(connect string) error {
	rest, ok := strings.CutPrefix(connect, "zk://")
	if !ok {
		return errors.New("a connect string begins with zk://")
	}
	hosts, path, _ := strings.Cut(rest, "/")
	if i := strings.LastIndex(hosts, "@"); i >= 0 {
		user, password, _ := strings.Cut(hosts[:i], ":")
		hosts = hosts[i+1:]
		u, errUser := url.PathUnescape(user)
		p, errPassword := url.PathUnescape(password)
		if errUser != nil || errPassword != nil {
			return errors.New("the user or password of the connect string is not well escaped: write % as %25, @ as %40, / as %2F")
		}
		if err := WithDigest(u, p)(c); err != nil {
			return err
		}
	}
	if strings.ContainsAny(path, "?#") {
		return errors.New("a connect string has no ? or #: write %3F, %23")
	}
	chroot, err := url.PathUnescape(path)
	if err != nil {
		return errors.New("the chroot of the connect string is not well escaped")
	}
	return errors.Join(WithServers(strings.Split(hosts, ",")...)(c), WithChroot("/"+chroot)(c))
}

func serverAddress(s string) (string, error) {
	if s == "" {
		return "", errors.New("a server has no name: zk://host1:2181,host2:2181/chroot")
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		host, port = strings.Trim(s, "[]"), defaultPort
	}
	if host == "" || port == "" || strings.ContainsAny(s, " /@?#") {
		return "", fmt.Errorf("a server is host or host:port, not %q", s)
	}
	return net.JoinHostPort(host, port), nil
}

// String names the place, without secrets.
func (c *config) String() string { return "zk://" + strings.Join(c.servers, ",") + c.root }

// open dials a server.
func (c *config) open(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := c.dial(ctx, network, address)
	if err != nil || c.tls == nil {
		return conn, err
	}
	t := c.tls.Clone()
	if t.ServerName == "" {
		t.ServerName, _, _ = net.SplitHostPort(address)
	}
	secure := tls.Client(conn, t)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("TLS with %s: %w", address, err)
	}
	return secure, nil
}
