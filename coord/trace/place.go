package trace

import (
	"slices"
	"sort"
)

// held is an entry as the explainer's store has it.
type held struct {
	version int64
	session string
}

// model is the store as far as it was explained.
type model struct {
	keys  map[string]held
	ended map[string]bool // sessions
	had   map[Key]bool    // versions that entries had
	snap  *model
}

func newModel() *model {
	return &model{keys: map[string]held{}, ended: map[string]bool{}, had: map[Key]bool{}}
}

func (m *model) clone() *model {
	c := newModel()
	for k, v := range m.keys {
		c.keys[k] = v
	}
	for k, v := range m.ended {
		c.ended[k] = v
	}
	c.had = m.had
	return c
}

func (m *model) snapshot() { m.snap = m.clone() }

// back takes the store back to its snapshot, or to nothing.
func (m *model) back(wiped bool) {
	to := newModel()
	if !wiped && m.snap != nil {
		to = m.snap.clone()
	}
	m.keys, m.ended = to.keys, to.ended
}

// end removes what is bound to a session.
func (m *model) end(session string) {
	m.ended[session] = true
	for k, e := range m.keys {
		if e.session == session {
			delete(m.keys, k)
		}
	}
}

// place lets the store apply a transaction now, after all that must have happened before it.
func (x *explainer) place(t *txn) {
	if t.placed || t.placing {
		return
	}
	t.placing = true
	for _, p := range t.Puts { // versions grow: what was put with a smaller one came before
		x.older(t, p.Key, t.versions[p.Key])
	}
	for _, c := range t.Checks {
		x.bring(c, t)
	}
	if !t.ok || t.late {
		x.tooLate(t)
	}
	for _, p := range t.Puts {
		x.readers(t, p.Key)
	}
	for _, k := range t.Deletes {
		x.readers(t, k)
	}
	t.placed = true
	for _, k := range t.Deletes {
		delete(x.store.keys, k)
	}
	for _, p := range t.Puts {
		e := held{version: t.versions[p.Key]}
		if p.Bound {
			e.session = t.req.act.Session
		}
		x.store.keys[p.Key] = e
		x.store.had[Key{p.Key, e.version}] = true
	}
	if t.do != "" {
		x.emit(t.arrival())
	}
}

// waiting are the transactions that are on their way and may come before t, in the order in which they were sent.
func (x *explainer) waiting(t *txn, ok func(*txn) bool) []*txn {
	if x.exact {
		return nil
	}
	x.open = slices.DeleteFunc(x.open, func(u *txn) bool { return u.placed || !u.ok && !u.perhaps })
	var all []*txn
	for _, u := range x.open {
		if u != t && !u.placing && ok(u) {
			all = append(all, u)
		}
	}
	return all
}

func (x *explainer) older(t *txn, key string, version int64) {
	before := x.waiting(t, func(u *txn) bool { v := u.versions[key]; return u.ok && v != 0 && v < version })
	sort.SliceStable(before, func(i, j int) bool { return before[i].versions[key] < before[j].versions[key] })
	for _, u := range before {
		x.place(u)
	}
}

// readers places what is known to have been applied while a key, which now changes, was as it is. Only of what is absent can that come again: what puts it with
// a larger version comes later.
func (x *explainer) readers(t *txn, key string) {
	now, to := x.store.keys[key].version, t.versions[key]
	for _, u := range x.waiting(t, func(u *txn) bool {
		return u.ok && (to == 0 || u.versions[key] < to) && slices.ContainsFunc(u.Checks, func(c Key) bool { return c.Key == key && c.Version == now })
	}) {
		x.place(u)
	}
}

// bring sees to it that a check of t holds, by what may have happened.
func (x *explainer) bring(c Key, t *txn) {
	now := x.store.keys[c.Key]
	switch {
	case now.version == c.Version:
	case c.Version == 0:
		x.absent(c.Key, t)
	case x.store.had[c]: // it is over
	default:
		x.present(c, t, "")
	}
}

// absent explains that an entry is not there any more: somebody deleted it, or its session ended.
func (x *explainer) absent(key string, t *txn) {
	for range 8 { // what comes instead may have to go as well
		now, there := x.store.keys[key]
		if !there {
			return
		}
		deletes := x.waiting(t, func(u *txn) bool { return slices.Contains(u.Deletes, key) && u.Txn.check(key) == now.version })
		sort.SliceStable(deletes, func(i, j int) bool { return deletes[i].ok && !deletes[j].ok })
		switch {
		case len(deletes) > 0:
			x.place(deletes[0])
		case now.session != "" && (t == nil || now.session != t.req.act.Session):
			x.ends(now.session)
		default:
			return // it cannot be explained
		}
	}
}

// present explains that an entry has a version: somebody put it there. session is whose it is said to be, "" if that is not known.
func (x *explainer) present(c Key, t *txn, session string) {
	puts := x.waiting(t, func(u *txn) bool {
		if !slices.ContainsFunc(u.Puts, func(p Entry) bool { return p.Key == c.Key }) {
			return false
		}
		return u.ok && u.versions[c.Key] == c.Version || !u.ok && (session == "" || session == u.req.act.Session)
	})
	// Of several of unknown outcome it is one that can be applied now, or else the last: the node had looked, and asked again.
	sort.SliceStable(puts, func(i, j int) bool {
		a, b := puts[i], puts[j]
		switch ha, hb := x.holds(a), x.holds(b); {
		case a.ok != b.ok:
			return a.ok
		case a.ok:
			return false
		case ha != hb:
			return ha
		}
		return a.req.sent > b.req.sent
	})
	if len(puts) == 0 {
		return
	}
	if u := puts[0]; !u.ok {
		u.versions = map[string]int64{}
		for _, p := range u.Puts {
			u.versions[p.Key] = c.Version
		}
	}
	x.place(puts[0])
}

// ends lets a session end: because it was closed, or else because its time was over.
func (x *explainer) ends(session string) {
	if x.store.ended[session] {
		return
	}
	for _, u := range x.waiting(nil, func(u *txn) bool { return u.ok && u.req.act.Session == session }) {
		x.place(u)
	}
	for _, r := range x.asked {
		if r.act.Session == session && r.last && !r.done {
			x.renewed(r)
		}
	}
	for _, r := range x.asked {
		if r.act.Session == session && r.act.Name == "CloseSession" && !r.done && !x.exact {
			x.closed(r)
			return
		}
	}
	x.store.end(session)
	x.emit(Step{Do: DoExpire, Session: session})
}

func (x *explainer) renewed(r *request) {
	r.done = true
	x.emit(Step{Do: DoRenew, Proc: r.proc, Node: r.node, Session: r.act.Session, Incarnation: r.act.Incarnation, Sent: r.sent, Answered: r.answered})
}

func (x *explainer) closed(r *request) {
	r.done = true
	for _, u := range x.waiting(nil, func(u *txn) bool { return u.ok && u.req.act.Session == r.act.Session }) {
		x.place(u)
	}
	x.store.end(r.act.Session)
	x.emit(Step{Do: DoClose, Proc: r.proc, Node: r.node, Session: r.act.Session, Sent: r.sent, Answered: r.answered})
}

// tooLate notes that a transaction of unknown outcome, which was applied, cannot be applied now any more.
func (x *explainer) tooLate(t *txn) {
	if !x.holds(t) && x.found == nil && !t.late {
		for i, u := range t.req.txns {
			if u == t {
				x.found = &hindsight{key: reqKey{t.req.proc, t.req.act.Req}, index: i, versions: t.versions}
			}
		}
	}
}

// holds tells whether the store would apply a transaction now.
func (x *explainer) holds(t *txn) bool {
	return !x.store.ended[t.req.act.Session] && !slices.ContainsFunc(t.Checks, func(c Key) bool { return x.store.keys[c.Key].version != c.Version })
}
