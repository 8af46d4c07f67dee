package sim

import "github.com/rebalancer-go/rebalancer/coord"

// Profile narrows worlds down to where one kind of thing goes wrong: what a guard is for may be rare among all that can happen.
type Profile string

// The profiles of the table of guards.
const (
	AnyWorld     Profile = ""               // all that NewSetup draws
	LateAnswers  Profile = "late answers"   // freezes between a request and its answer, then partitions
	ForgetGlobal Profile = "forget, global" // rollbacks beside rebalances of a group with a global barrier
	ForgetLate   Profile = "forget, late"   // rollbacks while answers are on their way
	FailedReads  Profile = "failed reads"   // reads fail, and hints are lost
	StaticNames  Profile = "static names"   // processes of one name at one time, and restarts
	StaticRaces  Profile = "static races"   // processes of one name that join at the same time
	HintsAlone   Profile = "hints alone"    // changes of the plan while hand-overs are under way, no hint lost, and no polls
)

// NewProfile draws a group of a profile from a seed.
func NewProfile(p Profile, seed int64) Setup {
	s := NewSetup(seed)
	c := s.chance().of(string(p))
	if p != AnyWorld {
		s.unplaced()
	}
	switch p {
	case LateAnswers:
		s.Kinds = []weighted{{FaultFreeze, 1}, {FaultPartition, 1}}
		s.Latency = s.TTL / 30
	case ForgetGlobal:
		s.Kinds = []weighted{{FaultSnapshot, 4}, {FaultRollback, 3}, {FaultLeave, 3}, {FaultAppear, 3}, {FaultVanish, 3}}
		s.Mode, s.Drain = coord.GlobalBarrier, ms
		s.Latency = ms
	case ForgetLate:
		s.Kinds = []weighted{{FaultSnapshot, 4}, {FaultRollback, 4}, {FaultLeave, 3}, {FaultLag, 4}, {FaultAppear, 2}, {FaultVanish, 2}}
		s.Latency = s.TTL / 30
	case HintsAlone:
		s.Kinds = []weighted{{FaultLeave, 1}}
		s.Mode, s.Hints, s.Fresh, s.HintsOnly = coord.ResourceBarrier, true, false, true
		s.Without |= coord.GuardRenewAssignment | coord.GuardRenewWaiting
		s.Origin, s.Heal = coord.OriginStatic, 10*s.TTL
		s.Latency = s.TTL / 60
		s.Drain = pick(c.of("drain"), s.TTL/30, s.TTL/3)
		s.Burst = pick(c.of("burst"), s.TTL/15, s.TTL/2)
		for i := range s.Nodes {
			s.Nodes[i].Static, s.Nodes[i].Begins = s.Resources, 0
			if c.of("late", int64(i)).percent(30) {
				s.Nodes[i].Begins = s.Heal/2 + c.of("begins", int64(i)).below(s.Burst)
			}
		}
	case StaticNames:
		s.Kinds = []weighted{{FaultDouble, 4}, {FaultCrash, 2}, {FaultLeave, 2}, {FaultFreeze, 2}, {FaultPartition, 1}, {FaultLag, 1}}
		for i := range s.Nodes {
			s.Nodes[i].StaticID = true
		}
	case StaticRaces:
		s.Kinds = []weighted{{FaultDouble, 4}, {FaultLoss, 3}, {FaultLag, 3}}
		s.Latency = s.TTL / 30
		for i := range s.Nodes {
			s.Nodes[i].StaticID = true
		}
	case FailedReads:
		s.Kinds = []weighted{{FaultLoss, 3}, {FaultHints, 4}, {FaultLeave, 1}, {FaultPartition, 2}}
		s.Mode, s.Hints = coord.ResourceBarrier, true
	}
	return s
}
