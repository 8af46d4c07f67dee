//go:build linux

package files

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/internal/testserver"
)

// groups are the two groups of processes: one knows files by their stability, the other by done-files. Each has resources of its own.
func groups(t *testing.T, run func(t *testing.T, c *crew, rnd *rand.Rand)) {
	t.Helper()
	store := "redis://" + testserver.StartRedis(t, testserver.Redis, "--appendonly", "yes", "--appendfsync", "always").Addr()
	for kind, start := range places() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			all := map[string][]string{"stable": nil, "done": nil}
			var resources []string
			for g := range all {
				for i := range 4 {
					all[g] = append(all[g], fmt.Sprintf("%s%d", g, i))
				}
				resources = append(resources, all[g]...)
			}
			p := start(t, resources)
			for g, resources := range all {
				t.Run(g, func(t *testing.T) {
					t.Parallel()
					done := ""
					if g == "done" {
						done = ".done"
					}
					run(t, newCrew(t, kind+"-"+g, store, p, done, resources), random(t))
				})
			}
		})
	}
}

// TestUploads: nothing fails, and each file is handled once.
func TestUploads(t *testing.T) {
	t.Parallel()
	groups(t, func(t *testing.T, c *crew, rnd *rand.Rand) {
		nodes := []*process{c.join(""), c.join("")}
		n := 24
		if *soak {
			n = 1000
		}
		for c.uploads.made < n {
			c.uploads.some(rnd, 8)
			time.Sleep(time.Duration(rnd.IntN(500)) * time.Millisecond) // the pace of the uploads
		}
		a := c.all(2 * time.Minute)
		for _, p := range nodes {
			p.leave()
		}
		if a.again > 0 && len(a.gone) == 0 {
			t.Errorf("%d handled again, and nothing failed", a.again)
		}
		if len(a.gone) > 0 {
			t.Log("a node lost its session: the machine is too busy for the ttl")
		}
		t.Logf("%d files, %d versions handled", c.uploads.made, len(a.ended))
	})
}

// TestKilled: a process dies at each step in turn, and at any moment; nothing is lost, nothing is handled by two at once, and only what was in flight
// is handled again.
func TestKilled(t *testing.T) {
	t.Parallel()
	groups(t, func(t *testing.T, c *crew, rnd *rand.Rand) {
		deck := append(points(), "anywhere")
		if !*soak { // the two groups share them
			deck = slices.DeleteFunc(deck, func(p string) bool { return (slices.Index(points(), p)%2 == 0) == (c.uploads.done == "") })
		}
		most := len(deck)
		if *soak {
			most = *rounds
		}
		nodes := []*process{c.join(""), c.join("")}
		reached := map[string]int{}
		for round := range most {
			if round%len(deck) == 0 {
				rnd.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
			}
			c.uploads.some(rnd, 6)
			point := deck[round%len(deck)]
			if point == "anywhere" {
				i := rnd.IntN(len(nodes))
				time.Sleep(time.Duration(rnd.IntN(1500)) * time.Millisecond) // the schedule of the faults
				nodes[i].kill()
				nodes[i] = c.join("")
				reached[point]++
				continue
			}
			for try := 0; try < 5; try++ { // the others may have been faster
				if c.victim(rnd, point).dies(10 * time.Second) {
					reached[point]++
					break
				}
				c.uploads.some(rnd, 8)
			}
		}
		a := c.all(2 * time.Minute)
		for _, p := range nodes {
			p.leave()
		}
		for _, point := range deck {
			if reached[point] == 0 {
				t.Errorf("nobody died at %q", point)
			}
		}
		t.Logf("%d files, %d versions handled, %d again; deaths %v", c.uploads.made, len(a.ended), a.again, reached)
	})
}

// victim is a node that joins the others to die at a point.
func (c *crew) victim(rnd *rand.Rand, point string) *process {
	times := 1 + rnd.IntN(2)
	if point == "opening" { // there may be one resource for it
		times = 1
	}
	return c.join(fmt.Sprintf("%s:%d", point, times))
}
