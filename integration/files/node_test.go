//go:build linux

package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/backends/redis"
	"github.com/rebalancer-go/rebalancer/group"
)

// nodeMode makes the test binary one node of a group: its argument is the JSON of a nodeConfig. It ends in good order with SIGTERM.
const nodeMode = "node"

// nodeConfig is what a node is told.
type nodeConfig struct {
	Name, Group, Store string
	Resources          []string
	Ledger             string // a folder
	Place              place
	DoneFile           string
}

const (
	// ttl is how long the work of a process that was killed waits for others.
	ttl = 4 * time.Second
	// stableFor is less than what an upload may pause where there are done-files, and far more than it pauses where there are none.
	stableFor = time.Second
)

// nodeState is what a node knows of what it does.
type nodeState struct {
	cfg    nodeConfig
	crash  *crash
	ledger *ledger
	put    func(ctx context.Context, resource, name string, body []byte) error

	mu     sync.Mutex
	worked map[*rebalancer.Message]line // ended, not settled yet
}

func node(args []string) int {
	if err := run(args); err != nil {
		fmt.Fprintln(os.Stderr, "node:", err)
		return 1
	}
	return 0
}

func run(args []string) error {
	n := &nodeState{worked: map[*rebalancer.Message]line{}}
	err := json.Unmarshal([]byte(args[0]), &n.cfg)
	if err == nil {
		n.crash, err = newCrash()
	}
	if err != nil {
		return err
	}
	n.ledger = &ledger{folder: n.cfg.Ledger}
	n.put = n.cfg.Place.put
	src, err := n.cfg.Place.source(n.cfg.DoneFile)
	if err != nil {
		return err
	}
	store, err := redis.Open(n.cfg.Store)
	if err != nil {
		return err
	}
	defer store.Close()
	g, err := group.New(group.Config{
		Name: n.cfg.Group, Store: store, Resources: group.Static(n.cfg.Resources...), Source: watched{src, n}, Node: n.cfg.Name,
		TTL: ttl, Drain: 2 * time.Second, Grace: 2 * time.Second, Tuning: group.Tuning{Debounce: 100 * time.Millisecond},
		Retry: group.Retry{Max: 500 * time.Millisecond}, OnEvent: n.event, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	return errors.Join(g.Consume(ctx, n.handle), src.Close())
}

// event writes down what is lost without a death: somebody else may do it again.
func (n *nodeState) event(e group.Event) {
	if e.Kind == group.KindLost || e.Kind == group.KindFenced || e.Kind == group.KindStuck {
		n.write(line{What: "lost", Resource: e.Resource})
	}
}

func (n *nodeState) write(l line) {
	l.Node, l.Pid = n.cfg.Name, os.Getpid()
	if err := n.ledger.write(l); err != nil {
		fmt.Fprintln(os.Stderr, "ledger:", err)
		os.Exit(3)
	}
}

// handle reads a file and checks that it is whole.
func (n *nodeState) handle(ctx context.Context, m *rebalancer.Message) error {
	lock, err := os.OpenFile(filepath.Join(n.cfg.Ledger, lockName(m.Resource, m.Key)), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	l := line{Resource: m.Resource, Name: m.Key, Fence: m.Fence}
	if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		l.What = "overlap"
		n.write(l)
		return errors.New("somebody else has this file")
	}
	b, err := n.read(ctx, m)
	if err != nil {
		l.What, l.Text = "failed", err.Error()
		n.write(l)
		return err
	}
	h, err := parse(b)
	l.Version, l.What = h.Version, "end"
	if err != nil {
		l.What, l.Text = "partial", err.Error()
		n.write(l)
		return err
	}
	n.write(l)
	n.mu.Lock()
	n.worked[m] = l
	n.mu.Unlock()
	n.crash.at("handled")
	return nil
}

// read reads a body. One that is to be replaced is replaced in the middle.
func (n *nodeState) read(ctx context.Context, m *rebalancer.Message) ([]byte, error) {
	rc, err := m.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer rc.Close()
	begin := make([]byte, m.Size/2)
	if _, err := io.ReadFull(rc, begin); err != nil {
		return nil, err
	}
	if h, _ := parse(begin); h.next() != "" {
		ctx := context.WithoutCancel(ctx) // the sender's, not the handler's
		err := n.put(ctx, m.Resource, m.Key, body(h.next(), h.Length+1))
		if done, ok := strings.CutPrefix(n.cfg.DoneFile, "*"); ok && err == nil { // one that is older than its file does not count
			err = n.put(ctx, m.Resource, m.Key+done, nil)
		}
		if err != nil {
			return nil, fmt.Errorf("replace: %w", err)
		}
	}
	rest, err := io.ReadAll(rc)
	return append(begin, rest...), err
}

// settled writes down what became of a message.
func (n *nodeState) settled(m *rebalancer.Message) {
	n.mu.Lock()
	l, ok := n.worked[m]
	delete(n.worked, m)
	n.mu.Unlock()
	if ok {
		l.What = "settled"
		n.write(l)
	}
}
