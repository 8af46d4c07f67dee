package trace

import (
	"slices"

	"github.com/rebalancer-go/rebalancer/coord"
)

// Alteration changes one event of a trace, so that it tells of what cannot have been. It shows that the judges are not blind.
type Alteration struct {
	Name string
	// do changes a line, or returns false where there is nothing to change. drop: the line is left out.
	do func(l *Line) (done, drop bool)
}

// Alterations are what a judge must refuse.
func Alterations() []Alteration { return append(holdings(), coordination()...) }

func keep(name string, do func(l *Line) bool) Alteration {
	return Alteration{name, func(l *Line) (bool, bool) { return do(l), false }}
}

// holdings are alterations of what nodes hold and work.
func holdings() []Alteration {
	return []Alteration{
		keep("work begins under another fence", func(l *Line) bool {
			return onAction(l, "StartWork", func(a *Act) { a.Fence++ })
		}),
		keep("a node believes in another fence", func(l *Line) bool {
			all := l.resources()
			for _, name := range names(all, nil) {
				if r := all[name]; r.Fence != 0 {
					r.Fence++
					all[name] = r
					return true
				}
			}
			return false
		}),
		keep("a claim is answered with another version", func(l *Line) bool {
			return l.By == ByMachine && onVersion(l, coord.ClaimPrefix)
		}),
		{"a worker's end is left out", func(l *Line) (bool, bool) { return l.Event.Name == "Stopped", true }},
		keep("a worker of another fence ends", func(l *Line) bool {
			if l.Event.Name != "Stopped" {
				return false
			}
			l.Event.Fence++
			return true
		}),
		keep("a release names another version", func(l *Line) bool { return onCheck(l, DoRelease, coord.ClaimPrefix) }),
		keep("a claim relies on another assignment", func(l *Line) bool { return onCheck(l, DoClaim, coord.AssignmentPrefix) }),
	}
}

// coordination are alterations of what coordinators do.
func coordination() []Alteration {
	return []Alteration{
		keep("a plan carries another term", func(l *Line) bool {
			return onTxn(l, DoPublish, func(t *Txn) bool { t.assignment().Epoch++; return true })
		}),
		keep("a plan is written in another term", func(l *Line) bool { return onCheck(l, DoPublish, coord.LeaderKey) }),
		keep("a plan gives something else", func(l *Line) bool {
			return onTxn(l, DoPublish, func(t *Txn) bool {
				a := t.assignment()
				given := len(a.Share) > 0
				a.Share = nil
				return given
			})
		}),
		keep("a node coordinates in another term", func(l *Line) bool {
			done := l.State != nil && l.State.Epoch != 0
			if done {
				l.State.Epoch++
			}
			return done
		}),
		keep("a claim is made under another session", func(l *Line) bool {
			for i := range l.Actions {
				a := &l.Actions[i]
				if len(a.Txns) == 0 {
					continue
				}
				if do, _ := kindOf(&a.Txns[0]); do == DoClaim {
					a.Session += "x"
					return true
				}
			}
			return false
		}),
	}
}

// Alter changes the n-th event, from 0, that an alteration can change; ok is false when there are not so many. lines is left as it is.
func Alter(lines []Line, a Alteration, n int) (altered []Line, ok bool, err error) {
	altered, err = copyOf(lines)
	if err != nil {
		return nil, false, err
	}
	for i := range altered {
		one, err := copyOf(altered[i : i+1])
		if err != nil {
			return nil, false, err
		}
		done, drop := a.do(&one[0])
		if !done {
			continue
		}
		if n--; n >= 0 {
			continue
		}
		if drop {
			return append(altered[:i], altered[i+1:]...), true, nil
		}
		altered[i] = one[0]
		return altered, true, nil
	}
	return nil, false, nil
}

func onAction(l *Line, name string, do func(*Act)) bool {
	for i := range l.Actions {
		if l.Actions[i].Name == name {
			do(&l.Actions[i])
			return true
		}
	}
	return false
}

func onTxn(l *Line, kind Do, do func(*Txn) bool) bool {
	for i := range l.Actions {
		for j := range l.Actions[i].Txns {
			t := &l.Actions[i].Txns[j]
			if is, _ := kindOf(t); is == kind && do(t) {
				return true
			}
		}
	}
	return false
}

// assignment is the one that a transaction puts.
func (t *Txn) assignment() *Entry {
	_, key := kindOf(t)
	return &t.Puts[slices.IndexFunc(t.Puts, func(e Entry) bool { return e.Key == key })]
}

func onCheck(l *Line, kind Do, prefix string) bool {
	return onTxn(l, kind, func(t *Txn) bool {
		for i := range t.Checks {
			if c := &t.Checks[i]; c.Version != 0 && len(c.Key) >= len(prefix) && c.Key[:len(prefix)] == prefix {
				c.Version++
				return true
			}
		}
		return false
	})
}

func onVersion(l *Line, prefix string) bool {
	for i := range l.Event.Results {
		r := &l.Event.Results[i]
		for j := range r.Versions {
			if k := &r.Versions[j]; r.Code == codeOK && len(k.Key) >= len(prefix) && k.Key[:len(prefix)] == prefix {
				k.Version++
				return true
			}
		}
	}
	return false
}

func (l *Line) resources() map[string]coord.ResourceProjection {
	if l.State == nil {
		return nil
	}
	return l.State.Resources
}
