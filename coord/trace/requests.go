package trace

import "fmt"

// request is something that a process asked of the store.
type request struct {
	proc, node     string
	act            Act
	sent, answered int // lines, from 1; 0: it may be carried out at any time later
	told           bool
	txns           []*txn
	done           bool // it was carried out: what there is of it but transactions
	last           bool // of renewals: the last that succeeded of its session, or the first in an incarnation
}

// txn is one transaction of a request, and what became of it.
type txn struct {
	Txn
	req      *request
	do       Do
	key      string
	ok       bool             // it is known to have been applied
	perhaps  bool             // it may have been
	unsaid   bool             // the answer did not say how it ended: it may be carried out later
	placed   bool             // it was put into the history
	placing  bool             // that is under way
	late     bool             // nobody was told that it was applied, and it was found too late
	versions map[string]int64 // of its puts
}

type reqKey struct {
	proc string
	req  uint64
}

// Codes in coord's words.
const (
	codeOK       = "ok"
	codeConflict = "conflict"
	codeUnknown  = "unknown"
	codeLost     = "session lost"
)

// requests finds all that was asked of the store, with its answers; exact tells whether the trace says itself what the store did.
func requests(lines []Line) (all map[reqKey]*request, exact bool, err error) {
	all = map[reqKey]*request{}
	sessions := map[string]string{}
	for i := range lines {
		l := &lines[i]
		switch l.By {
		case ByMachine:
			if err := answered(all, l, i+1); err != nil {
				return nil, false, err
			}
			if l.State != nil {
				sessions[l.Proc] = l.State.Session
			}
			for _, a := range l.Actions {
				if a.Req == 0 && a.Name != "CloseSession" {
					continue
				}
				if own := sessions[l.Proc]; len(a.Txns) > 0 && a.Session != own {
					return nil, false, fmt.Errorf("trace: line %d: %s commits under session %q, and its own is %q", i+1, l.Proc, a.Session, own)
				}
				r := &request{proc: l.Proc, node: l.Node, act: a, sent: i + 1}
				for j := range a.Txns {
					do, key := kindOf(&a.Txns[j])
					r.txns = append(r.txns, &txn{Txn: a.Txns[j], req: r, do: do, key: key, perhaps: true})
				}
				all[reqKey{l.Proc, a.Req}] = r
			}
		case ByStore:
			exact = true
			if r := all[reqKey{l.Proc, l.Event.Req}]; r == nil && l.Event.Req != 0 {
				return nil, false, fmt.Errorf("trace: line %d: the store answers request %d of %s, which was not sent", i+1, l.Event.Req, l.Proc)
			}
		case ByWorld:
		default:
			return nil, false, fmt.Errorf("trace: line %d: it is by %q: want \"\", %q or %q", i+1, l.By, ByStore, ByWorld)
		}
	}
	return all, exact, nil
}

// answered notes the answer that a line brings. One that was given up has none; what comes later is not told to the machine.
func answered(all map[reqKey]*request, l *Line, n int) error {
	e := &l.Event
	if e.Req == 0 {
		return nil
	}
	r := all[reqKey{l.Proc, e.Req}]
	if r == nil {
		return fmt.Errorf("trace: line %d: %s is told of request %d, which it did not send", n, l.Proc, e.Req)
	}
	if r.told {
		return fmt.Errorf("trace: line %d: %s is told of request %d twice", n, l.Proc, e.Req)
	}
	if r.told = true; e.Code != codeUnknown && e.Name != "Closed" { // which is told also when it failed; it may be carried out later
		r.answered = n
	}
	if e.Name != "Committed" {
		return nil
	}
	for j, t := range r.txns {
		switch {
		case e.Code == codeOK && j < len(e.Results):
			t.outcome(e.Results[j])
		case e.Code != codeUnknown:
			t.perhaps = false
		}
	}
	return nil
}

// outcome takes over how the transaction ended.
func (t *txn) outcome(r Result) {
	t.ok, t.perhaps = r.Code == codeOK, r.Code == codeUnknown
	t.unsaid = t.perhaps
	if t.ok {
		t.versions = map[string]int64{}
		for _, v := range r.Versions {
			t.versions[v.Key] = v.Version
		}
	}
}

// lastRenewals marks the renewals that say something that the others do not: the last of a session, and each first one in an incarnation.
func lastRenewals(lines []Line, all map[reqKey]*request) {
	last := map[string]*request{}
	for i := range lines {
		l := &lines[i]
		if l.By != ByMachine || l.Event.Name != "Renewed" || l.Event.Code != codeOK {
			continue
		}
		r := all[reqKey{l.Proc, l.Event.Req}]
		if was := last[r.act.Session]; was != nil && was.act.Incarnation == r.act.Incarnation {
			was.last = false
		}
		r.last, last[r.act.Session] = true, r
	}
}
