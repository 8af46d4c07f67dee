//go:build linux

package testserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// RedisServer is a Redis or Valkey that runs.
type RedisServer struct {
	*Process
	t    testing.TB
	kind RedisKind
	Host string
	Port int
	Dir  string // its data: dump.rdb, and appendonlydir where it has an append-only file
	// Password is for administration with Do, where the server wants one.
	Password string
}

// RedisKind is a server that speaks the protocol.
type RedisKind string

// The kinds that scripts/servers.sh installs.
const (
	Redis  RedisKind = "redis"  // 7.0, of Debian 12
	Valkey RedisKind = "valkey" // 8.1, of Debian 13
)

// StartRedis starts a single server without persistence. More arguments come after those that make it private; they may give other settings,
// such as "--appendonly", "yes".
func StartRedis(t testing.TB, kind RedisKind, args ...string) *RedisServer {
	t.Helper()
	return startRedis(t, kind, args)
}

// StartRedisTLS starts a server that speaks TLS alone, with this certificate and key.
func StartRedisTLS(t testing.TB, kind RedisKind, certPEM, keyPEM []byte, args ...string) *RedisServer {
	t.Helper()
	s := &RedisServer{t: t, kind: kind, Host: "127.0.0.1", Dir: Dir(t)}
	cert, key := filepath.Join(s.Dir, "cert.pem"), filepath.Join(s.Dir, "key.pem")
	if err := errors.Join(os.WriteFile(cert, certPEM, 0o644), os.WriteFile(key, keyPEM, 0o600)); err != nil {
		t.Fatal(err)
	}
	port := Port(t)
	tls := []string{"--tls-port", strconv.Itoa(port), "--tls-cert-file", cert, "--tls-key-file", key, "--tls-auth-clients", "no"}
	s.start(func(ctx context.Context) error {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			_ = c.Close()
		}
		return err
	}, append(tls, args...))
	s.Port = port
	return s
}

// StartReplica starts a replica of a server, and waits until it has the master's data.
func StartReplica(t testing.TB, master *RedisServer, args ...string) *RedisServer {
	t.Helper()
	r := startRedis(t, master.kind, append([]string{"--replicaof", fmt.Sprintf("127.0.0.1 %d", master.Port)}, args...))
	r.Until("INFO replication", "master_link_status:up")
	master.Until("INFO replication", fmt.Sprintf("port=%d,state=online", r.Port)) // which it knows a moment later
	return r
}

// StartSentinel starts a Sentinel that alone decides on the failover of a master of the name "master", after it did not answer for down.
func StartSentinel(t testing.TB, master *RedisServer, down time.Duration) *RedisServer {
	t.Helper()
	dir, port := Dir(t), Port(t)
	conf := fmt.Sprintf("port %d\nbind 127.0.0.1\ndir %s\nsentinel monitor master 127.0.0.1 %d 1\nsentinel down-after-milliseconds master %d\n"+
		"sentinel failover-timeout master 3000\n", port, dir, master.Port, down.Milliseconds())
	file := filepath.Join(dir, "sentinel.conf")
	if err := os.WriteFile(file, []byte(conf), 0o644); err != nil {
		t.Fatal(err)
	}
	s := &RedisServer{t: t, kind: master.kind, Host: "127.0.0.1", Port: port, Dir: dir}
	root, path := master.kind.binary(t)
	s.Process = Start(t, Spec{Name: "sentinel", Path: path, Root: root, Dir: dir, Args: []string{file, "--sentinel"}, Ready: s.ping})
	return s
}

// StartRedisCluster starts a Cluster of masters without replicas that has all slots.
func StartRedisCluster(t testing.TB, kind RedisKind, masters int) []*RedisServer {
	t.Helper()
	var nodes []*RedisServer
	for range masters {
		nodes = append(nodes, StartRedis(t, kind, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--cluster-port", strconv.Itoa(Port(t))))
	}
	for i, n := range nodes {
		n.Must("CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(16384*i/masters), strconv.Itoa(16384*(i+1)/masters-1))
		n.Must("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
	}
	for _, n := range nodes[1:] {
		n.Must("CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(nodes[0].Port), nodes[0].busPort())
	}
	for _, n := range nodes {
		n.Until("CLUSTER INFO", "cluster_state:ok", fmt.Sprintf("cluster_known_nodes:%d", masters))
	}
	return nodes
}

// StartClusterReplica adds a replica of a master to its Cluster, and waits until all its nodes know of it.
func StartClusterReplica(t testing.TB, nodes []*RedisServer, master *RedisServer) *RedisServer {
	t.Helper()
	r := StartRedis(t, master.kind, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--cluster-port", strconv.Itoa(Port(t)))
	r.Must("CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(master.Port), master.busPort())
	id := strings.TrimSpace(master.Must("CLUSTER", "MYID"))
	r.Until("CLUSTER NODES", id)
	r.Must("CLUSTER", "REPLICATE", id)
	r.Until("INFO replication", "master_link_status:up")
	mine := strings.TrimSpace(r.Must("CLUSTER", "MYID"))
	for _, n := range nodes {
		n.Until("CLUSTER NODES", mine, "slave "+id)
		r.Until("CLUSTER NODES", strings.TrimSpace(n.Must("CLUSTER", "MYID")))
	}
	return r
}

func (s *RedisServer) busPort() string {
	fields := strings.Fields(s.Must("CONFIG", "GET", "cluster-port"))
	return fields[len(fields)-1]
}

func (k RedisKind) binary(t testing.TB) (root, path string) {
	t.Helper()
	if k == Valkey {
		root = Root(t)
	}
	return root, Need(t, root, string(k)+"-server")
}

func startRedis(t testing.TB, kind RedisKind, args []string) *RedisServer {
	t.Helper()
	s := &RedisServer{t: t, kind: kind, Host: "127.0.0.1", Port: Port(t), Dir: Dir(t)}
	s.start(s.ping, args)
	return s
}

// start starts the server at Port, 0 for none without TLS.
func (s *RedisServer) start(ready func(context.Context) error, args []string) {
	s.t.Helper()
	root, path := s.kind.binary(s.t)
	all := append([]string{"--port", strconv.Itoa(s.Port), "--bind", "127.0.0.1", "--dir", s.Dir, "--save", "", "--repl-diskless-sync-delay", "0"}, args...)
	s.Process = Start(s.t, Spec{Name: string(s.kind), Path: path, Root: root, Dir: s.Dir, Args: all, Ready: ready})
}

// Addr is host:port.
func (s *RedisServer) Addr() string { return fmt.Sprintf("%s:%d", s.Host, s.Port) }

// ping is nil when the server answers, even if it wants a password.
func (s *RedisServer) ping(ctx context.Context) error {
	out, err := s.Do(ctx, "PING")
	if err == nil && !strings.Contains(out, "PONG") && !strings.Contains(out, "NOAUTH") {
		err = fmt.Errorf("PING answers %q", out)
	}
	return err
}

// Until asks a command, given as words with spaces between, until its answer has all of the parts.
func (s *RedisServer) Until(command string, parts ...string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	for {
		out, err := s.Do(ctx, strings.Fields(command)...)
		all := err == nil
		for _, p := range parts {
			all = all && strings.Contains(out, p)
		}
		if all {
			return
		}
		select {
		case <-ctx.Done():
			s.t.Fatalf("testserver: %s never answered %q; at last %q, %v", command, parts, out, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Must runs a command, whose answer must be no error, and gives the answer's text.
func (s *RedisServer) Must(command ...string) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 10*time.Second)
	defer cancel()
	out, err := s.Do(ctx, command...)
	if err == nil && len(out) > 1 && out[0] == '-' && (out[1] < '0' || out[1] > '9') {
		err = fmt.Errorf("%s", out)
	}
	if err != nil {
		s.t.Fatalf("testserver: %v: %v", command, err)
	}
	return out
}

// Do runs a command over a connection of its own. The parts of the answer are lines; an error of the server begins with "-".
func (s *RedisServer) Do(ctx context.Context, command ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", s.Addr())
	if err != nil {
		return "", err
	}
	defer c.Close()
	deadline, _ := ctx.Deadline()
	_ = c.SetDeadline(deadline)
	r := bufio.NewReader(c)
	if s.Password != "" {
		if out, err := ask(c, r, "AUTH", s.Password); err != nil || strings.HasPrefix(out, "-") {
			return out, err
		}
	}
	return ask(c, r, command...)
}

func ask(c net.Conn, r *bufio.Reader, command ...string) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(command))
	for _, word := range command {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(word), word)
	}
	if _, err := c.Write([]byte(b.String())); err != nil {
		return "", err
	}
	var out strings.Builder
	err := answer(r, &out)
	return out.String(), err
}

// answer reads one answer of the protocol's second version.
func answer(r *bufio.Reader, out *strings.Builder) error {
	line, err := r.ReadString('\n')
	if err != nil {
		return err
	}
	line = strings.TrimRight(line, "\r\n")
	if line == "" {
		return fmt.Errorf("an empty answer")
	}
	n, _ := strconv.Atoi(line[1:])
	switch line[0] {
	case '$':
		if n < 0 {
			return nil
		}
		b := make([]byte, n+2)
		for got := 0; got < len(b); {
			k, err := r.Read(b[got:])
			if err != nil {
				return err
			}
			got += k
		}
		out.Write(b[:n])
		out.WriteByte('\n')
	case '*':
		for range max(n, 0) {
			if err := answer(r, out); err != nil {
				return err
			}
		}
	case '-':
		out.WriteString(line + "\n")
	default:
		out.WriteString(line[1:] + "\n")
	}
	return nil
}
