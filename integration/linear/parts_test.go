//go:build linux

package linear

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/rebalancer-go/rebalancer/backends"
)

// never is when a call returns that was not answered.
const never = math.MaxInt64

// rules are what a store promises beyond the contract's least.
type rules struct {
	exact  bool          // a session that was not renewed has ended by its TTL, and slack
	slack  time.Duration // for clocks that are not read at the same moment
	proofs bool          // a supersede ends sessions whose process was killed
	// givesUp: the driver may call a session lost that was not renewed for its TTL, although the server has not ended it yet. What is bound to it stays until then.
	givesUp bool
	// ahead: reads may see a session's end before a transaction that began before it is done, and counts the session as living, or renews it.
	ahead bool
	whole bool // for split: make one part of all keys
}

// part is what is checked at one time: some keys with the sessions that write them, or the incarnation.
type part struct {
	name string
	ops  []porcupine.Operation
}

// translation makes steps of the model of what clients wrote down.
type translation struct {
	rules
	events       []event
	part         map[string]int // of a key
	local        map[string]int // number of a key in its part
	sessions     map[string]*life
	writers      map[string]int   // by the value, which is unique
	version      map[string]int64 // of a value, as somebody read it
	readBy       map[string]int64 // when the first who read a value had it
	incarnations map[string]int
	until        int64 // the last event

	parts []part
	users []map[string]bool // of a part: the sessions whose transactions write there
}

// life is a session.
type life struct {
	number         int
	node           string
	opened         int64 // when it was asked for
	first, last    int64 // it ends between these by itself
	closedForSure  int64 // when a close was acknowledged; 0: none was
	client         int
	ttl            int64
	unansweredOnce bool // a renewal was: it may have been carried out, at any time
}

// split makes the parts of a history.
func split(events []event, r rules) []part {
	t := &translation{rules: r, events: slices.Clone(events), sessions: map[string]*life{}, writers: map[string]int{}, version: map[string]int64{},
		readBy: map[string]int64{}, incarnations: map[string]int{}}
	slices.SortStableFunc(t.events, func(a, b event) int { return int(min(max(a.Call-b.Call, -1), 1)) })
	t.group()
	t.learn()
	t.lives()
	for _, e := range t.events {
		t.translate(e)
	}
	t.ends()
	return t.parts
}

// group puts keys that are in one transaction into one part.
func (t *translation) group() {
	head := map[string]string{}
	var find func(string) string
	find = func(k string) string {
		if head[k] == "" || head[k] == k {
			head[k] = k
			return k
		}
		head[k] = find(head[k])
		return head[k]
	}
	for _, e := range t.events {
		for _, k := range e.Keys {
			find(k)
		}
		for _, txn := range e.Txns {
			all := keysOf(txn)
			for _, k := range all {
				head[find(k)] = find(all[0])
			}
		}
	}
	for _, k := range keys {
		if t.whole {
			head[find(k)] = find(keys[0])
		}
	}
	all := make([]string, 0, len(head))
	for k := range head {
		all = append(all, k)
	}
	sort.Strings(all)
	t.part, t.local = map[string]int{}, map[string]int{}
	var members [][]string
	number := map[string]int{}
	for _, k := range all {
		h := find(k)
		if _, known := number[h]; !known {
			number[h] = len(members)
			members = append(members, nil)
		}
		p := number[h]
		t.part[k], t.local[k] = p, len(members[p])
		members[p] = append(members[p], k)
	}
	for _, m := range members {
		t.parts = append(t.parts, part{name: strings.Join(m, " ")})
		t.users = append(t.users, map[string]bool{})
	}
	t.parts = append(t.parts, part{name: "the incarnation"})
	t.users = append(t.users, nil)
}

// keysOf are those of a transaction.
func keysOf(txn backends.Txn) []string {
	var all []string
	for _, c := range txn.Checks {
		all = append(all, c.Key)
	}
	for _, p := range txn.Puts {
		all = append(all, p.Key)
	}
	return append(all, txn.Deletes...)
}

// learn collects what the whole history tells: who wrote what, which version it got, the order of the incarnations.
func (t *translation) learn() {
	type incarnation struct {
		name  string
		since int64
	}
	var all []incarnation
	for _, e := range t.events {
		t.until = max(t.until, e.Call, e.Return)
		for _, txn := range e.Txns {
			for _, p := range txn.Puts {
				t.writers[string(p.Value)] = len(t.writers) + 1
			}
			if len(keysOf(txn)) > 0 {
				t.users[t.part[keysOf(txn)[0]]][e.Session] = true
			}
		}
		for _, entry := range e.Entries {
			if v := string(entry.Value); !e.NamesOnly && (t.readBy[v] == 0 || e.Return < t.readBy[v]) {
				t.version[v], t.readBy[v] = entry.Version, e.Return
			}
		}
		if s := e.Stamp; s.Incarnation != "" && !slices.ContainsFunc(all, func(i incarnation) bool { return i.name == s.Incarnation }) {
			all = append(all, incarnation{s.Incarnation, sinceOf(s)})
		}
	}
	slices.SortStableFunc(all, func(a, b incarnation) int { return int(min(max(a.since-b.since, -1), 1)) })
	for i, one := range all {
		t.incarnations[one.name] = i + 1
	}
}

// sinceOf is when an incarnation began; the first one began before all.
func sinceOf(s backends.Stamp) int64 {
	if s.Since.IsZero() {
		return 0
	}
	return s.Since.UnixNano()
}

// lives finds out between which moments each session ends by itself.
func (t *translation) lives() {
	for _, e := range t.events {
		s := t.sessions[e.Session]
		switch {
		case e.Kind == opened && e.Outcome == done && e.Return != 0:
			t.sessions[e.Session] = &life{number: len(t.sessions) + 1, node: e.Node, opened: e.Call, client: e.Client, ttl: e.TTL,
				first: e.Call + e.TTL, last: e.Return + e.TTL + t.slack.Nanoseconds()}
		case e.Kind == killed && t.proofs:
			for _, o := range t.sessions {
				if o.client == e.Client && o.opened < e.Call {
					o.first = min(o.first, e.Call)
				}
			}
		case s == nil:
		case e.Kind == renewed && e.Return != 0 && e.Outcome == done:
			s.first, s.last = max(s.first, e.Call+s.ttl), max(s.last, e.Return+s.ttl+t.slack.Nanoseconds())
		case e.Kind == renewed && (e.Return == 0 || e.Outcome == unknown):
			s.unansweredOnce = true
		case e.Kind == closed && e.Outcome == done && e.Return != 0:
			s.closedForSure = e.Return
		}
	}
}

// ends adds the ends of sessions that were not closed.
func (t *translation) ends() {
	for id, s := range t.sessions {
		if s.first > t.until || s.closedForSure != 0 && s.closedForSure < s.first {
			continue
		}
		last := int64(never)
		if t.exact && !s.unansweredOnce {
			last = s.last
		}
		t.toUsers(id, s.first, last, &operation{kind: end, session: s.number, about: fmt.Sprintf("session %d ends by itself", s.number)})
	}
}

// add puts an operation into a part.
func (t *translation) add(part int, call, ret int64, op *operation) {
	if ret == 0 {
		ret = never
	}
	t.parts[part].ops = append(t.parts[part].ops, porcupine.Operation{Input: op, Call: call, Return: ret})
}

// toUsers adds it to every part in which a session writes.
func (t *translation) toUsers(session string, call, ret int64, op *operation) {
	for p, users := range t.users {
		if users[session] {
			t.add(p, call, ret, op)
		}
	}
}

// over are the sessions that a read between two moments may see as ended: by what was acknowledged before it.
func (t *translation) over(call, ret int64) sessions {
	until := map[string]int64{}
	for _, e := range t.events {
		if s := t.sessions[e.Session]; s != nil && (e.Kind == opened || e.Kind == renewed) && e.Outcome == done && e.Return != 0 && e.Return <= call {
			until[e.Session] = max(until[e.Session], e.Call+s.ttl)
		}
	}
	var all sessions
	for id, at := range until {
		if at <= ret {
			all.add(t.sessions[id].number)
		}
	}
	return all
}

// found adds that the data was found to be of an incarnation.
func (t *translation) found(e event, incarnation string) {
	if n := t.incarnations[incarnation]; n != 0 {
		t.add(len(t.parts)-1, e.Call, e.Return, &operation{kind: lookAt, incarnation: n, about: fmt.Sprintf("client %d, %s: incarnation %d", e.Client, e.Kind, n)})
	}
}
