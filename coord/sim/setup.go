package sim

import (
	"fmt"

	"github.com/rebalancer-go/rebalancer/coord"
)

// NodeSetup describes one place at which processes of the group run, one after the other.
type NodeSetup struct {
	Name         string
	Clock        nodeClock
	Static       []string
	Priority     int
	MaxResources int
	StaticID     bool // the name outlives its processes
	Weight       int
	Labels       map[string]string
	Formats      []int // the newest format that its processes read, one after the other, and all after the last; none: the library's
	Begins       vtime // when its first process starts
}

// Setup describes a group and how its surroundings behave while nothing is wrong.
type Setup struct {
	Seed      int64
	Nodes     []NodeSetup
	Resources []string
	Placement
	Mode      coord.Mode
	Origin    coord.Origin
	TTL       vtime
	ListEvery vtime
	Debounce  vtime
	Hints     bool
	Fresh     bool  // the store is new, and whether it was emptied cannot be told
	Latency   vtime // one way, at most
	Opening   vtime // of a source, at most
	Drain     vtime // of handlers, at most; Stuck is told after twice this
	Sloppy    vtime // how late a tick may come
	Without   coord.Guards
	Store     StoreGuards // taken out
	HintsOnly bool        // polling tells little, see store
	Heal      vtime       // when the faults stop
	Proof     bool        // the store can prove the death of a process
	Burst     vtime       // all faults fall within this time, and whoever leaves stays away; 0: any time
	Kinds     []weighted  // faults to draw from; nil: all that go with the setup
	Bound     vtime       // to settle in after the last fault; 0: what the promises allow
}

// NewSetup draws a group from a seed.
func NewSetup(seed int64) Setup {
	c := chance(mix(uint64(seed))).of("setup")
	s := Setup{Seed: seed, TTL: pick(c.of("ttl"), 3*sec, 6*sec, 10*sec, 30*sec)}
	s.Mode = pick(c.of("mode"), coord.ResourceBarrier, coord.ResourceBarrier, coord.GlobalBarrier)
	s.Origin = pick(c.of("origin"), coord.OriginStatic, coord.OriginRegistered, coord.OriginDiscovered)
	s.Hints = c.of("hints").percent(75)
	s.Fresh = c.of("fresh").percent(20)
	s.Latency = pick(c.of("latency"), ms/2, 2*ms, 20*ms, s.TTL/60)
	s.Opening = pick(c.of("opening"), ms, 10*ms, s.TTL/10)
	s.Drain = pick(c.of("drain"), 0, 10*ms, s.TTL/10, s.TTL/3)
	s.Sloppy = pick(c.of("sloppy"), 0, ms, 20*ms)
	s.ListEvery = pick(c.of("every"), s.TTL/6, s.TTL/3)
	s.Debounce = pick(c.of("debounce"), sec, s.TTL/6)
	for i := range 1 + c.of("resources").below(20) {
		s.Resources = append(s.Resources, fmt.Sprintf("r%02d", i))
	}
	static := c.of("static ids").percent(30)
	s.Proof = c.of("proof").percent(40)
	priorities := c.of("priorities").percent(25)
	for i := range 2 + c.of("nodes").below(5) {
		s.Nodes = append(s.Nodes, s.newNode(c.of("node", i), int(i), priorities))
		s.Nodes[i].StaticID = static && c.of("static id", i).percent(75)
	}
	s.Heal = s.TTL * c.of("length").between(10, 40)
	s.place(c.of("placement"))
	return s
}

func (s *Setup) newNode(c chance, i int, priorities bool) NodeSetup {
	n := NodeSetup{Name: fmt.Sprintf("n%d", i+1)}
	n.Clock = nodeClock{offset: c.of("offset").below(1000 * sec), ppm: c.of("rate").between(-maxDrift, maxDrift+1)}
	n.Static = s.Resources
	if c.of("differs").percent(25) {
		n.Static = nil
		for j, r := range s.Resources {
			if c.of("lists", int64(j)).percent(70) {
				n.Static = append(n.Static, r)
			}
		}
	}
	if priorities {
		n.Priority = int(c.of("priority").below(3))
	}
	if c.of("limited").percent(15) {
		n.MaxResources = 1 + int(c.of("most").below(int64(len(s.Resources))))
	}
	if c.of("late").percent(30) {
		n.Begins = c.of("begins").below(s.TTL * 4)
	}
	return n
}

// config is the configuration of a machine for the life-th process at place i.
func (s *Setup) config(i, life int, name string, static []string) coord.Config {
	n := &s.Nodes[i]
	newest := 0
	if len(n.Formats) > 0 {
		newest = n.Formats[min(life-1, len(n.Formats)-1)]
	}
	return coord.Config{
		Group: "g", Node: name, Instance: fmt.Sprintf("%s-%d-%d", n.Name, s.Seed, life),
		Mode: s.Mode, Origin: s.Origin, Static: static,
		TTL: coord.Duration(s.TTL), Debounce: coord.Duration(s.Debounce), DebounceMax: coord.Duration(3 * s.Debounce),
		ListEvery: coord.Duration(s.ListEvery), FormatMax: newest,
		Priority: n.Priority, MaxResources: n.MaxResources, StaticID: n.StaticID, Weight: n.Weight, Labels: n.Labels,
		Measure: true, MaxActive: s.MaxActive, FailBack: s.FailBack, MaxMoving: s.MaxMoving, MaxMovingNode: s.MaxMovingNode,
		Seed: uint64(chance(mix(uint64(s.Seed))).of("machine", int64(i), int64(life))), Without: s.Without, History: true,
	}.WithDefaults()
}
