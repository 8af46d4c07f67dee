//go:build linux

package linear

import (
	"fmt"
	"strings"

	"github.com/anishathalye/porcupine"
)

const (
	maxKeys     = 8   // of one part
	maxSessions = 256 // of one history
)

// state is what a store knows. It is compared with ==.
type state struct {
	incarnation       int // the newest that was seen
	ended, superseded sessions
	givenUp           sessions // by their drivers: they may not have ended yet, but nothing more is done under them
	keys              [maxKeys]entry
}

// entry is what a key holds. The zero entry is that of a key that never was.
type entry struct {
	writer  int   // the put that wrote it; 0: the key is absent
	session int   // that it is bound to; 0: none
	version int64 // 0: nobody has been told
	top     int64 // the greatest version that is known of the key, ever
}

// sessions is a set.
type sessions [maxSessions / 64]uint64

func (s *sessions) add(n int)     { s[n/64] |= 1 << (n % 64) }
func (s sessions) has(n int) bool { return s[n/64]&(1<<(n%64)) != 0 }

// operation is one step of the model. Keys, sessions, incarnations and puts are numbers; 0 is none.
type operation struct {
	kind        kind
	session     int
	incarnation int         // named by the request, or seen in the answer
	older       []int       // sessions that a supersede tells
	late        bool        // of kind over: the driver may have given the session up
	txn         transaction // of kinds apply and refuse
	seen        []sight     // of kinds see and refuse
	about       string      // for people
}

type kind int

const (
	see        kind = iota // keys are so
	apply                  // a transaction was applied
	refuse                 // a check did not hold
	attempt                // a transaction may have been applied
	alive                  // a session was renewed
	over                   // a session was found to have ended
	end                    // a session ends
	supersede              // older sessions are told
	attemptSup             // they may have been
	overtaken              // a session was found to be superseded
	lookAt                 // the data was found to be of an incarnation
)

// transaction is what a commit asks for.
type transaction struct {
	checks  []check
	puts    []put
	deletes []int
	seen    bool // one of its puts was read: it has happened
}

type check struct {
	key     int
	version int64
}

type put struct {
	key, writer int
	version     int64 // 0: nobody was told
	bound       bool
}

// sight is what somebody was told about a key.
type sight struct {
	key     int
	writer  int      // -1: the answer does not say
	session int      // -1: the answer does not say
	version int64    // 0: the key is absent
	over    sessions // whose end may have been seen before the end of transactions that began before it
}

var model = porcupine.Model{
	Init: func() any { return state{} },
	Step: func(s, op, _ any) (bool, any) {
		next := s.(state)
		ok := next.step(op.(*operation))
		return ok, next
	},
	DescribeOperation: func(op, _ any) string { return op.(*operation).about },
	DescribeState:     func(s any) string { return s.(state).String() },
}

// step carries out an operation and tells whether the contract allows it here. If not, the state is of no use any more.
func (s *state) step(op *operation) bool {
	switch op.kind {
	case see:
		return s.allSeen(op.seen)
	case apply:
		return !s.givenUp.has(op.session) && s.may(op) && s.apply(op)
	case attempt:
		if before := *s; !s.may(op) || !s.apply(op) {
			*s = before
			return !op.txn.seen
		}
		return true
	case refuse:
		return s.allSeen(op.seen) && !s.hold(op.txn.checks)
	case alive:
		return !s.givenUp.has(op.session) && !s.ended.has(op.session) && !s.superseded.has(op.session) && s.in(op.incarnation)
	case over:
		if op.late {
			s.givenUp.add(op.session)
		}
		return op.late || s.ended.has(op.session)
	case end:
		s.end(op.session)
		return true
	case supersede, attemptSup:
		if s.ended.has(op.session) || s.superseded.has(op.session) {
			return op.kind == attemptSup
		}
		for _, o := range op.older {
			s.superseded.add(o)
		}
		return true
	case overtaken:
		return s.superseded.has(op.session)
	case lookAt:
		return s.in(op.incarnation)
	}
	return false
}

// in tells whether the data can be of an incarnation. It never is of an earlier one again.
func (s *state) in(incarnation int) bool {
	ok := incarnation >= s.incarnation
	s.incarnation = max(s.incarnation, incarnation)
	return ok
}

// may tells whether a transaction is to be applied.
func (s *state) may(op *operation) bool {
	if s.ended.has(op.session) || !s.in(op.incarnation) {
		return false
	}
	for _, p := range op.txn.puts {
		if p.bound && s.superseded.has(op.session) {
			return false
		}
	}
	return s.hold(op.txn.checks)
}

// hold tells whether checks hold. A check names a version of which the writer is known, so it never means an entry whose version nobody was told.
func (s *state) hold(checks []check) bool {
	for _, c := range checks {
		e := s.keys[c.key]
		if e.writer == 0 && c.version != 0 || e.writer != 0 && (e.version == 0 || e.version != c.version) {
			return false
		}
	}
	return true
}

// apply writes, and tells whether the versions are greater than every version before.
func (s *state) apply(op *operation) bool {
	for _, k := range op.txn.deletes {
		s.keys[k] = entry{top: s.keys[k].top}
	}
	for _, p := range op.txn.puts {
		e := entry{writer: p.writer, version: p.version, top: max(s.keys[p.key].top, p.version)}
		if p.version != 0 && p.version <= s.keys[p.key].top {
			return false
		}
		if p.bound {
			e.session = op.session
		}
		s.keys[p.key] = e
	}
	return true
}

// end ends a session with all that is bound to it.
func (s *state) end(session int) {
	s.ended.add(session)
	for k, e := range s.keys {
		if e.writer != 0 && e.session == session {
			s.keys[k] = entry{top: e.top}
		}
	}
}

func (s *state) allSeen(all []sight) bool {
	for _, o := range all {
		if !s.seen(o) {
			return false
		}
	}
	return true
}

// seen tells whether a key is as somebody was told, and learns its version from that.
func (s *state) seen(o sight) bool {
	e := &s.keys[o.key]
	if o.version == 0 && e.session != 0 && o.over.has(e.session) {
		return true
	}
	if o.version == 0 || e.writer == 0 {
		return o.version == 0 && e.writer == 0
	}
	if o.writer != -1 && o.writer != e.writer || o.session != -1 && o.session != e.session {
		return false
	}
	if e.version == 0 {
		if o.version <= e.top {
			return false
		}
		e.version, e.top = o.version, o.version
	}
	return e.version == o.version
}

// String names what is there.
func (s state) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "incarnation %d", s.incarnation)
	for k, e := range s.keys {
		if e.writer != 0 {
			fmt.Fprintf(&b, "; key %d: put %d, version %d, session %d", k, e.writer, e.version, e.session)
		}
	}
	return b.String()
}
