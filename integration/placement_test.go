package integration

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/backends/sqlite"
	"github.com/rebalancer-go/rebalancer/group"
)

// nodeMode makes the test binary one node of a group: its arguments are the file of the store, the folder of the log, the
// node's name, "static" or "", the greatest number of active nodes, the number of resources, and the ttl. It ends with SIGTERM.
const nodeMode = "node"

// supersededCode is how a node ends that a newer process of its name replaced.
const supersededCode = 7

func node(args []string) int {
	var active, resources int
	if _, err := fmt.Sscan(args[4], &active); err != nil {
		return fail(err)
	}
	if _, err := fmt.Sscan(args[5], &resources); err != nil {
		return fail(err)
	}
	ttl, err := time.ParseDuration(args[6])
	if err != nil {
		return fail(err)
	}
	store, err := sqlite.Open(args[0])
	if err != nil {
		return fail(err)
	}
	defer store.Close()
	var list []string
	for i := range resources {
		list = append(list, fmt.Sprintf("r%02d", i))
	}
	g, err := group.New(group.Config{
		Name: "g", Store: store, Resources: group.Static(list...), Node: args[2], Static: args[3] == "static", MaxActive: active,
		TTL: ttl, Drain: time.Second, Grace: time.Second, Tuning: group.Tuning{Debounce: 200 * time.Millisecond},
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return fail(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	folder := args[1]
	err = g.Run(ctx, func(ctx context.Context, c *rebalancer.Claim) error { return hold(ctx, folder, c) })
	switch {
	case errors.Is(err, group.ErrSuperseded):
		return supersededCode
	case err != nil:
		return fail(err)
	}
	return 0
}

// hold works a resource: it notes every 50 ms that it does.
func hold(ctx context.Context, folder string, c *rebalancer.Claim) error {
	n := note{Pid: os.Getpid(), Node: c.Node, Resource: c.Resource, Fence: c.Fence}
	if err := n.write(folder, "begin"); err != nil {
		return err
	}
	for ctx.Err() == nil {
		if err := n.write(folder, "work"); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
	return n.write(folder, "end")
}

// team is some nodes of one group.
type team struct {
	*place
	resources int
	active    int
	ttl       time.Duration
	frozen    map[int]bool // processes that were frozen and thawed
}

func newTeam(t *testing.T, resources int) *team {
	return &team{place: newPlace(t), resources: resources, ttl: ttl, frozen: map[int]bool{}}
}

func (m *team) start(name string, static bool) *process {
	m.t.Helper()
	kind := ""
	if static {
		kind = "static"
	}
	c := exec.Command(os.Args[0], nodeMode, strings.TrimPrefix(m.store, "sqlite://"), m.log, name, kind, fmt.Sprint(m.active), fmt.Sprint(m.resources), m.ttl.String())
	pr := &process{Cmd: c, t: m.t}
	c.Stderr = &pr.errs
	return pr.start()
}

// notes are what the nodes wrote down so far.
func (m *team) notes() []note {
	m.t.Helper()
	return lines[note](m.t, filepath.Join(m.log, "notes"))
}

// holders are the processes that work each resource, by the last notes of the living.
func (m *team) holders() map[string]int {
	m.t.Helper()
	h := map[string]int{}
	for _, n := range m.notes() {
		if n.What == "end" {
			if h[n.Resource] == n.Pid {
				delete(h, n.Resource)
			}
			continue
		}
		h[n.Resource] = n.Pid
	}
	for r, pid := range h {
		if syscall.Kill(pid, 0) != nil {
			delete(h, r)
		}
	}
	return h
}

// counts are how many resources each of the processes works.
func (m *team) counts(ps ...*process) []int {
	h := m.holders()
	out := make([]int, len(ps))
	for i, p := range ps {
		for _, pid := range h {
			if pid == p.Process.Pid {
				out[i]++
			}
		}
	}
	return out
}

// owners are the nodes that each resource was with, in order.
func (m *team) owners() map[string][]string {
	o := map[string][]string{}
	for _, n := range m.notes() {
		if l := o[n.Resource]; n.What == "begin" && (len(l) == 0 || l[len(l)-1] != n.Node) {
			o[n.Resource] = append(l, n.Node)
		}
	}
	return o
}

// noOverlap checks that the work of a resource, as each process noted it every 50 ms, went from one claim to the next, and never
// back. A function in a process that was frozen in the middle of it goes on for one note before its context ends: that is
// what fences are for, and commands are killed for.
func (m *team) noOverlap() {
	m.t.Helper()
	last, woke := map[string]note{}, map[string]bool{}
	for _, n := range m.notes() {
		k := n.Resource
		if m.active == 1 && n.What != "end" { // one process at a time for all of them
			if l := last[""]; l.Pid != 0 && l.Pid != n.Pid && n.What == "work" {
				m.t.Errorf("two processes work: %+v after %+v", n, l)
			}
		}
		l := last[k]
		if n.What != "end" && n.Fence < l.Fence {
			if once := fmt.Sprint(n.Pid, k); m.frozen[n.Pid] && !woke[once] {
				woke[once] = true
				continue
			}
			m.t.Errorf("work under an older claim: %+v after %+v", n, l)
		}
		if n.Fence >= l.Fence {
			last[k] = n
		}
		if n.What == "begin" {
			last[""] = n
		}
	}
}

// rolling restarts every node, one after the other. With static names nothing moves; else each resource at most twice: away and, most of
// them, back to the successor.
func (m *team) rolling(static bool) {
	const size = 8
	m.ttl = 3 * ttl // a session that ends because the machine is busy moves more
	var ps []*process
	name := func(i, round int) string {
		if static {
			return fmt.Sprintf("n%d", i)
		}
		return fmt.Sprintf("n%d-%d", i, round)
	}
	for i := range size {
		ps = append(ps, m.start(name(i, 0), static))
	}
	even := func() bool {
		c := m.counts(ps...)
		sum := 0
		for _, n := range c {
			sum += n
		}
		return sum == m.resources && slices.Max(c)-slices.Min(c) <= 1
	}
	eventually(m.t, "all have their share", 20*time.Second, even)
	before := m.owners()
	for i := range size {
		ps[i].signal(syscall.SIGTERM)
		ps[i].ends(0, 10*time.Second)
		ps[i] = m.start(name(i, 1), static)
		eventually(m.t, "all have their share again", 20*time.Second, even)
	}
	all, may := 0, 2
	if static {
		may = 0
	}
	for r, l := range m.owners() {
		moved := len(l) - len(before[r])
		if moved > may {
			m.t.Errorf("%s moved %d times, at most %d are allowed: %v", r, moved, may, l)
		}
		all += moved
	}
	m.t.Logf("%d moves of %d resources", all, m.resources)
	m.noOverlap()
	for _, p := range ps {
		p.signal(syscall.SIGTERM)
	}
	for _, p := range ps {
		p.ends(0, 10*time.Second)
	}
}

func TestRollingRestartOfStaticNodes(t *testing.T) {
	t.Parallel()
	newTeam(t, 16).rolling(true)
}

func TestRollingRestart(t *testing.T) {
	t.Parallel()
	newTeam(t, 19).rolling(false) // three nodes have one more
}

// The active one of five is killed, again and again.
func TestSingleActiveNode(t *testing.T) {
	t.Parallel()
	rounds := 5
	if *soak {
		rounds = 20
	}
	m := newTeam(t, 3)
	m.active = 1
	var ps []*process
	for i := range 5 {
		ps = append(ps, m.start(fmt.Sprintf("n%d", i), false))
	}
	worker := func() int {
		return slices.Index(m.counts(ps...), m.resources)
	}
	eventually(t, "one works all", 20*time.Second, func() bool { return worker() >= 0 })
	for k := range rounds {
		i := worker()
		ps[i].signal(syscall.SIGKILL)
		began := time.Now()
		_ = ps[i].Wait()
		eventually(t, "the next one works all", 20*time.Second, func() bool { return worker() >= 0 })
		t.Logf("node %d was killed; node %d works all after %v", i, worker(), time.Since(began).Round(time.Millisecond))
		ps[i] = m.start(fmt.Sprintf("n%d-%d", i, k), false)
	}
	m.noOverlap()
}
