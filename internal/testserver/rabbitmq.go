//go:build linux

package testserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// RabbitMQ is a RabbitMQ server of one node, with the plugins for management, streams, the consistent-hash exchange and client certificates as
// logins. It speaks AMQP without and with TLS. Its user "guest", password "guest", may do everything.
type RabbitMQ struct {
	*Process
	t                     testing.TB
	Version               int // as given to StartRabbitMQ
	port, tls, management int
	Dir                   string
	// CA signed the server's certificate, which is for 127.0.0.1 and localhost, and signs those of clients that the server accepts.
	CA *CA
}

// StartRabbitMQ starts a server of a major version: 3 (3.10, of this release of Debian) or 4 (4.0, of the next). Lines are added to its
// configuration, such as "consumer_timeout = 1000". A start takes some 8 s of a core: see Keeper, and VHost.
func StartRabbitMQ(t testing.TB, version int, lines ...string) *RabbitMQ {
	t.Helper()
	root := ""
	if version > 3 {
		root = Root(t)
	}
	server := Need(t, root, "/usr/lib/rabbitmq/bin/rabbitmq-server")
	r := &RabbitMQ{t: t, Version: version, port: Port(t), tls: Port(t), management: Port(t), Dir: Dir(t), CA: NewCA(t)}
	epmd := Port(t)
	Start(t, Spec{Name: "epmd", Path: Need(t, root, "epmd"), Root: root, Dir: Dir(t), Args: []string{"-port", strconv.Itoa(epmd), "-address", "127.0.0.1"},
		Ready: func(ctx context.Context) error { return dials(ctx, epmd) }})
	r.configure(lines)
	r.Process = Start(t, Spec{Name: fmt.Sprintf("RabbitMQ %d", version), Path: server, Root: root, Dir: r.Dir, Env: r.env(epmd), Ready: r.ready, Patience: 2 * time.Minute})
	return r
}

// configure writes the files that the server reads.
func (r *RabbitMQ) configure(lines []string) {
	r.t.Helper()
	cert, key := r.CA.Issue(r.t, "localhost")
	config := fmt.Sprintf(`listeners.tcp.1 = 127.0.0.1:%[1]d
listeners.ssl.1 = 127.0.0.1:%[2]d
ssl_options.cacertfile = %[4]s/ca.pem
ssl_options.certfile = %[4]s/cert.pem
ssl_options.keyfile = %[4]s/key.pem
ssl_options.verify = verify_peer
ssl_options.fail_if_no_peer_cert = false
ssl_cert_login_from = common_name
auth_mechanisms.1 = PLAIN
auth_mechanisms.2 = AMQPLAIN
auth_mechanisms.3 = EXTERNAL
management.tcp.ip = 127.0.0.1
management.tcp.port = %[3]d
stream.listeners.tcp = none
collect_statistics_interval = 1000
log.console.level = warning
%[5]s
`, r.port, r.tls, r.management, r.Dir, strings.Join(lines, "\n"))
	for name, content := range map[string]string{
		"rabbitmq.conf": config, "ca.pem": string(r.CA.PEM), "cert.pem": string(cert), "key.pem": string(key),
		"plugins": "[rabbitmq_management,rabbitmq_stream,rabbitmq_consistent_hash_exchange,rabbitmq_auth_mechanism_ssl].\n",
	} {
		if err := os.WriteFile(filepath.Join(r.Dir, name), []byte(content), 0o600); err != nil {
			r.t.Fatal(err)
		}
	}
}

// env names a place of its own for everything that the server would share with others.
func (r *RabbitMQ) env(epmd int) []string {
	dir := r.Dir
	return []string{
		"RABBITMQ_NODENAME=n" + strconv.Itoa(r.port) + "@localhost", "RABBITMQ_NODE_PORT=" + strconv.Itoa(r.port), "RABBITMQ_NODE_IP_ADDRESS=127.0.0.1",
		"RABBITMQ_DIST_PORT=" + strconv.Itoa(Port(r.t)), "ERL_EPMD_PORT=" + strconv.Itoa(epmd), "ERL_EPMD_ADDRESS=127.0.0.1",
		"RABBITMQ_MNESIA_BASE=" + dir + "/mnesia", "RABBITMQ_LOG_BASE=" + dir + "/log", "RABBITMQ_LOGS=-",
		"RABBITMQ_ENABLED_PLUGINS_FILE=" + dir + "/plugins", "RABBITMQ_CONFIG_FILE=" + dir + "/rabbitmq.conf", "RABBITMQ_CONF_ENV_FILE=/dev/null",
		"RABBITMQ_PID_FILE=" + dir + "/pid", "RABBITMQ_PLUGINS_EXPAND_DIR=" + dir + "/expand", "RABBITMQ_GENERATED_CONFIG_DIR=" + dir + "/config",
		"RABBITMQ_SCHEMA_DIR=" + dir + "/schema",
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=+sbwt none +sbwtdcpu none +sbwtdio none +S 2:2 -noinput -kernel inet_dist_use_interface {127,0,0,1}",
		"detached=yes", // or the script stays as the broker's parent, and a test that is killed leaves the broker behind
	}
}

func (r *RabbitMQ) ready(ctx context.Context) error {
	return errors.Join(r.Call(ctx, http.MethodGet, "/api/overview", nil, nil), dials(ctx, r.port), dials(ctx, r.tls))
}

// Addr is host:port of AMQP without TLS.
func (r *RabbitMQ) Addr() string { return fmt.Sprintf("127.0.0.1:%d", r.port) }

// URL connects to a virtual host as guest; see VHost.
func (r *RabbitMQ) URL(vhost string) string { return r.URLAt(r.Addr(), "guest", "guest", vhost) }

// URLAt is URL as another user and by way of another address, that of a proxy.
func (r *RabbitMQ) URLAt(addr, user, password, vhost string) string {
	return amqpURL("amqp", addr, url.UserPassword(user, password), vhost)
}

// TLSAddr is host:port of AMQP with TLS.
func (r *RabbitMQ) TLSAddr() string { return fmt.Sprintf("127.0.0.1:%d", r.tls) }

// TLSURL is URL with TLS. Clients trust CA.
func (r *RabbitMQ) TLSURL(vhost string) string {
	return amqpURL("amqps", r.TLSAddr(), url.UserPassword("guest", "guest"), vhost)
}

func amqpURL(scheme, addr string, user *url.Userinfo, vhost string) string {
	return (&url.URL{Scheme: scheme, User: user, Host: addr, Path: "/" + vhost, RawPath: "/" + url.PathEscape(vhost)}).String()
}

// ManagementAddr is host:port of the management API.
func (r *RabbitMQ) ManagementAddr() string { return fmt.Sprintf("127.0.0.1:%d", r.management) }

// ManagementURL is that of the management API as guest.
func (r *RabbitMQ) ManagementURL() string {
	return (&url.URL{Scheme: "http", User: url.UserPassword("guest", "guest"), Host: r.ManagementAddr()}).String()
}

// For is the same server for another test, which must not kill, freeze or restart it.
func (r *RabbitMQ) For(t testing.TB) *RabbitMQ {
	p, c := *r.Process, *r
	p.t, c.t, c.Process = t, t, &p
	return &c
}
