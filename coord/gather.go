package coord

import (
	"slices"
	"sort"
	"strings"

	"github.com/rebalancer-go/rebalancer/coord/assign"
)

// published is a node's assignment as it stands in the store.
type published struct {
	version int64
	value   Assignment
}

// gather reads what may have changed; at the start of a term, everything.
func (m *Machine) gather() {
	l := &m.lead
	l.dirty, l.planAt = false, 0
	prefixes := []string{MemberPrefix, ControlPrefix}
	var keys []string
	if l.cold {
		prefixes = append(prefixes, AssignmentPrefix)
		if m.cfg.Origin == OriginDiscovered {
			prefixes = append(prefixes, DiscoveredPrefix)
		}
		if m.cfg.Mode == GlobalBarrier {
			keys = append(keys, BarrierKey)
		}
	}
	if m.cfg.Origin == OriginRegistered {
		prefixes = append(prefixes, ResourcePrefix)
	}
	claims := l.cold || m.cfg.MaxActive > 0 || m.barrierCloses() // who still holds what is to be given back; what few nodes hold, else
	if claims {
		prefixes = append(prefixes, ClaimPrefix)
	}
	m.read(call{kind: callGather, cold: l.cold, claims: claims}, prefixes, append(keys, claimKeys(m.moving())...))
}

// moving are the resources that may still be held by a node that is to give them back.
func (m *Machine) moving() []string {
	set := map[string]bool{}
	for _, p := range m.lead.entries { // into a set
		for name := range p.value.Leaving {
			set[name] = true
		}
	}
	return sortedKeys(set)
}

func (m *Machine) gathered(c call, ev ReadDone) {
	l := &m.lead
	if !m.ofTerm(c) {
		return
	}
	if ev.Code != OK {
		l.dirty, l.retryAt = true, m.now+Time(100*millisecond)
		return
	}
	if l.cold && !c.cold {
		l.dirty = true // it was sent before everything had to be read, and lacks most of it
		return
	}
	if !m.takeEntries(ev.Entries) {
		return
	}
	l.claimsRead = c.claims
	for prefix, d := range ev.Digests { // each by itself
		if m.has(GuardDigest) {
			l.digests[prefix] = d.Sum
		} else {
			delete(l.digests, prefix)
		}
	}
	m.checkBy(ev.Digests[MemberPrefix].Left)
	m.upgrade()
	m.gatherLists()
}

// takeEntries takes over what was read; false when it cannot be used.
func (m *Machine) takeEntries(entries []Entry) bool {
	l := &m.lead
	cold := l.cold
	l.cold = false
	l.members = map[string]memberInfo{}
	for _, e := range below(entries, MemberPrefix) {
		m.memberRead(e)
	}
	l.control = newControls()
	for _, e := range below(entries, ControlPrefix) {
		if err := l.control.read(e); err != nil {
			m.storeFailed("reading of what an operator asked for", err)
		}
	}
	l.holders, l.namesakes = map[string]string{}, false
	for _, e := range below(entries, ClaimPrefix) {
		if c, err := DecodeClaim(e.Value); err == nil {
			l.holders[c.Resource] = c.Node
			mi, member := l.members[c.Node]
			l.namesakes = l.namesakes || member && mi.Static && mi.session != e.Session
		}
	}
	if m.cfg.Origin == OriginRegistered {
		m.registered(below(entries, ResourcePrefix))
	}
	if !cold {
		l.forgetGiven()
		return true
	}
	l.entries, l.digests = map[string]published{}, map[string]uint64{}
	l.barrierV, l.barrier = 0, Barrier{}
	for _, e := range below(entries, BarrierKey) {
		l.barrierV, l.barrier = e.Version, barrierOf(e)
	}
	if m.cfg.Origin == OriginDiscovered {
		m.discovered(below(entries, DiscoveredPrefix))
	}
	return m.assignmentsRead(below(entries, AssignmentPrefix))
}

// below are the entries, sorted by key, whose keys begin with a prefix.
func below(entries []Entry, prefix string) []Entry {
	from := sort.Search(len(entries), func(i int) bool { return entries[i].Key >= prefix })
	to := from
	for to < len(entries) && strings.HasPrefix(entries[to].Key, prefix) {
		to++
	}
	return entries[from:to]
}

// forgetGiven drops what was given back from the entries as this coordinator knows them, so that it is not read again with each plan.
func (l *leadState) forgetGiven() {
	for node, p := range l.entries { // each by itself
		for r := range p.value.Leaving {
			if l.holders[r] != node {
				delete(p.value.Leaving, r)
			}
		}
	}
}

func (m *Machine) memberRead(e Entry) {
	v, err := DecodeMember(e.Value)
	if err != nil {
		m.storeFailed("reading of a member entry", err)
		return
	}
	m.lead.members[v.Node] = memberInfo{Member: v, version: e.Version, session: e.Session, left: e.Left}
}

// assignmentsRead takes over the entries of the coordinator before. They are sorted by key, so those of a node stand together.
func (m *Machine) assignmentsRead(entries []Entry) bool {
	l := &m.lead
	for len(entries) > 0 {
		node, _ := nodeOfAssignment(entries[0].Key)
		n := 1
		for n < len(entries) && strings.HasPrefix(entries[n].Key, AssignmentKey(node)) {
			n++
		}
		a, err := DecodeAssignment(entries[:n])
		if err != nil { // half written: by a coordinator that is being deposed
			m.storeFailed("reading of an assignment", err)
			l.cold, l.dirty, l.retryAt = true, true, m.now+Time(100*millisecond)
			return false
		}
		a.Parts = n - 1 // also what is to be deleted
		l.entries[node] = published{version: entries[0].Version, value: a}
		l.gen = max(l.gen, a.Generation)
		entries = entries[n:]
	}
	return true
}

func (m *Machine) registered(entries []Entry) {
	var names []string
	m.lead.labelled, m.lead.weights = nil, map[string]int32{}
	for _, e := range entries {
		r, err := DecodeRegistration(e.Value)
		if err != nil {
			m.storeFailed("reading of a registered resource", err)
			continue
		}
		names = append(names, r.Name)
		if len(r.Require)+len(r.Prefer) > 0 {
			m.lead.labelled = append(m.lead.labelled, r)
		}
		if r.Weight > 1 {
			m.lead.weights[r.Name] = int32(min(r.Weight, assign.MaxWeight))
		}
	}
	m.setResources(names)
}

func (m *Machine) setResources(names []string) {
	names = slices.Clone(names)
	sort.Strings(names)
	m.lead.resources = slices.Compact(names)
}

// gatherLists reads the long static lists that are not known yet.
func (m *Machine) gatherLists() {
	l := &m.lead
	if m.cfg.Origin != OriginStatic {
		m.evaluate()
		return
	}
	var c call
	var prefixes []string
	for _, node := range sortedKeys(l.members) {
		mi := l.members[node]
		if mi.ListParts > 0 && l.lists[node].hash != mi.ListHash {
			c.names = append(c.names, node)
			prefixes = append(prefixes, ListPrefix+node+"/")
		}
	}
	if len(prefixes) > 0 {
		c.kind = callLeadLists
		m.read(c, prefixes, nil)
		return
	}
	m.evaluate()
}

func (m *Machine) gatheredLists(c call, ev ReadDone) {
	l := &m.lead
	if !m.ofTerm(c) {
		return
	}
	if l.cold {
		l.dirty = true
		return
	}
	if ev.Code != OK {
		l.dirty, l.retryAt = true, m.now+Time(100*millisecond)
		return
	}
	parts := map[string][]Entry{}
	for _, e := range ev.Entries {
		node, _, _ := strings.Cut(strings.TrimPrefix(e.Key, ListPrefix), "/")
		parts[node] = append(parts[node], e)
	}
	for _, node := range sortedKeys(parts) {
		n := min(l.members[node].ListParts, len(parts[node]))
		if names, err := joinList(parts[node][:n]); err == nil {
			l.lists[node] = namedList{hash: listHash(names), names: names}
		}
	}
	for _, node := range sortedKeys(l.members) {
		if mi := l.members[node]; mi.ListParts > 0 && l.lists[node].hash != mi.ListHash {
			l.dirty, l.retryAt = true, m.now+Time(100*millisecond) // it is being written
			return
		}
	}
	m.evaluate()
}

// staticOf is the sorted static list of a live member, or of one that is waited for.
func (m *Machine) staticOf(mi Member) []string {
	names := mi.List
	if mi.ListParts > 0 {
		names = m.lead.lists[mi.Node].names
	}
	if !sort.StringsAreSorted(names) {
		names = slices.Sorted(slices.Values(names))
	}
	return names
}
