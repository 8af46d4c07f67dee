package coord

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// restarts is a group as it stands in the store, while its nodes are restarted under other names. Every plan is another coordinator's.
type restarts struct {
	t         *testing.T
	names     []string
	resources []string
	members   map[string]memberInfo
	entries   map[string]published
	gen       int64
	moves     map[string]int // by resource
	where     map[string]string
}

func newRestarts(t *testing.T, resources int) *restarts {
	g := &restarts{t: t, members: map[string]memberInfo{}, entries: map[string]published{}, moves: map[string]int{}, where: map[string]string{}}
	for i := range resources {
		g.resources = append(g.resources, fmt.Sprintf("r%03d", i))
	}
	return g
}

func (g *restarts) join(name string) {
	g.names = append(g.names, name)
	g.members[name] = memberInfo{Member: Member{Node: name, Weight: 1}, version: 9}
	g.plan()
}

func (g *restarts) leave(name string) {
	g.leaves(name)
	g.plan()
	g.ended(name)
}

func (g *restarts) leaves(name string) {
	g.names = slices.DeleteFunc(g.names, func(n string) bool { return n == name })
	mi := g.members[name]
	mi.Leaving = true
	g.members[name] = mi
}

func (g *restarts) ended(name string) {
	delete(g.members, name)
	g.plan()
}

// plan has a new coordinator plan, from what stands in the store, and writes it down there.
func (g *restarts) plan() {
	g.t.Helper()
	m := joined(ResourceBarrier)
	m.cfg.Origin, m.cfg.Node = OriginRegistered, "somebody"
	m.elected(4)
	l := &m.lead
	l.members, l.entries, l.resources = g.members, map[string]published{}, g.resources
	for node, e := range g.entries { // each by itself
		puts := assignmentPuts(node, e.value)
		a, err := DecodeAssignment([]Entry{{Key: puts[0].Key, Value: puts[0].Value}})
		if err != nil {
			g.t.Fatal(err)
		}
		l.entries[node] = published{version: e.version, value: a}
	}
	p := m.planAll()
	g.gen++
	g.check(p)
	set := map[string]bool{}
	for node := range p.shares { // into a set
		set[node] = true
	}
	for node := range g.entries { // into a set
		set[node] = true
	}
	after := map[string]published{}
	for _, node := range sortedKeys(set) {
		old := g.entries[node]
		switch a, write := m.entryFor(node, p, g.gen); {
		case !write:
			after[node] = old
		case a.Epoch != 0:
			clear(a.Leaving) // all is given back before the next plan
			after[node] = published{version: old.version + 1, value: a}
		}
	}
	g.entries = after
	for r, node := range p.next { // each by itself
		if was := g.where[r]; was != "" && was != node {
			g.moves[r]++
		}
		g.where[r] = node
	}
}

// check: each single plan is balanced within one, and has the fewest moves.
func (g *restarts) check(p *plan) {
	g.t.Helper()
	if len(g.names) == 0 {
		return
	}
	low, over := len(g.resources)/len(g.names), len(g.resources)%len(g.names)
	moves, held := 0, []int(nil)
	for r, node := range p.next { // counts
		if was := g.where[r]; was != "" && was != node {
			moves++
		}
	}
	stay := 0 // the most that can
	for _, n := range g.names {
		if c := len(p.shares[n]); c < low || c > low+1 {
			g.t.Fatalf("%d resources on %d nodes: %s has %d", len(g.resources), len(g.names), n, c)
		}
		had := 0
		for _, node := range g.where { // counts
			if node == n {
				had++
			}
		}
		held = append(held, had)
	}
	slices.Sort(held)
	slices.Reverse(held)
	for i, had := range held {
		most := low
		if i < over {
			most++
		}
		stay += min(had, most)
	}
	if len(g.where) > 0 && moves != len(g.where)-stay {
		g.t.Fatalf("%d resources on %d nodes: %d moves, %d are enough", len(g.resources), len(g.names), moves, len(g.where)-stay)
	}
}

// most is the greatest number of moves of a resource since it was last asked.
func (g *restarts) most() int {
	most := 0
	for _, n := range g.moves { // the greatest
		most = max(most, n)
	}
	clear(g.moves)
	return most
}

// Every node is restarted under another name, one after the other, each plan by another coordinator: no resource moves more than twice,
// whatever the numbers and the order, and again when all are restarted once more.
func TestRollingRestartMovesTwice(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	for size := 2; size <= 12; size++ {
		most := 5*size + 3
		if size > 7 {
			most = 3*size + 3
		}
		for n := range most + 1 {
			rng := rand.New(rand.NewPCG(seed, uint64(size*1000+n)))
			g := newRestarts(t, n)
			for i := range size {
				g.join(fmt.Sprintf("%d-%02d", rng.IntN(10), i))
			}
			for round, order := range []string{"as they joined", "reverse", "random", "random, some in one plan"} {
				g.most()
				old := slices.Clone(g.names)
				switch order {
				case "reverse":
					slices.Reverse(old)
				case "random", "random, some in one plan":
					rng.Shuffle(size, func(i, j int) { old[i], old[j] = old[j], old[i] })
				}
				for i, name := range old {
					next := fmt.Sprintf("%d-%02d-%d", rng.IntN(10), i, round)
					if round == 3 && rng.IntN(2) == 0 {
						g.leaves(name)
						g.join(next)
						g.ended(name)
						continue
					}
					g.leave(name)
					g.join(next)
				}
				if most := g.most(); most > 2 {
					t.Errorf("seed %d: %d resources on %d nodes, %s: one moves %d times", seed, n, size, order, most)
				}
			}
		}
	}
}
