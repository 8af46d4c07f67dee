//go:build linux

package linear

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
)

// script is a history written by hand, in ms. Sessions s1 and s2 are of one node and open from 0; their TTL is 100.
type script struct {
	events []event
}

func newScript() *script {
	s := &script{}
	for i, id := range []string{"s1", "s2"} {
		s.add(int64(i), int64(i+1), event{Kind: opened, Session: id, Node: "n", TTL: ms(100), Stamp: stampOf("A")})
	}
	return s
}

func ms(n int64) int64 { return n * int64(time.Millisecond) }

func stampOf(incarnation string) backends.Stamp {
	return backends.Stamp{Incarnation: incarnation, Since: time.Unix(int64(incarnation[0]), 0)}
}

// add adds an event; ret 0 means that no answer came.
func (s *script) add(call, ret int64, e event) *script {
	e.Client, e.Number, e.Call, e.Return = len(s.events), 1, ms(call)+1, ms(ret)
	if e.Kind == opened || e.Kind == killed {
		e.Client = 0 // the sessions are of one process
	}
	s.events = append(s.events, e)
	return s
}

// put is a transaction as "s1 k=a/5 l=b/5 if k=3 → conflict k=4": who, what was put and the version it got, checks, and what came of it. A value that ends in !
// is bound; "-k" deletes.
func (s *script) put(call, ret int64, text string) *script {
	words := strings.Fields(text)
	r := result{Versions: map[string]int64{}}
	txn := backends.Txn{}
	refused := false
	for i, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		var version int64
		value, v, put := strings.Cut(value, "/")
		if !put {
			v = value
		}
		_, _ = fmt.Sscan(v, &version)
		switch {
		case w == "if":
		case strings.HasPrefix(w, "-"):
			txn.Deletes = append(txn.Deletes, w[1:])
		case w == "→":
			r.Outcome, refused = outcome(strings.ReplaceAll(words[i+2], "_", " ")), true
		case refused && strings.Contains(w, "="):
			r.Versions[key] = version
		case refused:
		case put:
			txn.Puts = append(txn.Puts, backends.Put{Key: key, Value: []byte(strings.TrimSuffix(value, "!")), Bound: strings.HasSuffix(value, "!")})
			r.Versions[key] = version
		default:
			txn.Checks = append(txn.Checks, backends.Check{Key: key, Version: version})
		}
	}
	return s.add(call, ret, event{Kind: committed, Session: words[0], Incarnation: "A", Stamp: stampOf("A"), Txns: []backends.Txn{txn}, Results: []result{r}})
}

// read is a read as "k=a/5 l": keys, and what they hold. A session after @ is that which the entry is bound to.
func (s *script) read(call, ret int64, text string) *script {
	e := event{Kind: read, Session: "s2", Stamp: stampOf("A")}
	for _, w := range strings.Fields(text) {
		w, session, _ := strings.Cut(w, "@")
		key, value, there := strings.Cut(w, "=")
		e.Keys = append(e.Keys, key)
		if there {
			value, v, _ := strings.Cut(value, "/")
			entry := backends.Entry{Key: key, Value: []byte(value), Session: session}
			_, _ = fmt.Sscan(v, &entry.Version)
			e.Entries = append(e.Entries, entry)
		}
	}
	return s.add(call, ret, e)
}

// renew is a renewal of a session under the first incarnation.
func (s *script) renew(call, ret int64, session string, o outcome) *script {
	return s.add(call, ret, event{Kind: renewed, Session: session, Incarnation: "A", Stamp: stampOf("A"), Outcome: o})
}

func (s *script) session(call, ret int64, kind what, session string) *script {
	return s.add(call, ret, event{Kind: kind, Session: session, Node: "n", Stamp: stampOf("A")})
}

// What the model allows, and what it does not: each sentence of the contract that is checked, with a history that keeps it and one that breaks it.
func TestModel(t *testing.T) {
	t.Parallel()
	exact := rules{exact: true, slack: time.Millisecond}
	for _, c := range []struct {
		name      string
		rules     rules
		good, bad func(s *script)
	}{
		{"a read is as new as what was acknowledged before it", exact,
			func(s *script) { s.put(2, 3, "s1 k=a/5").put(4, 6, "s1 k=b/6").read(5, 7, "k=a/5").read(8, 9, "k=b/6") },
			func(s *script) { s.put(2, 3, "s1 k=a/5").put(4, 6, "s1 k=b/6").read(7, 8, "k=a/5") }},
		{"reads do not go back", exact,
			func(s *script) { s.put(2, 3, "s1 k=a/5").put(4, 9, "s1 k=b/6").read(5, 6, "k=a/5").read(7, 8, "k=b/6") },
			func(s *script) { s.put(2, 3, "s1 k=a/5").put(4, 9, "s1 k=b/6").read(5, 6, "k=b/6").read(7, 8, "k=a/5") }},
		{"a read of two keys is no snapshot", exact,
			func(s *script) {
				s.put(2, 3, "s1 k=a/5 l=a2/5").read(4, 9, "k=a/5 l=b2/6").put(5, 6, "s1 k=b/6 l=b2/6")
			},
			func(s *script) {
				s.put(2, 3, "s1 k=a/5 l=a2/5").put(4, 5, "s1 k=b/6 l=b2/6").read(6, 9, "k=a/5 l=b2/6")
			}},
		{"an acknowledged write is there", exact,
			func(s *script) { s.put(2, 5, "s1 k=a/5").read(3, 4, "k") },
			func(s *script) { s.put(2, 3, "s1 k=a/5").read(4, 5, "k") }},
		{"what was deleted is gone", exact,
			func(s *script) { s.put(2, 3, "s1 k=a/5").put(4, 7, "s1 -k").read(5, 6, "k=a/5") },
			func(s *script) { s.put(2, 3, "s1 k=a/5").put(4, 5, "s1 -k").read(6, 7, "k=a/5") }},
		{"an unknown outcome may come late, but once", exact,
			func(s *script) {
				s.put(2, 3, "s1 k=a/5").put(4, 5, "s1 k=b/0 → unknown").read(6, 7, "k=a/5").read(8, 9, "k=b/6")
			},
			func(s *script) {
				s.put(2, 3, "s1 k=a/5").put(4, 5, "s1 k=b/0 → unknown").read(6, 7, "k=b/6").read(8, 9, "k=a/5")
			}},
		{"a call that was not answered may have happened, or never", exact,
			func(s *script) { s.put(2, 0, "s1 k=a/0").put(3, 0, "s1 k=b/0").read(6, 7, "k").read(8, 9, "k=b/6") },
			func(s *script) { s.put(2, 0, "s1 k=a/0").read(6, 7, "k=a/5").read(8, 9, "k") }},
		{"a transaction happens as a whole", exact,
			func(s *script) { s.put(2, 3, "s1 k=a/0 l=b/0 → unknown").read(6, 7, "k=a/5").read(8, 9, "l=b/5") },
			func(s *script) { s.put(2, 3, "s1 k=a/0 l=b/0 → unknown").read(6, 7, "k=a/5").read(8, 9, "l") }},
		{"an error says that nothing was applied", exact,
			func(s *script) { s.put(2, 3, "s1 k=a/0 → error").read(6, 7, "k") },
			func(s *script) { s.put(2, 3, "s1 k=a/0 → error").read(6, 7, "k=a/5") }},
		{"only one creates", exact,
			func(s *script) { s.put(2, 5, "s1 k=a/5 if k=0").put(3, 4, "s2 k=b/6 if k=0 → conflict k=5") },
			func(s *script) { s.put(2, 5, "s1 k=a/5 if k=0").put(3, 4, "s2 k=b/6 if k=0") }},
		{"a conflict says what is there", exact,
			func(s *script) { s.put(2, 3, "s1 k=a/5").put(4, 5, "s2 k=b/6 if k=4 → conflict k=5") },
			func(s *script) { s.put(2, 3, "s1 k=a/5").put(4, 5, "s2 k=b/6 if k=4 → conflict k=6") }},
		{"a conflict has a reason", exact,
			func(s *script) { s.put(2, 3, "s1 k=a/5").put(4, 5, "s2 k=b/6 if k=0 → conflict k=5") },
			func(s *script) { s.put(2, 3, "s1 k=a/5").put(4, 5, "s2 k=b/6 if k=5 → conflict k=5") }},
		{"versions grow, across deletion", exact,
			func(s *script) { s.put(2, 3, "s1 k=a/5").put(4, 5, "s1 -k").put(6, 7, "s1 k=b/6") },
			func(s *script) { s.put(2, 3, "s1 k=a/5").put(4, 5, "s1 -k").put(6, 7, "s1 k=b/5") }},
		{"a version that nobody was told is learned once", exact,
			func(s *script) {
				s.put(2, 3, "s1 k=a/0 → unknown").put(4, 5, "s2 k=b/0 if k=0 → conflict k=5").put(6, 7, "s2 k=c/0 if k=0 → conflict k=5")
			},
			func(s *script) {
				s.put(2, 3, "s1 k=a/0 → unknown").put(4, 5, "s2 k=b/0 if k=0 → conflict k=5").put(6, 7, "s2 k=c/0 if k=0 → conflict k=6")
			}},
		{"a session lives for its TTL", exact,
			func(s *script) { s.put(2, 3, "s1 k=a!/5").read(102, 103, "k") },
			func(s *script) { s.put(2, 3, "s1 k=a!/5").read(90, 95, "k") }},
		{"a renewal extends it", exact,
			func(s *script) { s.put(2, 3, "s1 k=a!/5").renew(50, 55, "s1", done).read(151, 153, "k") },
			func(s *script) { s.put(2, 3, "s1 k=a!/5").renew(50, 55, "s1", done).read(140, 145, "k") }},
		{"an exact store ends it then", exact,
			func(s *script) { s.put(2, 3, "s1 k=a!/5").renew(50, 55, "s1", done).read(150, 154, "k=a/5@s1") },
			func(s *script) { s.put(2, 3, "s1 k=a!/5").renew(50, 55, "s1", done).read(157, 158, "k=a/5@s1") }},
		{"what is bound vanishes for good", rules{},
			func(s *script) { s.put(2, 3, "s1 k=a!/5").renew(101, 110, "s1", done).read(111, 112, "k=a/5@s1") },
			func(s *script) { s.put(2, 3, "s1 k=a!/5").read(105, 106, "k").renew(107, 110, "s1", done) }},
		{"an ended session writes nothing", rules{},
			func(s *script) {
				s.put(2, 3, "s1 k=a!/5").read(105, 106, "k").put(107, 110, "s1 k=b/6 → session_lost")
			},
			func(s *script) { s.put(2, 3, "s1 k=a!/5").read(105, 106, "k").put(107, 110, "s1 k=b/6") }},
		{"a session is lost only when it has ended", rules{},
			func(s *script) { s.put(2, 3, "s1 k=a!/5").renew(105, 106, "s1", lost).read(107, 108, "k") },
			func(s *script) { s.put(2, 3, "s1 k=a!/5").renew(105, 106, "s1", lost).read(107, 108, "k=a/5@s1") }},
		{"where a driver gives it up, what is bound may stay, but it writes nothing more", rules{givesUp: true},
			func(s *script) { s.put(2, 3, "s1 k=a!/5").renew(105, 106, "s1", lost).read(107, 108, "k=a/5@s1") },
			func(s *script) { s.put(2, 3, "s1 k=a!/5").renew(105, 106, "s1", lost).put(107, 108, "s1 k=b/6") }},
		{"but not before its TTL", rules{givesUp: true},
			func(s *script) { s.put(2, 3, "s1 k=a!/5").renew(95, 106, "s1", lost).read(107, 108, "k=a/5@s1") },
			func(s *script) { s.put(2, 3, "s1 k=a!/5").renew(90, 95, "s1", lost).read(107, 108, "k=a/5@s1") }},
		{"closing ends it at once", exact,
			func(s *script) { s.put(2, 3, "s1 k=a!/5").session(4, 7, closed, "s1").read(5, 6, "k=a/5@s1") },
			func(s *script) { s.put(2, 3, "s1 k=a!/5").session(4, 5, closed, "s1").read(6, 7, "k=a/5@s1") }},
		{"an end is seen by all at one moment", exact,
			func(s *script) {
				s.put(2, 3, "s1 k=a!/5").renew(50, 51, "s2", done).put(90, 102, "s2 k=b!/6 if k=5").read(100, 101, "k=a/5@s1").read(103, 104, "k=b/6@s2")
			},
			func(s *script) {
				s.put(2, 3, "s1 k=a!/5").renew(50, 51, "s2", done).put(90, 110, "s2 k=b!/6 if k=5").read(103, 104, "k").read(111, 112, "k=b/6@s2")
			}},
		{"but for transactions that began before it, where that is so", rules{ahead: true},
			func(s *script) {
				s.put(2, 3, "s1 k=a!/5").renew(50, 51, "s2", done).put(90, 110, "s2 k=b!/6 if k=5").read(103, 104, "k").read(111, 112, "k=b/6@s2")
			},
			func(s *script) {
				s.put(2, 3, "s1 k=a!/5").renew(50, 51, "s2", done).put(90, 110, "s2 k=b!/6 if k=5").read(95, 96, "k").read(111, 112, "k=b/6@s2")
			}},
		{"and a renewal that began before it", rules{ahead: true},
			func(s *script) {
				s.put(2, 3, "s1 k=a!/5").renew(95, 110, "s1", done).read(103, 104, "k").read(111, 112, "k=a/5@s1")
			},
			func(s *script) {
				s.put(2, 3, "s1 k=a!/5").renew(95, 110, "s1", done).read(111, 112, "k").read(113, 114, "k=a/5@s1")
			}},
		{"what is not bound stays", exact,
			func(s *script) { s.put(2, 3, "s1 k=a/5").session(4, 5, closed, "s1").read(6, 7, "k=a/5") },
			func(s *script) { s.put(2, 3, "s1 k=a/5").session(4, 5, closed, "s1").read(6, 7, "k") }},
		{"entries name their session", exact,
			func(s *script) { s.put(2, 3, "s1 k=a!/5").read(6, 7, "k=a/5@s1") },
			func(s *script) { s.put(2, 3, "s1 k=a!/5").read(6, 7, "k=a/5@s2") }},
		{"a superseded session cannot be renewed", exact,
			func(s *script) { s.put(2, 3, "s1 k=a!/5").session(4, 7, superseded, "s2").renew(5, 6, "s1", done) },
			func(s *script) { s.put(2, 3, "s1 k=a!/5").session(4, 5, superseded, "s2").renew(6, 7, "s1", done) }},
		{"nor bind, but it may write", exact,
			func(s *script) {
				s.session(4, 5, superseded, "s2").put(6, 7, "s1 k=a/5").put(8, 9, "s1 k=b!/6 → superseded")
			},
			func(s *script) { s.session(4, 5, superseded, "s2").put(6, 7, "s1 k=a!/5") }},
		{"an older session supersedes no newer one", exact,
			func(s *script) { s.put(2, 3, "s2 k=a!/5").session(4, 5, superseded, "s1").renew(6, 7, "s2", done) },
			func(s *script) { s.put(2, 3, "s2 k=a!/5").session(4, 5, superseded, "s1").renew(6, 7, "s2", overtook) }},
		{"only a proof ends the session of a killed process early", rules{proofs: true},
			func(s *script) { s.put(2, 3, "s1 k=a!/5").add(4, 0, event{Kind: killed}).put(5, 6, "s2 k=b!/6 if k=0") },
			func(s *script) { s.put(2, 3, "s1 k=a!/5").put(5, 6, "s2 k=b!/6 if k=0") }},
		{"nothing is written under an earlier incarnation", exact,
			func(s *script) {
				s.add(2, 5, event{Kind: read, Session: "s1", Stamp: stampOf("B")}).put(3, 4, "s1 k=a/5")
			},
			func(s *script) {
				s.add(2, 3, event{Kind: read, Session: "s1", Stamp: stampOf("B")}).put(4, 5, "s1 k=a/5")
			}},
		{"nor renewed", exact,
			func(s *script) {
				s.add(2, 5, event{Kind: read, Session: "s1", Stamp: stampOf("B")}).renew(3, 4, "s1", done)
			},
			func(s *script) {
				s.add(2, 3, event{Kind: read, Session: "s1", Stamp: stampOf("B")}).renew(4, 5, "s1", done)
			}},
		{"all that is bound vanishes in one moment", rules{whole: true},
			func(s *script) {
				s.put(2, 3, "s1 cas/0=a!/5").put(2, 3, "s1 cas/1=b!/5").read(105, 106, "cas/0").read(107, 108, "cas/1")
			},
			func(s *script) {
				s.put(2, 3, "s1 cas/0=a!/5").put(2, 3, "s1 cas/1=b!/5").read(105, 106, "cas/0").read(107, 108, "cas/1=b/5@s1")
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			good, bad := newScript(), newScript()
			c.good(good)
			c.bad(bad)
			for _, p := range judge(good.events, c.rules, patience).illegal {
				t.Errorf("the good history is refused: %s\n%s", p.name, explain(p))
			}
			if len(judge(bad.events, c.rules, patience).illegal) == 0 {
				t.Error("the bad history is accepted")
			}
		})
	}
}
