package coord

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// reported is what a plan for all nodes would tell.
func (m *Machine) reported() *PlanReport {
	p := m.planAll()
	p.reason, p.causes = m.reason(nil)
	return m.movement(p, 2)
}

func texts(moves []Move) string {
	var all []string
	for _, mv := range moves {
		all = append(all, fmt.Sprintf("%s:%s>%s:%s", mv.Resource, mv.From, mv.To, mv.Reason))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// Each reason is told where it is the one.
func TestMoveReasons(t *testing.T) {
	t.Parallel()
	four := []string{"q", "r", "s", "t"}
	for want, change := range map[string]func(m *Machine){
		"":                            func(*Machine) {},
		"u:>a:new":                    func(m *Machine) { m.lead.resources = append(four, "u") },
		"r:a>c:balance":               func(m *Machine) { m.join("c"); m.lead.resources = four[:3]; m.give("b", "s") },
		"r:a>b:asked":                 func(m *Machine) { m.lead.control.moves["r"] = "b"; m.give("b", "s"); m.lead.resources = four[:3] },
		"q:a>b:asked t:b>a:balance":   func(m *Machine) { m.lead.control.pins["q"] = "b" },
		"s:b>a:gone t:b>a:gone":       func(m *Machine) { delete(m.lead.members, "b") },
		"s:b>a:leave t:b>a:leave":     func(m *Machine) { m.changeMember("b", func(v *Member) { v.Leaving = true }) },
		"s:b>a:drained t:b>a:drained": func(m *Machine) { m.lead.control.drained["b"] = true },
		"s:b>a:standby t:b>a:standby": func(m *Machine) { m.cfg.MaxActive = 1; m.lead.claimsRead = true },
		"q:a>b:declined": func(m *Machine) {
			m.changeMember("a", func(v *Member) { v.Declined = []string{"q"} })
			m.give("b")
			m.lead.resources = four[:2]
		},
		"q:a>b:ineligible": func(m *Machine) {
			m.lead.labelled = []Registration{{Name: "q", Require: []string{"zone=b"}}}
			m.changeMember("b", func(v *Member) { v.Labels = map[string]string{"zone": "b"} })
			m.give("b")
			m.lead.resources = four[:2]
		},
		"q:a>:ineligible": func(m *Machine) { m.lead.labelled = []Registration{{Name: "q", Require: []string{"zone=c"}}} },
		"r:a>:unplaceable": func(m *Machine) {
			m.give("b")
			m.lead.resources = four[:2]
			m.limit("a", 1)
			m.limit("b", 1)
			m.give("b", "s")
			m.lead.resources = four[:3]
		},
		"q:a>:paused":  func(m *Machine) { m.lead.control.paused["q"] = false },
		"q:a>:removed": func(m *Machine) { m.lead.resources = four[1:] },
	} {
		m := leading(OriginRegistered, four, map[string][]string{"a": {"q", "r"}, "b": {"s", "t"}})
		m.cfg.Measure, m.cfg.Node = true, "x"
		change(m)
		rep := m.reported()
		if got := texts(rep.Moves); got != want || rep.Moved != len(rep.Moves) {
			t.Errorf("moves %q (%d in all), want %q", got, rep.Moved, want)
		}
	}
}

func (m *Machine) join(node string) {
	m.lead.members[node] = memberInfo{Member: Member{Node: node, Weight: 1}, version: 9}
}

func (m *Machine) give(node string, share ...string) {
	m.lead.entries[node] = published{version: 9, value: Assignment{Epoch: 4, Generation: 1, Share: share}}
}

func (m *Machine) limit(node string, most int) {
	m.changeMember(node, func(v *Member) { v.Max = most })
}

// Whatever the plan: a resource is told of if and only if its node is another one.
func TestMovementIsWhatChanges(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	for round := range 300 {
		shares, owner, names := map[string][]string{"a": nil, "b": nil, "c": nil, "d": nil}, map[string]string{}, []string(nil)
		for i := range rng.IntN(200) {
			name := fmt.Sprintf("r%03d", i)
			if node := []string{"a", "b", "c", "d", ""}[rng.IntN(5)]; node != "" {
				shares[node], owner[name] = append(shares[node], name), node
			}
			if rng.IntN(10) > 0 {
				names = append(names, name)
			}
		}
		m := leading(OriginRegistered, names, shares)
		m.cfg.Measure, m.cfg.Node = true, "x"
		if rng.IntN(2) == 0 {
			delete(m.lead.members, "d")
		}
		if rng.IntN(2) == 0 {
			delete(m.lead.entries, "c")
			for _, r := range shares["c"] {
				delete(owner, r)
			}
		}
		p := m.planAll()
		rep := m.movement(p, 2)
		want := map[string]Move{}
		for r, from := range owner {
			if p.next[r] != from {
				want[r] = Move{Resource: r, From: from, To: p.next[r]}
			}
		}
		for r, to := range p.next {
			if owner[r] == "" {
				want[r] = Move{Resource: r, To: to}
			}
		}
		if rep.Moved != len(want) || len(rep.Moves) != min(rep.Moved, maxMoves) {
			t.Fatalf("seed %d, round %d: %d moves, %d of them named, want %d", seed, round, rep.Moved, len(rep.Moves), len(want))
		}
		for _, mv := range rep.Moves {
			if w := want[mv.Resource]; mv.From != w.From || mv.To != w.To || mv.Reason == "" {
				t.Fatalf("seed %d, round %d: %+v, want %+v", seed, round, mv, w)
			}
			delete(want, mv.Resource) // each once
		}
	}
}

// The causes go with the assignment to whom it concerns, and one without them is read too.
func TestCausesInTheAssignment(t *testing.T) {
	t.Parallel()
	for _, why := range [][]Cause{nil, {CauseGone}, {CauseJoin, CauseLeave}} {
		m := joined(ResourceBarrier)
		m.cfg.Measure = true
		m.res["old"] = &resource{fence: 5, phase: resourceWorking}
		m.res["kept"] = &resource{fence: 6, phase: resourceWorking}
		puts := assignmentPuts("a", Assignment{Epoch: 4, Generation: 7, Share: []string{"new", "kept"}, Why: causesText(why)})
		if why == nil && strings.Contains(string(puts[0].Value), "why") {
			t.Errorf("%s: causes that are not told take room", puts[0].Value)
		}
		m.applyEntry([]Entry{{Key: puts[0].Key, Value: puts[0].Value, Version: 9}})
		share := m.out[len(m.out)-1].(Notify).Share
		if share == nil || !slices.Equal(share.Causes, why) || !slices.Equal(share.Gained, []string{"new"}) || !slices.Equal(share.Lost, []string{"old"}) || share.Generation != 7 || share.Epoch != 4 {
			t.Errorf("causes %q: told %+v", why, share)
		}
	}
}

// How long a resource stood free counts from when it was seen to be free, not from when somebody else still held it.
func TestWaitedForAClaim(t *testing.T) {
	t.Parallel()
	m := joined(ResourceBarrier)
	m.cfg.Measure = true
	m.follow.share = map[string]bool{"q": true}
	m.wantClaim("q")
	m.now += Time(3 * second)
	m.claimRefused("q", map[string]int64{ClaimKey("q"): 8})
	m.now += Time(4 * second)
	m.claimsSeen([]string{"q"}, map[string]KeyState{})
	m.reconcile("q")
	m.now += Time(second)
	m.out = nil
	m.obtained("q", 9)
	if n := m.out[0].(Notify); n.Waited != second {
		t.Errorf("it waited for %d, want 1 s", n.Waited)
	}
	m.res["q"].fence = 0
	m.wantClaim("q")
	m.now += Time(second)
	entry := assignmentPuts("a", Assignment{Epoch: 4, Generation: 7})[0]
	m.applyEntry([]Entry{{Key: entry.Key, Value: entry.Value, Version: 9}})
	if len(m.queue.free) != 0 {
		t.Error("what is not granted any more still counts as waiting")
	}
}

// Nothing of all this is made for machines that do not measure: the search would take states for different that go on alike.
func TestNothingIsMeasuredUnasked(t *testing.T) {
	t.Parallel()
	m := leading(OriginRegistered, []string{"q"}, map[string][]string{"a": {"q"}})
	p := m.planAll()
	_, causes := m.reason(nil)
	m.wantClaim("r")
	m.startPublish(p, 2)
	if p.takes != nil || p.sorted != nil || causes != nil || len(m.queue.free) != 0 || m.lead.publish.report != nil {
		t.Error("something was measured")
	}
}
