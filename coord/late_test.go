package coord

import (
	"slices"
	"testing"
)

// asked finds the request of type A that was made last.
func asked[A Action](t *testing.T, actions []Action) A {
	t.Helper()
	for _, a := range slices.Backward(actions) {
		if a, ok := a.(A); ok {
			return a
		}
	}
	t.Fatalf("no %T among %+v", *new(A), actions)
	panic("unreachable")
}

func assignmentEntry(version int64, share ...string) Entry {
	p := assignmentPuts("a", Assignment{Epoch: 4, Generation: version, Share: share})[0]
	return Entry{Key: p.Key, Value: p.Value, Version: version}
}

// A claim whose outcome is unknown may be applied after the read that did not find it. When the resource then goes to another node,
// before this one has asked again, that claim is in its way for as long as this session lives: it is looked for.
func TestLateClaimOfWhatWentElsewhere(t *testing.T) {
	t.Parallel()
	m := joined(ResourceBarrier)
	stamp := Stamp{Incarnation: "x"}
	m.follow.share = map[string]bool{"r": true, "other": true}
	m.touch("r")
	first := asked[Commit](t, m.Step(m.now, Tick{}))
	m.touch("other")
	actions := m.Step(m.now, Committed{Req: first.Req, Code: Unknown})
	busy, read := asked[Commit](t, actions), asked[Read](t, actions)
	if !slices.Contains(read.Keys, ClaimKey("r")) {
		t.Fatalf("does not look what became of it: %v", read.Keys)
	}
	// Not there yet. It is to be asked for again, but another commit is on its way.
	m.Step(m.now, ReadDone{Req: read.Req, Code: OK, Stamp: stamp, Entries: []Entry{assignmentEntry(3, "other", "r")}})
	read = asked[Read](t, m.Step(m.now, Hinted{NodeAddress("a")}))
	m.Step(m.now, ReadDone{Req: read.Req, Code: OK, Stamp: stamp, Entries: []Entry{assignmentEntry(9, "other")}})
	m.Step(m.now, Committed{Req: busy.Req, Code: OK, Stamp: stamp,
		Results: []Result{{Code: OK, Versions: map[string]int64{ClaimKey("other"): 20}}}})
	read = asked[Read](t, m.Step(m.now+Time(second), Tick{}))
	if !slices.Contains(read.Keys, ClaimKey("r")) {
		t.Fatalf("does not look for it: %v", read.Keys)
	}
	actions = m.Step(m.now, ReadDone{Req: read.Req, Code: OK, Stamp: stamp, Entries: []Entry{
		assignmentEntry(9, "other"), {Key: ClaimKey("r"), Version: 15, Session: "s"}}})
	c := asked[Commit](t, actions)
	if len(c.Txns) != 1 || !slices.Contains(c.Txns[0].Deletes, ClaimKey("r")) || !slices.Contains(c.Txns[0].Checks, Check{ClaimKey("r"), 15}) {
		t.Fatalf("does not give it back: %+v", c)
	}
}

// Where the store granted a longer ttl than was asked for, the others may trust for that long after its clock was stepped.
func TestHoldLastsForTheGrantedTTL(t *testing.T) {
	t.Parallel()
	m := joined(ResourceBarrier)
	m.sess.ttl = 2 * m.cfg.TTL
	m.noteStamp(m.now, Stamp{Time: 1})
	m.noteStamp(m.now, Stamp{Time: int64(Duration(3600) * second / microsecond)})
	if want := m.now + Time(m.sess.ttl); m.clock.holdUntil != want {
		t.Fatalf("held until %d, want %d", m.clock.holdUntil, want)
	}
}

// A claim that waited for the end of a hold is old by then: while renewals fail, its session may have ended by another step.
func TestHoldLastsWhileRenewalsFail(t *testing.T) {
	t.Parallel()
	m := joined(ResourceBarrier)
	m.res["r"] = &resource{fence: 7, phase: resourceClaimed}
	m.follow.share = map[string]bool{"r": true}
	m.clock.holdUntil, m.sess.trusted = m.now+Time(6*second), m.now+Time(25*second)
	m.touch("r")
	renewal := asked[Renew](t, m.Step(m.sess.renewAt, Tick{}))
	out := m.Step(m.now+Time(2*second), Renewed{Req: renewal.Req, Code: Failed})
	if slices.ContainsFunc(out, func(a Action) bool { _, ok := a.(StartWork); return ok }) {
		t.Fatal("opened although no renewal succeeded since the hold")
	}
	if at := m.Wake(); at <= m.now {
		t.Fatalf("wants to be woken at %d, which is not after %d: it would spin", at, m.now)
	}
	again := asked[Renew](t, m.Step(m.now+Time(second), Tick{}))
	asked[StartWork](t, m.Step(m.now+1, Renewed{Req: again.Req, Code: OK, Stamp: Stamp{Incarnation: m.sess.incarnation}}))
}

// A session that was given up is closed when what was started under it has ended, whatever was started since.
func TestOldSessionIsClosedBesideNewWork(t *testing.T) {
	t.Parallel()
	m := joined(ResourceBarrier)
	m.res["stuck"] = &resource{fence: 7, phase: resourceClaimed}
	m.follow.share = map[string]bool{"stuck": true}
	m.touch("stuck")
	asked[StartWork](t, m.Step(m.now, Tick{}))
	m.Step(m.now+Time(30*second), Tick{}) // fenced
	m.Step(m.now+Time(10*second), Tick{}) // opens another session
	m.phase, m.sess.id, m.sess.trusted = phaseActive, "new", m.now+Time(30*second)
	m.res["new"] = &resource{fence: 9, phase: resourceClaimed}
	m.follow.share = map[string]bool{"new": true}
	m.touch("new")
	asked[StartWork](t, m.Step(m.now, Tick{}))
	c := asked[CloseSession](t, m.Step(m.now, Stopped{Resource: "stuck", Fence: 7}))
	if c.Session != "s" {
		t.Fatalf("closes %q", c.Session)
	}
}

// However often a claim is doubted, one read at a time looks at it.
func TestDoubtsAreOneRead(t *testing.T) {
	t.Parallel()
	m := joined(ResourceBarrier)
	m.res["r"] = &resource{fence: 7, phase: resourceWorking, worker: 7}
	m.follow.share = map[string]bool{"r": true}
	reads := 0
	for range 100 {
		for _, a := range m.Step(m.now, Doubt{Resource: "r", Fence: 7}) {
			if _, ok := a.(Read); ok {
				reads++
			}
		}
	}
	if reads != 1 {
		t.Fatalf("%d reads", reads)
	}
}
