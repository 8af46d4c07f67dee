package coord

import (
	"fmt"
	"testing"
)

// When a source is away, a node declines all that it holds: they end together, and the member entry does not grow with them.
func TestManyDeclines(t *testing.T) {
	t.Parallel()
	m := joined(ResourceBarrier)
	const n = 5000
	m.follow.share = map[string]bool{}
	for i := range n {
		name := fmt.Sprintf("a-resource-with-quite-a-long-name-%06d", i)
		m.follow.share[name] = true
		m.res[name] = &resource{fence: 7, phase: resourceWorking, worker: 7}
	}
	began := m.now
	for _, name := range sortedKeys(m.follow.share) {
		m.now += Time(10 * microsecond)
		m.onCannotOpen(CannotOpen{Resource: name, Fence: 7})
	}
	if size := len(encode(m.memberValue())); size > 2*partSize {
		t.Errorf("the member entry has %d bytes", size)
	}
	first, ends := m.member.declineEnd, map[Time]bool{}
	for _, d := range m.member.declined {
		ends[d.until] = true
		if d.until < began+Time(firstDecline) || d.until < first {
			t.Fatalf("ends at %d: after less than %d, or before the first end, %d", d.until, firstDecline, first)
		}
	}
	if len(ends) > 2 {
		t.Errorf("they end at %d moments", len(ends))
	}
	w := wake{never}
	m.wakeMember(&w)
	if w.at > first {
		t.Errorf("wakes at %d, the first ends at %d", w.at, first)
	}
	clear(m.todo)
	m.now = first - 1
	m.endDeclines()
	if len(m.todo) != 0 {
		t.Fatal("ended before their time")
	}
	for end := range ends {
		m.now = max(m.now, end)
	}
	m.endDeclines()
	if len(m.todo) != n || m.member.declineEnd != 0 {
		t.Fatalf("%d of %d ended, the next at %d", len(m.todo), n, m.member.declineEnd)
	}
	for name := range m.follow.share {
		if m.declines(name) {
			t.Fatalf("%s is still declined", name)
		}
	}
}
