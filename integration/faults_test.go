package integration

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/internal/supervise"
)

const ttl = 2 * time.Second

// crew is some nodes of one group that work while something happens to them.
type crew struct {
	*place
	rnd       *rand.Rand
	resources []string
	nodes     []*process
	names     []string // of the nodes
	put       map[string][]string
	long      time.Duration // that some commands take
}

func newCrew(t *testing.T, nodes, resources int, long time.Duration) *crew {
	t.Helper()
	return newCrewOver(t, "", nodes, resources, long)
}

// newCrewOver uses the store with the URL instead of a file of its own; the group is one of its own.
func newCrewOver(t *testing.T, store string, nodes, resources int, long time.Duration) *crew {
	t.Helper()
	c := &crew{rnd: random(t), long: long, put: map[string][]string{}}
	for i := range resources {
		c.resources = append(c.resources, fmt.Sprintf("r%d", i))
	}
	c.place = newPlace(t, c.resources...)
	if store != "" {
		c.store, c.group = store, strings.ReplaceAll(t.Name(), "/", ".")
	}
	c.feed(3)
	c.begin(nodes)
	return c
}

// begin starts the nodes.
func (c *crew) begin(nodes int) {
	c.t.Helper()
	c.nodes, c.names = make([]*process, nodes), make([]string, nodes)
	c.t.Cleanup(func() {
		if c.t.Failed() {
			for i, n := range c.nodes {
				c.t.Logf("node %d said:\n%s", i, n.errs.String())
			}
		}
	})
	for i := range nodes {
		c.node(i)
	}
}

// node starts node i, under a new name.
func (c *crew) node(i int) {
	c.t.Helper()
	c.names[i] = fmt.Sprintf("n%d-%x", i, c.rnd.Uint32())
	c.nodes[i] = c.consume(c.resources, "--node", c.names[i], "--ttl", ttl.String(), "--drain", "3s",
		"--on-success", "move:done", "--", os.Args[0], workMode, c.log, "300", c.long.String()).start()
}

// waiting is how many files have not been handled, or not been moved yet.
func (c *crew) waiting() int {
	n := 0
	for _, r := range c.resources {
		n += len(c.place.names(r))
	}
	return n
}

// feed puts some files into each resource that has not enough of them.
func (c *crew) feed(most int) {
	c.t.Helper()
	for _, r := range c.resources {
		if len(c.place.names(r)) > 2*most {
			continue
		}
		for range c.rnd.IntN(most) + 1 {
			name := fmt.Sprintf("%05d", len(c.put[r]))
			c.place.put(r, name, "body of "+name)
			c.put[r] = append(c.put[r], name)
		}
	}
}

// victim picks a node: any, or one that runs a command at this moment.
func (c *crew) victim() *process {
	c.t.Helper()
	i := c.rnd.IntN(len(c.nodes))
	if c.rnd.IntN(3) == 0 {
		return c.nodes[i]
	}
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		working := map[int]string{}
		for _, n := range lines[note](c.t, filepath.Join(c.log, "notes")) {
			if n.What == "begin" {
				working[n.Pid] = n.Node
			} else {
				delete(working, n.Pid)
			}
		}
		for pid, node := range working {
			if j := slices.Index(c.names, node); j >= 0 && syscall.Kill(pid, 0) == nil {
				return c.nodes[j]
			}
		}
	}
	return c.nodes[i]
}

func (c *crew) pause(from, to time.Duration) {
	time.Sleep(from + time.Duration(c.rnd.Int64N(int64(to-from)))) // the schedule of the faults, not a synchronisation
}

// finish waits until everything is handled, stops the nodes and checks what was noted. Some command must have been ended in
// the way that the test is about, if it is about one.
func (c *crew) finish(by supervise.Why) {
	c.t.Helper()
	for before := c.waiting(); before > 0; {
		eventually(c.t, fmt.Sprintf("one of %d files is handled", before), time.Minute, func() bool { return c.waiting() < before })
		before = c.waiting()
	}
	for _, n := range c.nodes {
		n.signal(syscall.SIGTERM)
	}
	for _, n := range c.nodes {
		n.ends(0, 15*time.Second)
	}
	files := 0
	for _, names := range c.put {
		files += len(names)
	}
	killed := c.check(c.put)
	c.t.Logf("%d files, commands killed: %v", files, killed)
	if by != "" && killed[by] == 0 {
		c.t.Errorf("no command was killed because of %q: nothing was shown", by)
	}
}

// A node is killed at random moments, with whatever it does at the time, and started again.
func TestKill(t *testing.T) {
	t.Parallel()
	killRounds(t, newCrew(t, 3, 6, 2*ttl), 20, 200)
}

func killRounds(t *testing.T, c *crew, short, long int) {
	t.Helper()
	rounds := roundsOf(short, long)
	for i := 0; i < rounds || i < 10*rounds && !c.shown(supervise.Orphaned); i++ {
		c.pause(100*time.Millisecond, 1500*time.Millisecond)
		c.feed(6)
		n := c.victim()
		n.signal(syscall.SIGKILL)
		_ = n.Wait()
		c.pause(0, time.Second)
		c.node(slices.Index(c.nodes, n))
	}
	c.finish(supervise.Orphaned)
}

// A node is stopped for longer than the ttl, and goes on afterwards as if nothing had happened. Meanwhile others work what
// it had, and its commands must be gone before they do.
func TestFreeze(t *testing.T) {
	t.Parallel()
	freezeRounds(t, newCrew(t, 3, 6, 2*ttl), 5, 50)
}

func freezeRounds(t *testing.T, c *crew, short, long int) {
	t.Helper()
	rounds := roundsOf(short, long)
	for i := 0; i < rounds || i < 10*rounds && !c.shown(supervise.Distrusted); i++ {
		c.pause(500*time.Millisecond, 1500*time.Millisecond)
		c.feed(6)
		n := c.victim()
		n.signal(syscall.SIGSTOP)
		c.pause(ttl+500*time.Millisecond, 2*ttl)
		n.signal(syscall.SIGCONT)
	}
	c.finish(supervise.Distrusted)
}

func roundsOf(short, long int) int {
	if *soak {
		return long
	}
	return short
}
