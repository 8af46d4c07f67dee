//go:build linux

package linear

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rebalancer-go/rebalancer/backends"
)

// translate adds the operations of one event.
func (t *translation) translate(e event) {
	if e.Kind == committed {
		for i := range e.Txns {
			t.transaction(e, i)
		}
		return
	}
	if e.Return != 0 && e.Kind != renewed {
		t.found(e, e.Stamp.Incarnation)
	}
	s := t.sessions[e.Session]
	if s == nil {
		return
	}
	op := &operation{session: s.number, about: fmt.Sprintf("client %d, session %d: %s → %s", e.Client, s.number, e.Kind, e.Outcome)}
	ret := e.Return
	switch {
	case e.Kind == closed:
		op.kind = end
		if e.Outcome != done {
			ret = never
		}
	case e.Kind == superseded && (e.Return == 0 || e.Outcome == done || e.Outcome == unknown):
		t.supersede(e, s, op)
		return
	case e.Kind == renewed || e.Kind == superseded:
		if !t.session(e, s, op) {
			return
		}
	case e.Kind == read && e.Outcome == done && e.Return != 0:
		t.sights(e)
		return
	default:
		return
	}
	t.toUsers(e.Session, e.Call, ret, op)
}

// session fills in what a renewal or a refused supersede says of its session; false when it says nothing.
func (t *translation) session(e event, s *life, op *operation) bool {
	if e.Return == 0 {
		return false
	}
	switch e.Outcome {
	case done:
		op.kind, op.incarnation = alive, t.incarnations[e.Incarnation]
		t.found(e, e.Incarnation)
		t.sights(e)
	case lost:
		op.kind, op.late = over, t.late(e, s)
	case overtook:
		op.kind = overtaken
	case another:
		t.found(e, e.Stamp.Incarnation)
		return false
	default:
		return false
	}
	return true
}

// late tells whether a driver may have given a session up by the time of an answer.
func (t *translation) late(e event, s *life) bool { return t.givesUp && e.Return >= s.first }

// supersede tells the sessions of its node that were opened before, in every part in which one of them writes.
func (t *translation) supersede(e event, s *life, op *operation) {
	op.kind = supersede
	ret := e.Return
	if e.Return == 0 || e.Outcome == unknown {
		op.kind, ret = attemptSup, never
	}
	concerned := []string{e.Session}
	for id, o := range t.sessions {
		if o.node == e.Node && o.opened < s.opened {
			op.older = append(op.older, o.number)
			concerned = append(concerned, id)
		}
	}
	slices.Sort(op.older)
	for p, users := range t.users {
		if slices.ContainsFunc(concerned, func(id string) bool { return users[id] }) {
			t.add(p, e.Call, ret, op)
		}
	}
}

// sights adds what a renewal or a read says of each key.
func (t *translation) sights(e event) {
	var over sessions
	if t.ahead {
		over = t.over(e.Call, e.Return)
	}
	for _, key := range e.Keys {
		o := sight{key: t.local[key], over: over}
		if state, ok := e.States[key]; ok {
			o.version, o.writer, o.session = state.Version, -1, t.numberOf(state.Session)
		}
		if i := slices.IndexFunc(e.Entries, func(entry backends.Entry) bool { return entry.Key == key }); i >= 0 {
			entry := e.Entries[i]
			o.version, o.session, o.writer = entry.Version, t.numberOf(entry.Session), -1
			if !e.NamesOnly {
				o.writer = t.writer(entry.Value)
			}
		}
		t.add(t.part[key], e.Call, e.Return, &operation{kind: see, seen: []sight{o},
			about: fmt.Sprintf("client %d: %s %s → %s", e.Client, e.Kind, key, describe(o))})
	}
}

func describe(o sight) string {
	if o.version == 0 {
		return "absent"
	}
	return fmt.Sprintf("version %d, put %d, session %d", o.version, o.writer, o.session)
}

// numberOf is that of a session; -2, which no entry has, for one that nobody opened.
func (t *translation) numberOf(id string) int {
	if id == "" {
		return 0
	}
	if s := t.sessions[id]; s != nil {
		return s.number
	}
	return -2
}

// writer is the put of a value; -2, which no entry has, for one that nobody put.
func (t *translation) writer(value []byte) int {
	if n := t.writers[string(value)]; n != 0 {
		return n
	}
	return -2
}

// transaction adds one transaction of a commit.
func (t *translation) transaction(e event, i int) {
	keys := keysOf(e.Txns[i])
	if len(keys) == 0 || t.sessions[e.Session] == nil {
		return
	}
	r := result{Outcome: unknown} // where no answer came
	if e.Return != 0 {
		r = result{Outcome: e.Outcome}
		if i < len(e.Results) {
			r = e.Results[i]
		}
	}
	op := &operation{session: t.sessions[e.Session].number, incarnation: t.incarnations[e.Incarnation]}
	op.txn = t.txnOf(e.Txns[i], r)
	ret := e.Return
	switch r.Outcome {
	case done:
		op.kind = apply
		t.found(e, e.Incarnation)
	case conflict:
		op.kind = refuse
		for _, c := range e.Txns[i].Checks {
			op.seen = append(op.seen, sight{key: t.local[c.Key], version: r.Versions[c.Key], writer: -1, session: -1})
		}
	case lost:
		op.kind, op.late = over, t.late(e, t.sessions[e.Session])
	case overtook:
		op.kind = overtaken
	case another:
		t.found(e, e.Stamp.Incarnation)
		return
	case unknown:
		op.kind, ret = attempt, t.known(e.Txns[i], e.Call)
		op.txn.seen = ret != never
	default: // nothing was applied: whoever sees it has seen what nobody wrote
		return
	}
	op.about = fmt.Sprintf("client %d, session %d: %s → %s %v", e.Client, op.session, t.show(e.Txns[i]), r.Outcome, r.Versions)
	t.add(t.part[keys[0]], e.Call, ret, op)
}

// txnOf numbers what a transaction names.
func (t *translation) txnOf(txn backends.Txn, r result) transaction {
	var out transaction
	for _, c := range txn.Checks {
		out.checks = append(out.checks, check{t.local[c.Key], c.Version})
	}
	for _, p := range txn.Puts {
		version := t.version[string(p.Value)]
		if r.Outcome == done {
			version = r.Versions[p.Key]
		}
		out.puts = append(out.puts, put{key: t.local[p.Key], writer: t.writers[string(p.Value)], version: version, bound: p.Bound})
	}
	for _, k := range txn.Deletes {
		out.deletes = append(out.deletes, t.local[k])
	}
	return out
}

// known is when the first had read what a transaction of unknown outcome put; never when nobody did.
func (t *translation) known(txn backends.Txn, call int64) int64 {
	first := int64(never)
	for _, p := range txn.Puts {
		if at := t.readBy[string(p.Value)]; at != 0 {
			first = min(first, max(at, call))
		}
	}
	return first
}

// show describes a transaction for people.
func (t *translation) show(txn backends.Txn) string {
	var parts []string
	for _, c := range txn.Checks {
		parts = append(parts, fmt.Sprintf("if %s=%d", c.Key, c.Version))
	}
	for _, p := range txn.Puts {
		bound := ""
		if p.Bound {
			bound = "bound "
		}
		parts = append(parts, fmt.Sprintf("%sput %d at %s", bound, t.writers[string(p.Value)], p.Key))
	}
	for _, k := range txn.Deletes {
		parts = append(parts, "delete "+k)
	}
	return strings.Join(parts, ", ")
}
