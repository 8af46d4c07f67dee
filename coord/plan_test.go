package coord

import (
	"fmt"
	"slices"
	"testing"
)

// leading is a machine that coordinates these nodes, whose shares stand in the store; every node may be given every resource.
func leading(origin Origin, resources []string, shares map[string][]string) *Machine {
	m := joined(ResourceBarrier)
	m.cfg.Origin = origin
	m.elected(4)
	l := &m.lead
	l.members, l.entries = map[string]memberInfo{}, map[string]published{}
	l.resources = resources
	for node, share := range shares {
		l.members[node] = memberInfo{Member: Member{Node: node, Weight: 1, List: resources}, version: 9}
		l.entries[node] = published{version: 9, value: Assignment{Epoch: 4, Generation: 1, Share: share}}
	}
	return m
}

func (m *Machine) planAll() *plan {
	settled, joined := m.planners(nil)
	return m.makePlan(sortedMembers(slices.Concat(settled, joined)))
}

// A pin or a move to a node that may not take the resource ties nothing: idle is worse than elsewhere.
func TestTieToNodeThatMayNotTakeIt(t *testing.T) {
	t.Parallel()
	const otherPins = "its limit, reached by other pins"
	for what, change := range map[string]func(m *Machine){
		"drained":  func(m *Machine) { m.lead.control.drained["b"] = true },
		"declined": func(m *Machine) { m.changeMember("b", func(v *Member) { v.Declined = []string{"r"} }) },
		"labels":   func(m *Machine) { m.lead.labelled = []Registration{{Name: "r", Require: []string{"zone=a"}}} },
		"standby":  func(m *Machine) { m.cfg.MaxActive = 1 },
		"away":     func(m *Machine) { delete(m.lead.members, "b") },
		otherPins: func(m *Machine) {
			m.changeMember("b", func(v *Member) { v.Max = 1 })
			m.lead.control.pins["q"] = "b"
		},
	} {
		for _, ties := range []string{"pin", "move"} {
			if ties == "move" && what == otherPins {
				continue // it goes before pins
			}
			t.Run(fmt.Sprint(what, ", ", ties), func(t *testing.T) {
				t.Parallel()
				m := leading(OriginRegistered, []string{"q", "r"}, map[string][]string{"a": {"q", "r"}, "b": nil})
				m.changeMember("a", func(v *Member) { v.Labels = map[string]string{"zone": "a"} })
				if ties == "pin" {
					m.lead.control.pins["r"] = "b"
				} else {
					m.lead.control.moves["r"] = "b"
				}
				change(m)
				if p := m.planAll(); p.next["r"] != "a" {
					t.Fatalf("r goes to %q: %v", p.next["r"], p.shares)
				}
			})
		}
	}
}

// changeMember changes what the coordinator last read of a node.
func (m *Machine) changeMember(node string, change func(*Member)) {
	mi := m.lead.members[node]
	change(&mi.Member)
	m.lead.members[node] = mi
}

// A move to a node that may not take the resource leaves the pin in place.
func TestPinBehindMove(t *testing.T) {
	t.Parallel()
	m := leading(OriginRegistered, []string{"q", "r"}, map[string][]string{"a": {"q", "r"}, "b": nil, "c": nil})
	m.lead.control.pins["r"], m.lead.control.moves["r"] = "b", "c"
	m.lead.control.drained["c"] = true
	if p := m.planAll(); p.next["r"] != "b" {
		t.Fatalf("r goes to %q", p.next["r"])
	}
}

// What is kept for a static node is kept whether or not this coordinator ever saw the node's labels; it is given nothing more.
func TestReservedShareOfNodeNeverSeen(t *testing.T) {
	t.Parallel()
	m := leading(OriginRegistered, []string{"q", "r", "s"}, map[string][]string{"a": nil, "b": {"r"}})
	delete(m.lead.members, "b")
	e := m.lead.entries["b"]
	e.value.ReservedUntil = m.storeTime() + 1e6
	m.lead.entries["b"] = e
	m.lead.labelled = []Registration{{Name: "r", Require: []string{"zone=b"}}}
	p := m.planAll()
	if !slices.Equal(p.shares["b"], []string{"r"}) || p.reserved["b"] == 0 || len(p.shares["a"]) != 2 {
		t.Fatalf("shares %v, reserved %v", p.shares, p.reserved)
	}
}

// With MaxActive a node that may take nothing is not one of the active ones.
func TestActiveMayTakeSomething(t *testing.T) {
	t.Parallel()
	m := leading(OriginRegistered, []string{"r"}, map[string][]string{"a": nil, "b": nil})
	m.cfg.MaxActive, m.lead.claimsRead = 1, true
	m.lead.labelled = []Registration{{Name: "r", Require: []string{"zone=b"}}}
	m.changeMember("b", func(v *Member) { v.Labels = map[string]string{"zone": "b"} })
	if p := m.planAll(); p.next["r"] != "b" {
		t.Fatalf("r goes to %q", p.next["r"])
	}
}

// What came to a node last is what it gives up: in a rolling restart the same resources move twice, and the others do not.
func TestLastComesFirstToGo(t *testing.T) {
	t.Parallel()
	m := leading(OriginRegistered, []string{"p", "q", "r", "s"}, map[string][]string{"a": {"q", "s", "p"}, "b": {"r"}})
	p := m.planAll()
	if !slices.Equal(p.shares["a"], []string{"q", "s"}) || !slices.Equal(p.shares["b"], []string{"r", "p"}) {
		t.Fatalf("shares %v", p.shares)
	}
}

// What is a resource again, or no longer paused, while its node is still giving it back counts as with that node, not as new: within what may
// be in hand-over at a time. When the claim is gone it is placed at once.
func TestComesBackWhileItIsGivenBack(t *testing.T) {
	t.Parallel()
	for what, limit := range map[string]func(*Config){
		"of all":   func(c *Config) { c.MaxMoving = 1 },
		"of one":   func(c *Config) { c.MaxMovingNode = 1 },
		"no limit": func(*Config) {},
	} {
		m := leading(OriginRegistered, []string{"q", "r", "s", "t"}, map[string][]string{"a": {"q", "t"}, "b": {"s"}})
		limit(&m.cfg)
		e := m.lead.entries["a"]
		e.value.Leaving = map[string]string{"r": "", "s": "b"}
		m.lead.entries["a"] = e
		m.lead.holders = map[string]string{"r": "a", "s": "a"}
		p := m.planAll()
		if limited := what != "no limit"; (p.next["r"] == "a") != limited || (p.pending == 1) != limited {
			t.Errorf("%s: while it is given back, shares %v, %d pending", what, p.shares, p.pending)
		}
		if !slices.Equal(p.shares["a"][:2], []string{"q", "t"}) {
			t.Errorf("%s: it came last: %v", what, p.shares)
		}
		delete(m.lead.holders, "s")
		if p := m.planAll(); p.next["r"] != "b" || p.pending != 0 {
			t.Errorf("%s: nothing else is in hand-over, shares %v, %d pending", what, p.shares, p.pending)
		}
		m.lead.holders = map[string]string{"s": "a"}
		if p := m.planAll(); p.next["r"] != "b" || p.pending != 0 {
			t.Errorf("%s: it was given back, shares %v, %d pending", what, p.shares, p.pending)
		}
		m.lead.holders["r"] = "a"
		m.lead.resources = []string{"q", "r", "s"}
		if p := m.planAll(); p.next["r"] != "a" {
			t.Errorf("%s: its node may keep it, shares %v", what, p.shares)
		}
	}
}

// What came since a node joined counts as late only by entries that were written after that; nodes without an entry, and those whose
// entries do not tell, come after the newest.
func TestLateSinceTheLastJoin(t *testing.T) {
	t.Parallel()
	m := leading(OriginRegistered, []string{"p", "q"}, map[string][]string{"a": {"p"}, "b": {"q"}})
	enter := func(node string, gen, joined int64, late int) {
		e := m.lead.entries[node]
		e.value.Generation, e.value.Joined, e.value.Late = gen, joined, late
		m.lead.entries[node] = e
	}
	nodes := []Member{{Node: "a"}, {Node: "b"}, {Node: "c"}}
	enter("a", 8, 3, 1)
	enter("b", 7, 7, 1)
	if late := m.late(nodes); len(late) != 1 || late["a"] != 1 {
		t.Errorf("late %v", late)
	}
	if order := m.newest(nodes); !slices.Equal(order, []int{1, 0, 2}) {
		t.Errorf("the newest first: %v", order)
	}
	enter("a", 8, 0, 9)
	if late := m.late(nodes); late["a"] != 1 {
		t.Errorf("more are late than there are: %v", late)
	}
	if order := m.newest(nodes); !slices.Equal(order, []int{1, 0, 2}) {
		t.Errorf("the newest first: %v", order)
	}
}

// A coordinator that steps down wakes two nodes: one may be leaving as well.
func TestStepDownWakesTwo(t *testing.T) {
	t.Parallel()
	m := leading(OriginRegistered, nil, map[string][]string{"a": nil, "b": nil, "c": nil, "d": nil, "e": nil})
	m.changeMember("b", func(v *Member) { v.Leaving = true })
	m.out = nil
	m.stepDown()
	c := asked[Commit](t, m.out)
	if want := []string{NodeAddress("c"), NodeAddress("d")}; !slices.Equal(c.Txns[0].Wake, want) {
		t.Fatalf("wakes %v, want %v", c.Txns[0].Wake, want)
	}
}

// A node that becomes active waits until those that are not any more have given everything back, and is told by no hint but the release.
func TestActiveWaitsForOutgoing(t *testing.T) {
	t.Parallel()
	m := leading(OriginRegistered, []string{"q", "r"}, map[string][]string{"a": nil, "b": {"q", "r"}, "c": nil})
	m.cfg.MaxActive, m.cfg.FailBack, m.set.value.MaxActive = 1, true, 1
	m.changeMember("c", func(v *Member) { v.Priority = 2 })
	m.lead.claimsRead, m.lead.holders = true, map[string]string{"q": "b", "r": "b"}
	p := m.planAll()
	if len(p.shares["b"])+len(p.shares["c"]) != 0 || !p.waits {
		t.Fatalf("shares %v, waits %v", p.shares, p.waits)
	}
	for what, change := range map[string]func(){
		"a claim by an entry that is gone": func() { m.lead.holders["q"] = "b" },
		"an entry of a node that is gone":  func() { m.lead.entries["d"] = published{version: 1, value: Assignment{Epoch: 4, Share: []string{"q"}}} },
		"claims that were not read":        func() { m.lead.claimsRead = false },
	} {
		delete(m.lead.entries, "b")
		delete(m.lead.entries, "d")
		m.lead.claimsRead, m.lead.holders = true, map[string]string{}
		if p := m.planAll(); len(p.shares["c"]) != 2 {
			t.Fatalf("shares %v", p.shares)
		}
		change()
		if p := m.planAll(); len(p.shares["c"]) != 0 || !p.waits {
			t.Errorf("%s: shares %v, waits %v", what, p.shares, p.waits)
		}
	}
	if w := m.releaseTxn("q", 5).Wake; len(w) == 0 || !slices.Contains(w, CoordinatorAddress) {
		t.Errorf("a release wakes %v", w)
	}
}

// With MaxActive a node is of use only for what is to be claimed.
func TestActiveMayTakeWhatIsNotPaused(t *testing.T) {
	t.Parallel()
	m := leading(OriginRegistered, []string{"q", "r"}, map[string][]string{"a": nil, "b": nil})
	m.cfg.MaxActive, m.lead.claimsRead = 1, true
	m.lead.control.paused["q"] = false
	m.changeMember("a", func(v *Member) { v.Declined = []string{"r"} })
	if p := m.planAll(); p.next["r"] != "b" {
		t.Fatalf("r goes to %q", p.next["r"])
	}
}

// What no live node may take is told once, not again when another resource joins it.
func TestUnplacedIsToldOnce(t *testing.T) {
	t.Parallel()
	m := joined(ResourceBarrier)
	m.elected(4)
	told := func(unplaced ...string) (names []string) {
		m.out = nil
		m.lead.unplaced = unplaced
		m.reportUnplaced()
		for _, a := range m.out {
			if n, ok := a.(Notify); ok {
				names = append(names, n.Resource)
			}
		}
		return names
	}
	for _, step := range []struct{ unplaced, told []string }{
		{[]string{"b"}, []string{"b"}}, {[]string{"a", "b"}, []string{"a"}}, {[]string{"a", "b"}, nil}, {[]string{"b"}, nil}, {[]string{"a", "b", "c"}, []string{"a", "c"}}, {nil, nil},
	} {
		if got := told(step.unplaced...); !slices.Equal(got, step.told) {
			t.Errorf("%v: told %v, want %v", step.unplaced, got, step.told)
		}
	}
	var many []string
	for i := range 12 {
		many = append(many, fmt.Sprintf("m%02d", i))
	}
	if got := told(many...); len(got) != 11 || got[10] != "" {
		t.Errorf("of 12 it told %q, want 10 and a line for the others", got)
	}
}

// A process that a newer one of its static name replaced is no member, and when the newer one has gone nobody speaks for it. The barrier
// stays closed while it still holds something.
func TestBarrierWaitsForClaimsOfStrangers(t *testing.T) {
	t.Parallel()
	m := leading(OriginRegistered, []string{"q", "r"}, map[string][]string{"a": {"q"}, "b": {"r"}})
	m.cfg.Mode = GlobalBarrier
	m.lead.barrierV, m.lead.barrier = 7, Barrier{Generation: 2}
	for _, node := range []string{"a", "b"} {
		m.changeMember(node, func(v *Member) { v.Stopped = 2 })
	}
	m.lead.holders = map[string]string{"q": "b"} // stuck: its node says that it has stopped all the same
	if !m.allStopped() {
		t.Error("what is stuck holds up the others")
	}
	m.lead.holders, m.lead.planAt = map[string]string{"q": "c"}, 0
	if m.allStopped() || m.lead.planAt == 0 {
		t.Error("the barrier opens over a claim of a node that is no member, or nothing looks for its end")
	}
	m.out = nil
	m.gather()
	if r := asked[Read](t, m.out); !slices.Contains(r.Prefixes, ClaimPrefix) {
		t.Error("claims are not read while the barrier is closed")
	}
}

// Of two processes of a static name, the one that opened its session first may join last. It is told of no older one, and says that the name has stopped;
// the claims of the other show that it has not.
func TestBarrierWaitsForClaimsOfNamesakes(t *testing.T) {
	t.Parallel()
	for what, tc := range map[string]struct {
		static bool
		holder string
		opens  bool
	}{
		"its own":                        {true, "s1", true}, // stuck
		"of another process of the name": {true, "s2", false},
		"of its own session before this": {false, "s2", true}, // no name for two: it has stopped itself
	} {
		m := leading(OriginRegistered, []string{"q"}, map[string][]string{"a": {"q"}})
		m.cfg.Mode = GlobalBarrier
		m.takeEntries([]Entry{
			{Key: ClaimKey("q"), Value: encode(Claim{Resource: "q", Node: "a"}), Version: 5, Session: tc.holder},
			{Key: MemberKey("a"), Value: encode(Member{Node: "a", Static: tc.static, Stopped: 2}), Version: 6, Session: "s1"},
		})
		m.lead.barrierV, m.lead.barrier, m.lead.planAt = 7, Barrier{Generation: 2}, 0
		if opens := m.allStopped(); opens != tc.opens || !opens && m.lead.planAt == 0 {
			t.Errorf("a claim %s: the barrier opens: %t, want %t; it is looked at again at %d", what, opens, tc.opens, m.lead.planAt)
		}
	}
}
