package sim

import (
	"fmt"
	"slices"
	"sort"
)

// Fault is one thing that goes wrong, or changes, at a given time. A schedule of them with a seed is a world.
type Fault struct {
	ID   int64 // names the fault: what is left to chance in it is drawn from this
	At   vtime
	Dur  vtime // how long it lasts; for Crash and Leave until a new process starts
	Kind FaultKind
	Node int   // the place it concerns, -1 for all
	Arg  int64 // see the kinds
	// Stands: what an operator asked for is not taken back.
	Stands bool
}

// FaultKind says what goes wrong.
type FaultKind string

// The kinds of faults.
const (
	FaultCrash     FaultKind = "crash"      // the process dies; Arg odd: another name next time
	FaultLeave     FaultKind = "leave"      // the node leaves
	FaultFreeze    FaultKind = "freeze"     // the process stands still
	FaultPartition FaultKind = "partition"  // nothing passes between the node and the store
	FaultLoss      FaultKind = "loss"       // Arg percent of requests and replies are lost
	FaultLag       FaultKind = "lag"        // messages take up to Arg longer
	FaultOutage    FaultKind = "outage"     // the store answers nobody; Arg odd: it refuses at once
	FaultHints     FaultKind = "hints"      // Arg percent of the hints are lost, as many doubled
	FaultSnapshot  FaultKind = "snapshot"   // the store's data as a failover may bring it back
	FaultRollback  FaultKind = "rollback"   // the store goes back to the latest snapshot; Arg: skew of the other server's clock
	FaultWipe      FaultKind = "wipe"       // the store is emptied; Arg as above
	FaultStep      FaultKind = "step"       // the store's clock steps by Arg
	FaultAppear    FaultKind = "appear"     // resource Arg comes
	FaultVanish    FaultKind = "vanish"     // resource Arg goes
	FaultListError FaultKind = "list error" // discovery fails
	FaultFlap      FaultKind = "flap"       // discovery misses Arg percent of the names
	FaultOpen      FaultKind = "open"       // sources cannot be opened; Arg: only resource Arg, -1: any
	FaultStuck     FaultKind = "stuck"      // handlers do not return
	FaultSlow      FaultKind = "slow"       // drains take up to Arg longer
	FaultDouble    FaultKind = "double"     // a second process with the same static name starts
	ActPause       FaultKind = "pause"      // an operator pauses resource Arg, or the whole group where it is -1
	ActPauseKept   FaultKind = "pause kept" // the same, and the claim is kept
	ActDrain       FaultKind = "drain"      // an operator drains the node
	ActDrainSelf   FaultKind = "drain self" // the process asks for that
	ActPin         FaultKind = "pin"        // an operator pins resource Arg to the node
	ActMove        FaultKind = "move"       // an operator moves resource Arg to the node
	ActEvict       FaultKind = "evict"      // an operator evicts the node; Arg odd: another name next time
	ActStepDown    FaultKind = "step down"  // an operator takes the office from the coordinator
	FaultDoubt     FaultKind = "doubt"      // somebody refuses the fence of resource Arg
)

// String is the fault as reports show it.
func (f Fault) String() string {
	s := fmt.Sprintf("%9.3fs  #%-3d %s", float64(f.At)/float64(sec), f.ID, f.Kind)
	if f.Node >= 0 {
		s += fmt.Sprintf(" of place %d", f.Node+1)
	}
	if f.Dur > 0 {
		s += fmt.Sprintf(" for %.3fs", float64(f.Dur)/float64(sec))
	}
	if f.Stands {
		s += " for good"
	}
	return s + fmt.Sprintf(" (%d)", f.Arg)
}

// weighted is a kind and how often it is drawn.

type weighted struct {
	kind   FaultKind
	weight int64
}

func (s *Setup) kinds() []weighted {
	if s.Kinds != nil {
		return s.Kinds
	}
	w := []weighted{{FaultCrash, 8}, {FaultLeave, 6}, {FaultFreeze, 8}, {FaultPartition, 8}, {FaultLoss, 8}, {FaultLag, 6},
		{FaultOutage, 3}, {FaultHints, 5}, {FaultSlow, 3}, {FaultOpen, 3}, {FaultStuck, 2}, {FaultDoubt, 2},
		{FaultAppear, 4}, {FaultVanish, 4}}
	c := s.chance()
	if c.of("forgets").percent(50) {
		w = append(w, weighted{FaultSnapshot, 4}, weighted{FaultRollback, 3}, weighted{FaultWipe, 2})
	}
	if c.of("steps").percent(25) {
		w = append(w, weighted{FaultStep, 3})
	}
	if slices.ContainsFunc(s.Nodes, func(n NodeSetup) bool { return n.StaticID }) {
		w = append(w, weighted{FaultDouble, 6})
	}
	if s.Acts {
		w = append(w, acts...)
	}
	if s.Origin == "discovered" {
		w = append(w, weighted{FaultListError, 4}, weighted{FaultFlap, 4})
	}
	return w
}

func (s *Setup) chance() chance { return chance(mix(uint64(s.Seed))) }

// NewSchedule draws the faults of a world. All of them are over when the world heals.
func NewSchedule(s *Setup) []Fault {
	c := s.chance().of("schedule")
	kinds := s.kinds()
	var total int64
	for _, k := range kinds {
		total += k.weight
	}
	n := c.of("count").between(20, 200)
	if c.of("calm").percent(30) {
		n = c.of("count").between(1, 8)
	}
	if s.Burst > 0 {
		n = c.of("burst").between(2, 5)
	}
	faults := make([]Fault, 0, n)
	for i := range n {
		x := c.of("fault", i)
		p := x.of("kind").below(total)
		k := 0
		for p >= kinds[k].weight {
			p -= kinds[k].weight
			k++
		}
		f := Fault{ID: i, Kind: kinds[k].kind, At: x.of("at").below(s.Heal), Node: int(x.of("node").below(int64(len(s.Nodes))))}
		s.shape(x, &f)
		if s.Burst > 0 {
			f.At, f.Arg = s.Heal/2+x.of("burst").below(s.Burst), 0
		}
		f.Dur = min(f.Dur, s.Heal-f.At)
		faults = append(faults, f)
	}
	sort.SliceStable(faults, func(i, j int) bool { return faults[i].At < faults[j].At })
	return faults
}

// shape draws how long a fault lasts and how bad it is.
func (s *Setup) shape(x chance, f *Fault) {
	d := x.of("long")
	f.Dur = pick(x.of("scale"), d.below(s.TTL/6), d.below(s.TTL), d.below(3*s.TTL))
	a := x.of("arg")
	switch f.Kind {
	case FaultCrash, FaultLeave, ActEvict:
		f.Arg = a.below(4)
	case ActStepDown:
		f.Node, f.Dur = -1, 0
	case FaultLoss, FaultHints, FaultFlap:
		f.Arg = a.between(10, 101)
	case FaultLag:
		f.Arg = pick(x.of("lag"), a.below(s.TTL/12), a.below(s.TTL/2), a.below(2*s.TTL))
	case FaultOutage:
		f.Node, f.Arg = -1, a.below(2)
	case FaultSnapshot:
		f.Node, f.Dur = -1, 0
	case FaultRollback, FaultWipe:
		f.Node, f.Dur = -1, 0
		if a.percent(30) {
			f.Arg = a.of("skew").between(-s.TTL/4, s.TTL/40)
		}
	case FaultStep:
		f.Node, f.Dur = -1, 0
		f.Arg = pick(x.of("step"), a.between(-s.TTL/4, s.TTL/40), a.between(-s.TTL/4, 2*s.TTL))
	case ActDrain, ActDrainSelf:
		f.Stands = x.of("stands").percent(30)
	case ActPin, ActMove:
		f.Stands = x.of("stands").percent(30)
		f.Arg = a.below(int64(len(s.Resources)))
	case ActPause, ActPauseKept:
		f.Stands = x.of("stands").percent(30)
		if f.Arg = a.below(int64(len(s.Resources))); x.of("group").percent(5) {
			f.Arg = -1
		}
	case FaultAppear, FaultVanish, FaultDoubt:
		f.Dur, f.Arg = 0, a.below(int64(len(s.Resources)))
	case FaultOpen:
		f.Arg = a.between(-1, int64(len(s.Resources)))
	case FaultSlow:
		f.Arg = a.below(s.TTL)
	}
	if f.Kind == FaultListError || f.Kind == FaultFlap || f.Kind == FaultHints {
		f.Node = -1
	}
	if f.Kind == FaultOpen && f.Arg < 0 {
		f.Dur = min(f.Dur, s.TTL)
	}
}
