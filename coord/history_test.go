package coord

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// historyIn are the records in the commits among these actions, with the transaction of each.
func historyIn(t *testing.T, actions []Action) (records []Record, txns []Txn) {
	t.Helper()
	for _, a := range actions {
		c, _ := a.(Commit)
		for _, x := range c.Txns {
			for _, p := range x.Puts {
				if strings.HasPrefix(p.Key, HistoryPrefix) {
					r, err := DecodeRecord(p.Value)
					if err != nil {
						t.Fatal(err)
					}
					records, txns = append(records, r), append(txns, x)
				}
			}
		}
	}
	return records, txns
}

// publishing is what a coordinator does that publishes a plan.
func (m *Machine) publishing(gen int64) []Action {
	m.out = nil
	p := m.planAll()
	p.reason = "a test"
	m.startPublish(p, gen)
	return m.out
}

// A plan's record goes with its first entry, guarded as that is, and names each resource whose node changes.
func TestPlanIsRecorded(t *testing.T) {
	t.Parallel()
	m := leading(OriginRegistered, []string{"p", "q", "r"}, map[string][]string{"a": {"p", "q", "gone"}, "b": nil})
	m.cfg.History = true
	m.clock = clockState{store: 1_000_000, seen: m.now}
	delete(m.lead.members, "b")
	m.changeMember("a", func(v *Member) { v.Max = 1 })
	m.lead.members["c"] = memberInfo{Member: Member{Node: "c", Weight: 1}, version: 9}
	m.lead.last["c"] = m.lead.members["c"].Member
	gen := int64(3*HistorySlots + 7)
	records, txns := historyIn(t, m.publishing(gen))
	if len(records) != 1 {
		t.Fatalf("%d records", len(records))
	}
	r := records[0]
	if r.Kind != RebalanceRecord || r.Actor != m.cfg.Node || r.Reason != "a test" || r.Epoch != 4 || r.Generation != gen || r.At != 1_000_000 {
		t.Errorf("%+v", r)
	}
	var moves []string
	for _, mv := range r.Moves {
		moves = append(moves, fmt.Sprint(mv.From, ">", mv.To, " ", mv.Why, " ", mv.Resources))
	}
	if want := []string{">c new [r]", "a> removed [gone]", "a>c balance [q]"}; !slices.Equal(moves, want) {
		t.Errorf("%q, want %q", moves, want)
	}
	x := txns[0]
	if !slices.Contains(x.Checks, Check{Key: LeaderKey, Version: 4}) || !strings.HasPrefix(x.Puts[0].Key, AssignmentPrefix) {
		t.Errorf("the record stands beside %+v", x)
	}
	if key := x.Puts[len(x.Puts)-1].Key; key != plansPrefix+"000007" {
		t.Errorf("its key is %q", key)
	}
}

// The record is written again with the entry that it goes with, and not with others.
func TestRecordGoesWithItsEntry(t *testing.T) {
	t.Parallel()
	for code, again := range map[Code]int{Failed: 1, OK: 0} {
		m := leading(OriginRegistered, []string{"p", "q"}, map[string][]string{"a": {"p", "q"}, "b": nil})
		m.cfg.History = true
		m.changeMember("a", func(v *Member) { v.Max = 1 })
		var c Commit
		for _, x := range m.publishing(2) {
			c, _ = x.(Commit)
		}
		if len(c.Txns) != 2 {
			t.Fatalf("%+v", c)
		}
		m.out = nil
		m.onCommitted(Committed{Req: c.Req, Results: []Result{{Code: code}, {Code: Failed}}})
		m.now = m.lead.retryAt
		m.pumpPublish()
		if records, _ := historyIn(t, m.out); len(records) != again {
			t.Errorf("after %v it is written %d times more, want %d", code, len(records), again)
		}
	}
}

// Under a global barrier a plan that moves nothing keeps its generation, and leaves alone what stands there.
func TestUnmovedPlanIsNotRecorded(t *testing.T) {
	t.Parallel()
	for mode, want := range map[Mode]int{ResourceBarrier: 1, GlobalBarrier: 0} {
		m := leading(OriginRegistered, []string{"p"}, map[string][]string{"a": {"p"}})
		m.cfg.History, m.cfg.Mode, m.lead.rewrite = true, mode, true
		actions := m.publishing(2)
		if records, _ := historyIn(t, actions); len(records) != want || len(actions) == 0 {
			t.Errorf("%s barrier: %d records in %+v", mode, len(records), actions)
		}
	}
	m := leading(OriginRegistered, []string{"p"}, map[string][]string{"a": nil})
	if records, _ := historyIn(t, m.publishing(2)); len(records) != 0 {
		t.Errorf("recorded though nobody asked for it: %+v", records)
	}
}

// A record stays small, whatever moves, and counts what it leaves out.
func TestRecordIsBounded(t *testing.T) {
	t.Parallel()
	const n = 20_000
	r := Record{Kind: RebalanceRecord}
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("\x01\x02\x03 %06d", i) // each of those takes six bytes
	}
	r.Moves = []Moved{{From: "a", To: "b", Resources: names[:n/2]}, {From: "a", To: "c", Resources: names[n/2:]}}
	r.Nodes = names[:3]
	b := EncodeRecord(r)
	got, err := DecodeRecord(b)
	if err != nil || len(b) > 128<<10 || len(got.Nodes) != 3 || len(got.Moves) != 1 {
		t.Fatalf("%d bytes, %d nodes, %d moves: %v", len(b), len(got.Nodes), len(got.Moves), err)
	}
	if kept := len(got.Moves[0].Resources); kept < 500 || kept+got.More != n {
		t.Errorf("%d kept, %d left out, of %d", kept, got.More, n)
	}
}
