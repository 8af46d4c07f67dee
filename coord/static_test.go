package coord

import (
	"slices"
	"testing"
)

// static is a machine of a static name that has joined.
func static(mode Mode) *Machine {
	m := joined(mode)
	m.cfg.StaticID = true
	m.member.joined, m.member.born = true, 100
	return m
}

// overwritten lets a renewal tell that another process has written the member entry, and returns what the machine does when it has
// read that.
func overwritten(t *testing.T, m *Machine, born int64) []Action {
	t.Helper()
	renew := asked[Renew](t, m.Step(m.now+Time(5*second), Tick{}))
	if !slices.Contains(renew.Keys, MemberKey("a")) {
		t.Fatalf("the renewal does not name the own entry: %v", renew.Keys)
	}
	stamp := Stamp{Incarnation: "x"}
	read := asked[Read](t, m.Step(m.now, Renewed{Req: renew.Req, Code: OK, Stamp: stamp, Keys: map[string]KeyState{
		SettingsKey: {Version: 1}, LeaderKey: {Version: 4}, AssignmentKey("a"): {Version: 3}, MemberKey("a"): {Version: 30, Session: "other"}}}))
	if !slices.Contains(read.Keys, MemberKey("a")) {
		t.Fatalf("does not read the entry: %v", read.Keys)
	}
	return m.Step(m.now, ReadDone{Req: read.Req, Code: OK, Stamp: stamp, Entries: []Entry{
		{Key: MemberKey("a"), Value: encode(Member{Node: "a", Instance: "another", Static: true, Born: born}), Version: 30, Session: "other"},
		{Key: SettingsKey, Value: EncodeSettings(m.settings()), Version: 1}}})
}

// A process that opened its session first may join last, and supersede nobody: the other one finds that its entry was overwritten.
func TestOwnEntryOverwritten(t *testing.T) {
	t.Parallel()
	m := static(ResourceBarrier)
	m.res["r"] = &resource{fence: 7, phase: resourceWorking, worker: 7, under: "s"}
	m.runs["s"] = 1
	revoke := asked[Revoke](t, overwritten(t, m, 101))
	if revoke.Resource != "r" || !revoke.Stopping {
		t.Fatalf("does not drain: %+v", revoke)
	}
	release := asked[Commit](t, m.Step(m.now, Stopped{Resource: "r", Fence: 7}))
	c := asked[CloseSession](t, m.Step(m.now, Committed{Req: release.Req, Code: OK, Stamp: Stamp{Incarnation: "x"}, Results: []Result{{Code: OK}}}))
	if f := asked[Finish](t, m.Step(m.now, Closed{Req: c.Req})); f.Err != ErrSuperseded {
		t.Fatalf("ends with %v", f.Err)
	}
}

// A store that goes back to an earlier moment may show the entry of the process that this one took over from.
func TestOlderEntryRestored(t *testing.T) {
	t.Parallel()
	m := static(ResourceBarrier)
	write, v, ok := memberWrite(t, overwritten(t, m, 99))
	if !ok || v.Born != 100 || v.Instance != "i" || m.leave.asked {
		t.Fatalf("does not write its entry: %+v", v)
	}
	s := asked[Supersede](t, m.Step(m.now, Committed{Req: write.Req, Code: OK, Stamp: Stamp{Incarnation: "x"},
		Results: []Result{{Code: OK, Versions: map[string]int64{MemberKey("a"): 31}}}}))
	m.follow.share = map[string]bool{"r": true}
	m.touch("r")
	if c := commits(m.Step(m.now, Tick{})); len(c) > 0 {
		t.Fatalf("claims what the older process may hold: %+v", c)
	}
	claim := asked[Commit](t, m.Step(m.now, Superseded{Req: s.Req, Code: OK, Stamp: Stamp{Incarnation: "x"}}))
	if claim.Txns[0].Puts[0].Key != ClaimKey("r") {
		t.Fatalf("does not claim: %+v", claim)
	}
}

func commits(actions []Action) (c []Commit) {
	for _, a := range actions {
		if a, ok := a.(Commit); ok {
			c = append(c, a)
		}
	}
	return c
}

// Of two that join at the same time, the one that writes last is the newer, whichever opened its session first.
func TestLastToJoinIsTheNewer(t *testing.T) {
	t.Parallel()
	m := static(ResourceBarrier)
	m.member.joined, m.set.known, m.phase = false, false, phaseSettling
	read := asked[Read](t, m.Step(m.now, Tick{}))
	actions := m.Step(m.now, ReadDone{Req: read.Req, Code: OK, Stamp: Stamp{Incarnation: "x"}, Entries: []Entry{
		{Key: MemberKey("a"), Value: encode(Member{Node: "a", Instance: "another", Static: true, Born: 150}), Version: 30, Session: "other"},
		{Key: SettingsKey, Value: EncodeSettings(m.settings()), Version: 1}}})
	if _, v, ok := memberWrite(t, actions); !ok || v.Born != 151 {
		t.Fatalf("does not join as the newer one: %+v", actions)
	}
}

// Under a global barrier a process that took over a static name has stopped only when the older one has.
func TestBarrierWaitsForTheOlderProcess(t *testing.T) {
	t.Parallel()
	m := static(GlobalBarrier)
	m.set.took, m.set.elders = true, true
	m.bar = barrierState{version: 5, value: Barrier{Generation: 2}, stoppedFor: 2}
	actions := m.Step(m.now, Tick{})
	for _, older := range []int{1, 0} {
		if _, _, ok := memberWrite(t, actions); ok {
			t.Fatal("says that it has stopped while an older process may work")
		}
		s := asked[Supersede](t, actions)
		m.Step(m.now, Superseded{Req: s.Req, Code: OK, Older: older, Stamp: Stamp{Incarnation: "x"}})
		actions = m.Step(m.Wake(), Tick{})
	}
	if m.bar.acked != 2 {
		t.Fatal("does not say that all have stopped")
	}
}

// Who joins under a static name without an entry looks for older processes too before it says that it has stopped: one may be left, whose newer one
// left and took their entry with it. Another name, or an entry of one's own, needs no look.
func TestBarrierWaitsForAnOlderProcessWithoutAnEntry(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		static bool
		entry  Entry
		want   bool
	}{
		{static: true, want: true},
		{static: true, entry: Entry{Key: MemberKey("a"), Value: encode(Member{Node: "a", Instance: "i"}), Version: 30, Session: "before"}},
		{static: false},
	} {
		m := static(GlobalBarrier)
		m.cfg.StaticID = c.static
		m.ownSeen(c.entry)
		if m.phase != phaseJoining || m.eldersStopped() == c.want {
			t.Errorf("%+v: phase %v, elders have stopped: %v", c, m.phase, m.eldersStopped())
		}
	}
}
