package sim

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rebalancer-go/rebalancer/coord"
)

// calmGroup is a group of n nodes and r resources in which nothing goes wrong but what a test asks for.
func calmGroup(seed int64, n, r int, static bool) Setup {
	c := chance(mix(uint64(seed))).of("calm group")
	s := Setup{Seed: seed, TTL: 6 * sec, Mode: coord.ResourceBarrier, Origin: coord.OriginStatic, Hints: c.of("hints").percent(50),
		Latency: pick(c.of("latency"), ms, 20*ms), Opening: ms, Drain: pick(c.of("drain"), 0, sec), Debounce: sec, ListEvery: 2 * sec}
	for i := range r {
		s.Resources = append(s.Resources, fmt.Sprintf("r%02d", i))
	}
	for i := range n {
		s.Nodes = append(s.Nodes, NodeSetup{Name: fmt.Sprintf("n%d", i+1), Static: s.Resources, StaticID: static,
			Begins: c.of("begins", int64(i)).below(sec), Clock: nodeClock{ppm: c.of("rate", int64(i)).between(-maxDrift, maxDrift)}})
	}
	return s
}

// rolling restarts every node, one after the other; kind says how. Without static names each process has another one.
func (s *Setup) rolling(kind FaultKind) []Fault {
	c := s.chance().of("rolling")
	var faults []Fault
	at := 20 * sec
	for i := range s.Nodes {
		x := c.of("restart", int64(i))
		faults = append(faults, Fault{ID: int64(i), At: at, Node: i, Kind: kind, Dur: x.of("away").below(s.TTL / 2), Arg: 1})
		at += 5*sec + x.of("pause").below(s.TTL)
		if kind == FaultCrash {
			at += 2 * s.TTL
		}
	}
	s.Heal = at + 2*s.TTL
	return faults
}

// mostMoves runs a world and returns the resource that moved most often between nodes, and how often.
func mostMoves(t *testing.T, s Setup, faults []Fault) (string, int) {
	t.Helper()
	w := NewWorld(s, faults)
	w.at(15*sec, func() { clear(w.moves) }) // all have joined
	if v := w.Run(); v != nil {
		t.Fatal(Report(s, faults, v))
	}
	which, most := "", 0
	for _, r := range s.Resources {
		if w.moves[r] > most {
			which, most = r, w.moves[r]
		}
	}
	return which, most
}

// TestRollingRestart: where names are static, a rolling restart moves nothing, whether the processes leave or are killed, with and without
// proof of their death. Where they are not, each resource moves at most twice.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	for seed := range int64(40) {
		for _, kind := range []FaultKind{FaultLeave, FaultCrash} {
			s := calmGroup(seed, 8, 8+int(seed), true)
			s.Proof = seed%2 == 0
			if r, n := mostMoves(t, s, s.rolling(kind)); n > 0 {
				t.Errorf("seed %d, %s: %s moved %d times", seed, kind, r, n)
			}
		}
		s := calmGroup(seed, 8, 8+int(seed), false)
		if seed%4 == 3 {
			s.Mode = coord.GlobalBarrier
		}
		if r, n := mostMoves(t, s, s.rolling(FaultLeave)); n > 2 {
			t.Errorf("seed %d, names that change, %d resources: %s moved %d times", seed, len(s.Resources), r, n)
		}
	}
}

// TestTwoOfOneName: 100 schedules of two processes of one static name, of which one may be frozen, cut off, or killed. The invariants of
// all worlds hold: no overlap, one of them ends with ErrSuperseded or by the fault, and the work goes on.
func TestTwoOfOneName(t *testing.T) {
	t.Parallel()
	for seed := range int64(100) {
		s := calmGroup(seed, 1+int(seed%3), 6, true)
		c := s.chance().of("two")
		s.Proof = c.of("proof").percent(30)
		faults := []Fault{{ID: 0, At: 10 * sec, Kind: FaultDouble}}
		for i := range 1 + c.of("faults").below(4) {
			x := c.of("fault", i)
			faults = append(faults, Fault{ID: i + 1, At: 9*sec + x.of("at").below(2*s.TTL), Dur: x.of("long").below(2 * s.TTL), Arg: 30,
				Kind: pick(x.of("kind"), FaultFreeze, FaultPartition, FaultLoss, FaultCrash)})
		}
		slices.SortFunc(faults, func(a, b Fault) int { return int(a.At - b.At) })
		s.Heal = 10*sec + 4*s.TTL
		if v := NewWorld(s, faults).Run(); v != nil {
			t.Error(Report(s, faults, v))
		}
	}
}

// TestOlderOfTwoEnds: where nothing goes wrong the older process ends as superseded, soon, and the newer has its whole share as soon as that
// one has drained.
func TestOlderOfTwoEnds(t *testing.T) {
	t.Parallel()
	for seed := range int64(20) {
		s := calmGroup(seed, 2, 6, true)
		s.Heal = 20 * sec
		w := NewWorld(s, []Fault{{At: 10 * sec, Kind: FaultDouble}})
		var older, newer *proc
		w.at(9*sec, func() { clear(w.moves) })
		w.at(10*sec+ms, func() { older, newer = w.elders[0], w.procs[0] })
		w.at(10*sec+s.TTL/3+s.Drain+sec, func() {
			if !older.dead || newer.dead || len(newer.workers) != 3 {
				w.fail(settles, "older ended: %v, newer ended: %v and works %d", older.dead, newer.dead, len(newer.workers))
			}
		})
		if v := w.Run(); v != nil {
			t.Errorf("seed %d: %v", seed, v)
		}
		if w.moves["r00"]+w.moves["r05"] > 0 {
			t.Errorf("seed %d: something moved to another node", seed)
		}
	}
}
