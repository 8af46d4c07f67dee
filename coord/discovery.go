package coord

import (
	"fmt"
	"slices"
	"sort"
)

// discovery is the coordinator's list for OriginDiscovered. Discovered lists flap: an error keeps the last list, a name must be missing
// twice to go, and a shrink by more than 30 % is held back until it has lasted for shrinkTimes listings.
type discovery struct {
	loaded  bool
	names   []string // sorted, as written
	parts   int      // entries in the store
	missing map[string]int
	shrunk  int
	listAt  Time
	next    []string // being written
}

const (
	missingTimes = 2
	shrinkTimes  = 10
)

// discovered takes over the list of the coordinator before.
func (m *Machine) discovered(entries []Entry) {
	d := &m.lead.disc
	names, err := joinList(entries)
	if err != nil {
		m.storeFailed("reading of the discovered resources", err)
	}
	*d = discovery{loaded: true, names: names, parts: len(entries), missing: map[string]int{}}
	m.setResources(names)
}

func (m *Machine) pumpDiscovery() {
	d := &m.lead.disc
	if m.cfg.Origin != OriginDiscovered || !d.loaded || m.now < d.listAt || m.waitsFor(callList) || m.waitsFor(callDiscovered) {
		return
	}
	m.do(List{Req: m.ask(call{kind: callList})})
}

func (m *Machine) onListed(ev Listed) {
	c, ok := m.answered(ev.Req)
	d := &m.lead.disc
	if !ok || !m.leading() || !d.loaded {
		return
	}
	d.listAt = c.sent + Time(m.cfg.ListEvery)
	if ev.Err != nil {
		m.notify(Notify{Kind: KindResources, Reason: "resources could not be listed: the last list stays", Err: ev.Err})
		return
	}
	next := d.merge(ev.Names)
	gone := len(d.names) - len(next)
	if gone > 0 && 10*gone > 3*len(d.names) && len(d.names) > 1 {
		if d.shrunk++; d.shrunk < shrinkTimes {
			m.notify(Notify{Kind: KindResources, Reason: fmt.Sprintf("the list shrank from %d to %d resources: held back", len(d.names), len(next))})
			return
		}
	}
	d.shrunk = 0
	if !slices.Equal(next, d.names) {
		m.writeDiscovered(next)
	}
}

// merge is the list to go on with: what is listed, and what has not been missing often enough.
func (d *discovery) merge(listed []string) []string {
	next := slices.Clone(listed)
	sort.Strings(next)
	next = slices.Compact(next)
	missing := map[string]int{}
	for _, n := range d.names {
		if _, ok := slices.BinarySearch(next, n); !ok {
			missing[n] = d.missing[n] + 1
		}
	}
	d.missing = missing
	for _, n := range sortedKeys(missing) {
		if missing[n] < missingTimes {
			next = append(next, n)
		}
	}
	sort.Strings(next)
	return next
}

func (m *Machine) writeDiscovered(names []string) {
	d := &m.lead.disc
	d.next = names
	t := Txn{Checks: m.leadCheck(), Puts: listPuts(DiscoveredPrefix, names, false)}
	for i := len(t.Puts); i < d.parts; i++ {
		t.Deletes = append(t.Deletes, part(DiscoveredPrefix, i))
	}
	m.commit(call{kind: callDiscovered, names: []string{DiscoveredPrefix}}, t)
}

func (m *Machine) discoveredWritten(c call, ev Committed) {
	d := &m.lead.disc
	if !m.ofTerm(c) {
		return
	}
	r := outcome(ev, 0)
	if m.deposed(r) {
		return
	}
	if r.Code != OK {
		d.listAt = m.now + Time(second)
		d.parts = max(d.parts, len(split(d.next))) // it may have been applied
		return
	}
	d.names, d.parts = d.next, len(split(d.next))
	m.setResources(d.names)
	m.lead.dirty = true
	m.notify(Notify{Kind: KindResources, Reason: plural(len(d.names), "resource") + " discovered"})
}

func (m *Machine) wakeDiscovery(w *wake) {
	d := &m.lead.disc
	if m.cfg.Origin == OriginDiscovered && d.loaded && !m.waitsFor(callList) && !m.waitsFor(callDiscovered) {
		w.by(max(d.listAt, m.now))
	}
}
