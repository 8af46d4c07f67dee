package trace

import (
	"reflect"
	"slices"
	"sort"
	"strings"

	"github.com/rebalancer-go/rebalancer/coord"
)

// Recorder makes lines of the steps of one machine. Its zero value is ready; it is not safe for concurrent use.
type Recorder struct {
	last  coord.Projection
	began bool
	asked map[uint64][]string // keys of requests that are unanswered
}

// Step is the line for a step that was taken at a moment of the trace's clock; ok is false for one that did nothing and changed nothing.
func (r *Recorder) Step(at int64, t coord.Trace) (l Line, ok bool) {
	l = Line{At: at, Node: t.Node, Proc: t.Machine.Instance(), Event: r.event(t.Event)}
	for _, a := range t.Actions {
		if act, tell := r.action(a); tell {
			l.Actions = append(l.Actions, act)
		}
	}
	if until := t.Machine.TrustedUntil(); until > 0 {
		l.Trusted = at + int64(until-t.Now)
	}
	state := t.Machine.Projection()
	changed := !r.began || !reflect.DeepEqual(state, r.last)
	if changed {
		l.State, r.last, r.began = &state, state, true
	}
	ok = changed || len(l.Actions) > 0 || tells(t.Event)
	return l, ok
}

// tells tells whether an event says anything, whatever it led to.
func tells(ev coord.Event) bool {
	switch ev.(type) {
	case coord.Tick, coord.Hinted, coord.NoHints, coord.Listed, coord.Troubles, coord.Doubt:
		return false
	}
	return true
}

// nameOf is the name of an event or action in package coord.
func nameOf(x any) string { return reflect.TypeOf(x).Name() }

func (r *Recorder) event(ev coord.Event) Act {
	a := Act{Name: nameOf(ev)}
	switch ev := ev.(type) {
	case coord.Opened:
		a.Req, a.Code, a.Session, a.Incarnation = ev.Req, ev.Code.String(), ev.Session, ev.Stamp.Incarnation
	case coord.Closed:
		a.Req = ev.Req
	case coord.Renewed:
		a.Req, a.Code, a.Incarnation = ev.Req, ev.Code.String(), ev.Stamp.Incarnation
		for k, s := range ev.Keys {
			a.Seen = append(a.Seen, Entry{Key: k, Version: s.Version, Session: s.Session})
		}
		sortEntries(a.Seen)
		r.absent(&a)
	case coord.ReadDone:
		a.Req, a.Code, a.Incarnation = ev.Req, ev.Code.String(), ev.Stamp.Incarnation
		for _, e := range ev.Entries {
			if tracked(e.Key) {
				a.Seen = append(a.Seen, entryOf(e.Key, e.Value, Entry{Version: e.Version, Session: e.Session}))
			}
		}
		r.absent(&a)
	case coord.Committed:
		a.Req, a.Code, a.Incarnation = ev.Req, ev.Code.String(), ev.Stamp.Incarnation
		a.Results = Results(ev.Results)
	case coord.Superseded:
		a.Req, a.Code, a.Incarnation = ev.Req, ev.Code.String(), ev.Stamp.Incarnation
	case coord.Stopped:
		a.Resource, a.Fence = ev.Resource, ev.Fence
	case coord.Stuck:
		a.Resource, a.Fence = ev.Resource, ev.Fence
	case coord.CannotOpen:
		a.Resource, a.Fence = ev.Resource, ev.Fence
	case coord.Doubt:
		a.Resource, a.Fence = ev.Resource, ev.Fence
	}
	return a
}

// absent completes an answer by the keys that were asked for and are not there.
func (r *Recorder) absent(a *Act) {
	keys := r.asked[a.Req]
	delete(r.asked, a.Req)
	if a.Code != coord.OK.String() {
		return
	}
	for _, k := range keys {
		if tracked(k) && !slices.ContainsFunc(a.Seen, func(e Entry) bool { return e.Key == k }) {
			a.Absent = append(a.Absent, k)
		}
	}
}

func (r *Recorder) ask(req uint64, keys []string) {
	if r.asked == nil {
		r.asked = map[uint64][]string{}
	}
	r.asked[req] = keys
}

// action is what a line says of an action; tell is false for what the specification has no word for.
func (r *Recorder) action(x coord.Action) (a Act, tell bool) {
	a.Name = nameOf(x)
	switch x := x.(type) {
	case coord.OpenSession:
		a.Req = x.Req
	case coord.CloseSession:
		a.Req, a.Session = x.Req, x.Session
	case coord.Renew:
		a.Req, a.Session, a.Incarnation = x.Req, x.Session, x.Incarnation
		r.ask(x.Req, x.Keys)
	case coord.Read:
		a.Req, a.Session = x.Req, x.Session
		r.ask(x.Req, x.Keys)
	case coord.Commit:
		a.Req, a.Session, a.Incarnation = x.Req, x.Session, x.Incarnation
		for _, t := range x.Txns {
			a.Txns = append(a.Txns, txnOf(t))
		}
	case coord.Supersede:
		a.Req, a.Session = x.Req, x.Session
	case coord.StartWork:
		a.Resource, a.Fence = x.Resource, x.Fence
	case coord.Revoke:
		a.Resource, a.Fence = x.Resource, x.Fence
	case coord.Lose:
		a.Resource, a.Fence = x.Resource, x.Fence
	case coord.Finish:
		if x.Err != nil {
			a.Code = coord.Fatal.String()
		}
	default: // Listen, List, Notify
		return a, false
	}
	return a, true
}

// Results are those of a commit, as lines have them.
func Results(results []coord.Result) []Result {
	var all []Result
	for _, x := range results {
		re := Result{Code: x.Code.String()}
		for k, v := range x.Versions {
			re.Versions = append(re.Versions, Key{k, v})
		}
		sort.Slice(re.Versions, func(i, j int) bool { return re.Versions[i].Key < re.Versions[j].Key })
		all = append(all, re)
	}
	return all
}

func txnOf(t coord.Txn) Txn {
	out := Txn{Deletes: t.Deletes, Grace: t.Grace > 0}
	for _, c := range t.Checks {
		out.Checks = append(out.Checks, Key(c))
	}
	for _, p := range t.Puts {
		out.Puts = append(out.Puts, entryOf(p.Key, p.Value, Entry{Bound: p.Bound}))
	}
	return out
}

// entryOf adds to e what the specification's variables say of a value. What cannot be read says nothing.
func entryOf(key string, value []byte, e Entry) Entry {
	e.Key = key
	switch {
	case headOf(key) != "":
		if a, err := coord.DecodeAssignment([]coord.Entry{{Key: key, Value: value}}); err == nil || a.Epoch != 0 {
			e.Epoch, e.Generation = a.Epoch, a.Generation
			if a.ReservedUntil == 0 {
				e.Share = a.Share
			}
		}
	case key == coord.BarrierKey:
		if b, err := coord.DecodeBarrier(value); err == nil {
			e.Generation, e.Open = b.Generation, b.Open
		}
	case strings.HasPrefix(key, coord.MemberPrefix):
		if m, err := coord.DecodeMember(value); err == nil {
			e.Stopped, e.Leaving, e.Declined = m.Stopped, m.Leaving, m.Declined
		}
	}
	return e
}

// tracked tells whether the specification has a variable for what stands under a key.
func tracked(key string) bool {
	return key == coord.SettingsKey || key == coord.LeaderKey || key == coord.BarrierKey || headOf(key) != "" ||
		strings.HasPrefix(key, coord.MemberPrefix) || strings.HasPrefix(key, coord.ClaimPrefix)
}

// headOf is the node whose assignment begins under a key, "" for every other key.
func headOf(key string) string {
	rest, ok := strings.CutPrefix(key, coord.AssignmentPrefix)
	if !ok || !strings.HasSuffix(rest, "/") {
		return ""
	}
	return strings.TrimSuffix(rest, "/")
}

func sortEntries(es []Entry) {
	sort.Slice(es, func(i, j int) bool { return es[i].Key < es[j].Key })
}
