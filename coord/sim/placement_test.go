package sim

import (
	"flag"
	"testing"

	"github.com/rebalancer-go/rebalancer/coord"
)

var eligibleFlag = flag.Int64("eligible", 200, "how many worlds to run in which nodes differ in what they may take, from -first on")

// differing draws a group with few resources, most of which ask for a label, so that nodes differ in what they may take and some may take
// nothing.
func differing(seed int64) Setup {
	s := NewSetup(seed)
	c := s.chance().of("differing")
	s.Origin = coord.OriginRegistered
	s.Resources = s.Resources[:min(int64(len(s.Resources)), 2+c.of("resources").below(7))]
	s.unplaced()
	s.MaxActive, s.FailBack, s.Acts = int(c.of("active").below(4)), c.of("back").percent(40), c.of("acts").percent(30)
	weights, loads := c.of("weights").percent(20), c.of("loads").percent(20)
	for i := range s.Nodes {
		n, x := &s.Nodes[i], c.of("node", int64(i))
		n.Labels = map[string]string{"zone": pick(x.of("zone"), "a", "b", "c")}
		n.Priority = int(x.of("priority").below(3))
		n.MaxResources = min(n.MaxResources, len(s.Resources))
		if weights {
			n.Weight = 1 + int(x.of("weight").below(3))
		}
	}
	s.Registered = map[string]coord.Registration{}
	for _, r := range s.Resources {
		x, v := c.of("resource").of(r), coord.Registration{Name: r}
		if x.of("require").percent(60) {
			v.Require = []string{"zone=" + pick(x.of("required"), "a", "a", "b")}
		} else if x.of("prefer").percent(70) {
			v.Prefer = []string{"zone=" + pick(x.of("preferred"), "a", "b", "c")}
			if x.of("two").percent(50) {
				v.Prefer = append(v.Prefer, "zone="+pick(x.of("or"), "a", "b", "c"))
			}
		}
		if loads {
			v.Weight = pick(x.of("load"), 1, 2, 5)
		}
		s.Registered[r] = v
	}
	return s
}

// TestWorldsWhereNodesDiffer: which nodes are active, and what goes where it should be, in worlds in which that is hard to tell.
func TestWorldsWhereNodesDiffer(t *testing.T) {
	t.Parallel()
	bad := 0
	for seed := *firstFlag; seed < *firstFlag+*eligibleFlag && bad < 3; seed++ {
		s := differing(seed)
		faults := NewSchedule(&s)
		if v := NewWorld(s, faults).Run(); v != nil {
			bad++
			t.Errorf("%s", Report(s, faults, v))
			t.Errorf("of other worlds than TestWorlds; replay: go test ./coord/sim -run %s -first=%d -eligible=1", t.Name(), seed)
		}
	}
}
