//go:build linux

package testserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// ZooKeeper is a server of ZooKeeper, alone or one of an ensemble.
type ZooKeeper struct {
	*Process
	t    testing.TB
	port int
	Dir  string // its data is in Dir/data
}

// ZooKeeperTick is the tick of the servers here: sessions have timeouts of 2 ticks and more.
const ZooKeeperTick = 500 * time.Millisecond

// StartZooKeeper starts one server, below a root or, when that is empty, of this machine. Lines are added to its configuration.
func StartZooKeeper(t testing.TB, root string, lines ...string) *ZooKeeper {
	t.Helper()
	z := newZooKeeper(t, lines)
	z.Process = Start(t, z.spec(root))
	return z
}

// Ensemble is three servers that elect a leader.
type Ensemble struct {
	Servers []*ZooKeeper
	links   map[[2]int]*Link
}

// StartEnsemble starts three servers whose connections to each other, but for elections, pass through proxies. See Link.
func StartEnsemble(t testing.TB, root string, lines ...string) *Ensemble {
	t.Helper()
	e := &Ensemble{links: map[[2]int]*Link{}}
	const n = 3
	var peer, elect [n]int
	for i := range n {
		peer[i], elect[i] = Port(t), Port(t)
	}
	for i := range n {
		own := append([]string{}, lines...)
		for j := range n {
			port := peer[j]
			if j != i { // each reaches the leader's port through a proxy of its own
				l := Proxy(t, fmt.Sprintf("127.0.0.1:%d", peer[j]))
				e.links[[2]int{i, j}] = l
				_, p, _ := strings.Cut(l.Addr(), ":")
				_, _ = fmt.Sscan(p, &port)
			}
			own = append(own, fmt.Sprintf("server.%d=127.0.0.1:%d:%d", j+1, port, elect[j]))
		}
		z := newZooKeeper(t, own)
		if err := os.WriteFile(filepath.Join(z.Dir, "data", "myid"), fmt.Append(nil, i+1), 0o644); err != nil {
			t.Fatal(err)
		}
		e.Servers = append(e.Servers, z)
	}
	for _, z := range e.Servers { // none is ready alone
		s := z.spec(root)
		s.Ready = nil
		z.Process = Start(t, s)
		z.Process.spec = z.spec(root)
	}
	for _, z := range e.Servers {
		z.waitReady()
	}
	return e
}

// Addr has the addresses of all servers, separated by commas.
func (e *Ensemble) Addr() string {
	var all []string
	for _, z := range e.Servers {
		all = append(all, z.Addr())
	}
	return strings.Join(all, ",")
}

// Leader is the number of the server that leads, counted from 0. It waits until there is one.
func (e *Ensemble) Leader() int {
	t := e.Servers[0].t
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); <-time.After(50 * time.Millisecond) {
		for i, z := range e.Servers {
			if answer, err := z.Ask(t.Context(), "srvr"); err == nil && strings.Contains(answer, "Mode: leader") {
				return i
			}
		}
	}
	t.Fatal("testserver: the ensemble has no leader")
	return -1
}

// Link is what carries the connection of a follower to its leader.
func (e *Ensemble) Link(follower, leader int) *Link { return e.links[[2]int{follower, leader}] }

func newZooKeeper(t testing.TB, lines []string) *ZooKeeper {
	t.Helper()
	z := &ZooKeeper{t: t, port: Port(t), Dir: Dir(t)}
	if err := os.Mkdir(filepath.Join(z.Dir, "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf("tickTime=%d\ninitLimit=20\nsyncLimit=8\ndataDir=%s/data\nclientPort=%d\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n"+
		"4lw.commands.whitelist=*\nmaxClientCnxns=0\n%s\n", ZooKeeperTick.Milliseconds(), z.Dir, z.port, strings.Join(lines, "\n"))
	if err := os.WriteFile(filepath.Join(z.Dir, "zoo.cfg"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	return z
}

func (z *ZooKeeper) spec(root string) Spec {
	z.t.Helper()
	java := Need(z.t, root, "java")
	jar := Need(z.t, root, "/usr/share/java/zookeeper.jar")
	return Spec{
		Name: "ZooKeeper", Path: java, Dir: z.Dir, Root: root,
		Args: []string{"-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", jar,
			"org.apache.zookeeper.server.quorum.QuorumPeerMain", filepath.Join(z.Dir, "zoo.cfg")},
		Ready: z.serves,
	}
}

// Addr is where clients connect to.
func (z *ZooKeeper) Addr() string { return fmt.Sprintf("127.0.0.1:%d", z.port) }

// Ask sends one of the commands of four letters.
func (z *ZooKeeper) Ask(ctx context.Context, command string) (string, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", z.Addr())
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(2 * time.Second))
	if _, err := io.WriteString(conn, command); err != nil {
		return "", err
	}
	b, err := io.ReadAll(conn)
	return string(b), err
}

// serves asks for the mode: a server that is in no quorum says that it is not serving.
func (z *ZooKeeper) serves(ctx context.Context) error {
	answer, err := z.Ask(ctx, "srvr")
	if err == nil && !strings.Contains(answer, "Mode: ") {
		err = errors.New(strings.TrimSpace(answer))
	}
	return err
}

// Version is what the server says of itself.
func (z *ZooKeeper) Version() string {
	z.t.Helper()
	answer, err := z.Ask(z.t.Context(), "srvr")
	if err != nil {
		z.t.Fatal(err)
	}
	line, _, _ := strings.Cut(answer, "\n")
	return strings.TrimPrefix(line, "Zookeeper version: ")
}

// Zxid is the newest transaction that the server has applied.
func (z *ZooKeeper) Zxid() int64 {
	z.t.Helper()
	answer, err := z.Ask(z.t.Context(), "srvr")
	var zxid int64
	if _, rest, ok := strings.Cut(answer, "Zxid: "); ok {
		_, err = fmt.Sscanf(rest, "0x%x", &zxid)
	}
	if err != nil {
		z.t.Fatal(err)
	}
	return zxid
}

// Lose kills the server, deletes all that it has stored, and starts it again.
func (z *ZooKeeper) Lose() {
	z.t.Helper()
	z.Kill()
	z.clear()
	z.Restart()
}

func (z *ZooKeeper) clear() {
	z.t.Helper()
	if err := os.RemoveAll(filepath.Join(z.Dir, "data", "version-2")); err != nil {
		z.t.Fatal(err)
	}
}

// Copy takes a copy of what the server has stored, and returns what kills the server, brings the copy back, and starts it again.
func (z *ZooKeeper) Copy() (restore func()) {
	z.t.Helper()
	saved := filepath.Join(Dir(z.t), "saved")
	z.Freeze()
	err := os.CopyFS(saved, os.DirFS(filepath.Join(z.Dir, "data")))
	z.Thaw()
	if err != nil {
		z.t.Fatal(err)
	}
	return func() {
		z.t.Helper()
		z.Kill()
		z.clear()
		if err := os.CopyFS(filepath.Join(z.Dir, "data", "version-2"), os.DirFS(filepath.Join(saved, "version-2"))); err != nil {
			z.t.Fatal(err)
		}
		z.Restart()
	}
}
