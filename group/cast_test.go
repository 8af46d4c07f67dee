package group

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/backends/faultstore"
	"github.com/rebalancer-go/rebalancer/coord"
)

// cast is some processes of one group in a bubble, and who of them worked what and when. Several of them may have one
// node's name. It reports work of two processes on one resource at once, and of more nodes at once than may be active.
type cast struct {
	*world
	active int // how many processes may work at once; 0: all

	mu     sync.Mutex
	stints []*stint
	procs  []*proc
}

// stint is one call of a process's function.
type stint struct {
	p        *proc
	resource string
	fence    int64
	from, to time.Time // to is zero while it lasts
}

// proc is one process: a group with a way to the store of its own.
type proc struct {
	*running
	c     *cast
	label string
	fault *faultstore.Store
	dead  bool
	slow  time.Duration // that work goes on after a revoke
}

func castOf(t *testing.T, f func(t *testing.T, c *cast)) {
	t.Helper()
	bubble(t, func(t *testing.T, w *world) {
		c := &cast{world: w}
		defer c.end()
		f(t, c)
	})
}

// end stops all processes; what they return was looked at before.
func (c *cast) end() {
	for _, p := range c.procs {
		p.stop()
	}
	for _, p := range c.procs {
		if p.done != nil {
			<-p.done
		}
	}
}

// proc starts a process with the configuration of a node.
func (c *cast) proc(label string, cfg Config) *proc {
	c.t.Helper()
	p := &proc{c: c, label: label, fault: faultstore.New(c.store, nil)}
	cfg.Store, cfg.Source = p.fault, nil
	p.running = c.startRun(cfg, p.work)
	c.procs = append(c.procs, p)
	return p
}

// static is the configuration of a node with a static name.
func (c *cast) static(node string, resources ...string) Config {
	cfg := c.config(node, resources...)
	cfg.Static = true
	return cfg
}

func (p *proc) work(ctx context.Context, cl *rebalancer.Claim) error {
	s := p.c.begin(p, cl)
	<-ctx.Done()
	if p.slow > 0 {
		time.Sleep(p.slow)
	}
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	if s.to.IsZero() {
		s.to = time.Now()
	}
	return nil
}

func (c *cast) begin(p *proc, cl *rebalancer.Claim) *stint {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &stint{p: p, resource: cl.Resource, fence: cl.Fence, from: time.Now()}
	if p.dead {
		s.to = s.from
		return s
	}
	working := map[*proc]bool{p: true}
	for _, o := range c.stints {
		if o.to.IsZero() {
			working[o.p] = true
		}
		if o.resource == s.resource && o.to.IsZero() {
			c.t.Errorf("%s: %s begins while %s works", s.resource, p.label, o.p.label)
		}
		if o.resource == s.resource && o.fence >= s.fence && o.p != p {
			c.t.Errorf("%s: %s has fence %d, %s had %d before", s.resource, p.label, s.fence, o.p.label, o.fence)
		}
	}
	if c.active > 0 && len(working) > c.active {
		c.t.Errorf("%s: %d processes work at once", s.resource, len(working))
	}
	c.stints = append(c.stints, s)
	return s
}

// crash ends a process as far as anybody can see: it works nothing any more, and the store hears nothing of it.
func (p *proc) crash() {
	p.cut()
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	p.dead = true
	for _, s := range p.c.stints {
		if s.p == p && s.to.IsZero() {
			s.to = time.Now()
		}
	}
	p.stop()
}

// cut parts a process from the store, and nobody else of its name.
func (p *proc) cut() {
	p.fault.SetPlan(faultstore.Always(faultstore.Match{}, faultstore.Fault{Before: true, Hang: true}))
}

func (p *proc) mend() { p.fault.SetPlan(nil) }

// ends waits for the end of a process and returns its error.
func (p *proc) ends() error {
	p.stop()
	return p.ended()
}

func (p *proc) ended() error {
	err := <-p.done
	p.done = nil
	return err
}

// works are the sorted resources that a process works at the moment.
func (p *proc) works() []string {
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	var out []string
	for _, s := range p.c.stints {
		if s.p == p && s.to.IsZero() {
			out = append(out, s.resource)
		}
	}
	slices.Sort(out)
	return out
}

// within polls, in virtual time.
func (c *cast) within(d time.Duration, what string, ok func() bool) time.Duration {
	c.t.Helper()
	began := time.Now()
	for !ok() {
		if time.Since(began) > d {
			c.t.Fatalf("not after %v: %s; %s", d, what, c)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return time.Since(began)
}

// share waits until processes work so many resources each.
func (c *cast) share(d time.Duration, want map[*proc]int) time.Duration {
	c.t.Helper()
	return c.within(d, fmt.Sprintf("shares %v", want), func() bool {
		for p, n := range want {
			if len(p.works()) != n {
				return false
			}
		}
		return true
	})
}

// String says who works what, and what the nodes wait for.
func (c *cast) String() string {
	s := "who works what:"
	for _, p := range c.procs {
		st := p.Status()
		s += fmt.Sprintf(" %s %q (%s %s)", p.label, p.works(), st.State, st.Waiting)
	}
	return s
}

// begun are the stints that began after a moment, without those of some processes.
func (c *cast) begun(after time.Time, but ...*proc) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, s := range c.stints {
		if s.from.After(after) && !slices.Contains(but, s.p) {
			out = append(out, s.p.label+" "+s.resource)
		}
	}
	return out
}

// nothingMoved fails when a process but the given ones began to work something after a moment.
func (c *cast) nothingMoved(after time.Time, but ...*proc) {
	c.t.Helper()
	if b := c.begun(after, but...); len(b) > 0 {
		c.t.Errorf("moved: %v", b)
	}
}

// operator writes what a person asks for.
func (c *cast) operator(puts map[string][]byte, deletes ...string) {
	c.t.Helper()
	s, err := c.store.Open(c.t.Context(), backends.SessionOptions{Group: "g", Node: "operator", TTL: time.Hour})
	if err != nil {
		c.t.Fatal(err)
	}
	t := backends.Txn{Deletes: deletes, Wake: []string{coord.CoordinatorAddress}}
	for k, v := range puts {
		t.Puts = append(t.Puts, backends.Put{Key: k, Value: v})
	}
	reply, err := s.Commit(c.t.Context(), backends.CommitRequest{Incarnation: s.Opened().Incarnation, Txns: []backends.Txn{t}})
	if err != nil || reply.Results[0].Err != nil {
		c.t.Fatal(err, reply)
	}
	_ = s.Close(c.t.Context())
}

// present tells whether a key is in the store.
func (c *cast) present(key string) bool {
	c.t.Helper()
	s, err := c.store.Open(c.t.Context(), backends.SessionOptions{Group: "g", Node: "operator", TTL: time.Hour})
	if err != nil {
		c.t.Fatal(err)
	}
	reply, err := s.Read(c.t.Context(), backends.ReadRequest{Keys: []string{key}})
	if err != nil {
		c.t.Fatal(err)
	}
	_ = s.Close(c.t.Context())
	return len(reply.Entries) == 1
}

// control writes what an operator asks for below a key of coord.
func (c *cast) control(key string, v coord.Control) {
	c.t.Helper()
	c.operator(map[string][]byte{key: coord.EncodeControl(v)})
}
