package coord

import "testing"

// joined is a machine that has joined and holds nothing; nothing is due.
func joined(mode Mode) *Machine {
	m := New(Config{Group: "g", Node: "a", Instance: "i", Mode: mode, TTL: 30 * second})
	m.started, m.phase, m.now = true, phaseActive, Time(10*second)
	m.sess = session{id: "s", ttl: 30 * second, renew: 5 * second, margin: 6 * second, incarnation: "x",
		trusted: m.now + Time(20*second), renewAt: m.now + Time(5*second)}
	m.set = settingsState{known: true, version: 1, value: m.settings()}
	m.member.version = 2
	m.follow.applied, m.follow.seen, m.follow.leader, m.follow.leaderV = true, 3, "b", 4
	return m
}

// memberWrite finds the write of the own member entry among actions.
func memberWrite(t *testing.T, actions []Action) (Commit, Member, bool) {
	t.Helper()
	for _, a := range actions {
		c, ok := a.(Commit)
		if !ok || len(c.Txns) != 1 || len(c.Txns[0].Puts) != 1 || c.Txns[0].Puts[0].Key != MemberKey("a") {
			continue
		}
		v, err := DecodeMember(c.Txns[0].Puts[0].Value)
		if err != nil {
			t.Fatal(err)
		}
		return c, v, true
	}
	return Commit{}, Member{}, false
}

// A node says that it has stopped for a closed barrier in the very step in which it has: nothing else would wake it
// before its next renewal, and everybody waits for it.
func TestStoppedForBarrierIsToldAtOnce(t *testing.T) {
	t.Parallel()
	m := joined(GlobalBarrier)
	m.bar = barrierState{version: 5, value: Barrier{Generation: 2}, stoppedFor: 2}
	m.res["r"] = &resource{fence: 7, phase: resourceReleasing}
	if _, _, wrote := memberWrite(t, m.Step(m.now, Tick{})); wrote {
		t.Fatal("told before its claim was given back")
	}
	req := m.ask(call{kind: callReleases, names: []string{"r"}, versions: []int64{7}})
	actions := m.Step(m.now, Committed{Req: req, Code: OK, Stamp: Stamp{Incarnation: "x"}, Results: []Result{{Code: OK}}})
	if _, v, wrote := memberWrite(t, actions); !wrote || v.Stopped != 2 {
		t.Fatalf("not told that it has stopped: %+v", actions)
	}
}

// Whatever is left to do after a step is woken for.
func TestWakesForWhatIsLeft(t *testing.T) {
	t.Parallel()
	m := joined(ResourceBarrier)
	if w := m.Wake(); w != m.sess.renewAt {
		t.Fatalf("wakes at %v, not for the renewal", w)
	}
	m.member.dirty = true
	if w := m.Wake(); w != m.now {
		t.Fatalf("wakes at %v to write its member entry, not at once", w)
	}
	m.member.dirty = false
	m.touch("r")
	if w := m.Wake(); w != m.now {
		t.Fatalf("wakes at %v to look at a resource, not at once", w)
	}
	m.Step(m.now, Tick{})
	if w := m.Wake(); w != m.sess.renewAt {
		t.Fatalf("wakes at %v although nothing is left", w)
	}
}

// A coordinator that has written a plan, and knows by then that it must look again, looks in the same step: nothing is left to be woken for at once.
func TestLooksAgainInTheStepThatEndsAPlan(t *testing.T) {
	t.Parallel()
	m := joined(ResourceBarrier)
	m.elected(4)
	m.lead.publish = &publication{plan: &plan{}}
	asked[Read](t, m.Step(m.now, Tick{}))
	if w := m.Wake(); w <= m.now {
		t.Fatal("wants to be woken at once after a tick")
	}
}

// A node that leaves does not close its session under a write of its own: that it was refused would look like a loss.
func TestLeaveWaitsForItsOwnWrite(t *testing.T) {
	t.Parallel()
	m := joined(ResourceBarrier)
	closes := func(actions []Action) bool {
		for _, a := range actions {
			if _, ok := a.(CloseSession); ok {
				return true
			}
		}
		return false
	}
	actions := m.Step(m.now, Leave{})
	c, v, wrote := memberWrite(t, actions)
	if !wrote || !v.Leaving || closes(actions) {
		t.Fatalf("a leaving node does not say so first: %+v", actions)
	}
	actions = m.Step(m.now, Committed{Req: c.Req, Code: OK, Stamp: Stamp{Incarnation: "x"},
		Results: []Result{{Code: OK, Versions: map[string]int64{MemberKey("a"): 8}}}})
	if !closes(actions) {
		t.Fatalf("nothing is left, and it does not close its session: %+v", actions)
	}
}

// A renewal that was under way when the node closed its session, and is refused because of that, is no loss.
func TestClosingItsSessionIsNoLoss(t *testing.T) {
	t.Parallel()
	m := joined(ResourceBarrier)
	renewal := m.ask(call{kind: callRenew, sent: m.now})
	m.leave = leaveState{asked: true, at: m.now, closing: true}
	closing := m.ask(call{kind: callClose})
	for _, a := range m.Step(m.now, Renewed{Req: renewal, Code: SessionLost}) {
		if n, ok := a.(Notify); ok {
			t.Errorf("told: %s, %s", n.Kind, n.Reason)
		}
	}
	ends := false
	for _, a := range m.Step(m.now, Closed{Req: closing}) {
		e, ok := a.(Finish)
		ends = ends || ok && e.Err == nil
	}
	if !ends {
		t.Error("the machine does not end well after its session was closed")
	}
}
