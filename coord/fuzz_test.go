package coord

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
)

// storm feeds a machine with events that no store would send in that order, and answers its requests with anything. Whatever comes,
// it must not panic, must not ask for a wake in the past twice in a row without progress, must not start a
// resource twice, and must not release what it works.
type storm struct {
	t       testing.TB
	rng     *rand.Rand
	m       *Machine
	now     Time
	open    []Action         // unanswered requests
	works   map[string]int64 // fence by resource, of running workers
	session int
	done    bool
}

var stormNames = []string{"a", "b", "c"}

func newStorm(t testing.TB, seed uint64, mode Mode, origin Origin) *storm {
	s := &storm{t: t, rng: rand.New(rand.NewPCG(seed, 1)), works: map[string]int64{}}
	s.m = New(Config{Group: "g", Node: "n", Instance: "i", Mode: mode, Origin: origin, Static: stormNames, TTL: 6 * second, Seed: seed})
	s.step(Start{})
	return s
}

func (s *storm) step(ev Event) {
	if s.done {
		return
	}
	for _, a := range s.m.Step(s.now, ev) {
		s.take(a)
	}
}

func (s *storm) take(a Action) {
	switch a := a.(type) {
	case OpenSession, CloseSession, Renew, Read, List:
		s.open = append(s.open, a)
	case Commit:
		for _, t := range a.Txns {
			for _, d := range t.Deletes {
				for name, f := range s.works {
					if d == ClaimKey(name) && s.m.res[name].fence == f {
						s.t.Fatalf("released %q under its worker", name)
					}
				}
			}
		}
		s.open = append(s.open, a)
	case StartWork:
		if _, runs := s.works[a.Resource]; runs {
			s.t.Fatalf("started %q twice", a.Resource)
		}
		s.works[a.Resource] = a.Fence
	case Finish:
		s.done = true
	}
}

func (s *storm) run(steps int) {
	for range steps {
		s.now += Time(s.rng.Int64N(int64(200 * millisecond)))
		if w := s.m.Wake(); w < s.now+Time(second) && s.rng.IntN(3) == 0 {
			s.now = max(s.now, w)
			s.step(Tick{})
			continue
		}
		s.step(s.event())
	}
}

func (s *storm) event() Event {
	if len(s.open) > 0 && s.rng.IntN(4) != 0 {
		i := s.rng.IntN(len(s.open))
		a := s.open[i]
		s.open = append(s.open[:i], s.open[i+1:]...)
		return s.answer(a)
	}
	name := stormNames[s.rng.IntN(len(stormNames))]
	fence, runs := s.works[name]
	switch s.rng.IntN(12) {
	case 0:
		return Hinted{Address: NodeAddress("n")}
	case 1:
		return Hinted{Address: CoordinatorAddress}
	case 2, 3, 4:
		if runs {
			delete(s.works, name)
		}
		return Stopped{Resource: name, Fence: fence}
	case 5:
		return Stuck{Resource: name, Fence: fence}
	case 6:
		if runs {
			delete(s.works, name)
		}
		return CannotOpen{Resource: name, Fence: fence, Err: fmt.Errorf("no")}
	case 7:
		return Doubt{Resource: name, Fence: fence}
	case 8:
		return Troubles{Reasons: map[string]string{name: "trouble"}}
	case 9:
		if s.rng.IntN(40) == 0 {
			return Leave{}
		}
		return NoHints{}
	}
	return Tick{}
}

func (s *storm) stamp() Stamp {
	inc := "x"
	if s.rng.IntN(20) == 0 {
		inc = fmt.Sprint("y", s.rng.IntN(2))
	}
	return Stamp{Time: int64(s.now)/1000 + 1, Incarnation: inc, Since: s.rng.Int64N(2)}
}

func (s *storm) code(of ...Code) Code {
	if s.rng.IntN(3) != 0 {
		return OK
	}
	return of[s.rng.IntN(len(of))]
}

func (s *storm) answer(a Action) Event {
	switch a := a.(type) {
	case OpenSession:
		s.session++
		return Opened{Req: a.Req, Code: s.code(Failed), Session: fmt.Sprint("s", s.session), TTL: a.TTL, Stamp: s.stamp()}
	case CloseSession:
		return Closed{Req: a.Req}
	case List:
		return Listed{Req: a.Req, Names: stormNames[:s.rng.IntN(4)]}
	case Renew:
		keys := map[string]KeyState{}
		for _, k := range a.Keys {
			if s.rng.IntN(2) == 0 {
				keys[k] = KeyState{Version: s.version(), Session: s.holder(), Left: Duration(s.rng.Int64N(int64(second)))}
			}
		}
		return Renewed{Req: a.Req, Code: s.code(Failed, Unknown, SessionLost, Reincarnated), Stamp: s.stamp(), Keys: keys,
			Digests: map[string]Digest{MemberPrefix: {Sum: s.rng.Uint64N(3), Left: second}}}
	case Read:
		return ReadDone{Req: a.Req, Code: s.code(Failed), Stamp: s.stamp(), Entries: s.entries(a), Digests: map[string]Digest{MemberPrefix: {Sum: s.rng.Uint64N(3)}}}
	case Commit:
		return s.results(a)
	}
	return Tick{}
}

func (s *storm) version() int64 { return 1 + s.rng.Int64N(5) }

func (s *storm) holder() string { return []string{"", "s1", "other", s.m.sess.id}[s.rng.IntN(4)] }

func (s *storm) results(a Commit) Event {
	ev := Committed{Req: a.Req, Code: s.code(Failed, Unknown, SessionLost, Reincarnated), Stamp: s.stamp()}
	for _, t := range a.Txns {
		r := Result{Code: s.code(Conflict, TooYoung, Unknown, Failed), Versions: map[string]int64{}}
		for _, p := range t.Puts {
			r.Versions[p.Key] = s.version() + int64(s.now)
		}
		if r.Code == Conflict {
			r.Versions = map[string]int64{}
			for _, c := range t.Checks {
				r.Versions[c.Key] = s.rng.Int64N(3)
			}
		}
		ev.Results = append(ev.Results, r)
	}
	return ev
}

func (s *storm) entries(r Read) []Entry {
	values := map[string][]byte{
		SettingsKey:    EncodeSettings(s.m.settings()),
		LeaderKey:      encode(Leader{Node: "n"}),
		BarrierKey:     encode(Barrier{Generation: s.version(), Open: s.rng.IntN(2) == 0}),
		MemberKey("n"): encode(Member{Node: "n", Instance: "i", List: stormNames, Stopped: s.version()}),
		MemberKey("o"): encode(Member{Node: "o", Instance: "o", List: stormNames, Leaving: s.rng.IntN(2) == 0}),
		AssignmentKey("n"): encode(Assignment{Epoch: 1, Generation: s.version(), Share: stormNames[:s.rng.IntN(4)],
			Leaving: map[string]string{"c": "o"}}),
		ClaimKey("a"): encode(Claim{Resource: "a", Node: "o"}),
	}
	var es []Entry
	for _, k := range sortedKeys(values) {
		v := values[k]
		if s.rng.IntN(8) == 0 {
			v = v[:s.rng.IntN(len(v))]
		}
		if s.rng.IntN(3) != 0 {
			es = append(es, Entry{Key: k, Value: v, Version: s.version(), Session: s.holder(), Left: Duration(s.rng.Int64N(int64(second))) - 1})
		}
	}
	return es
}

func TestAnyOrderOfEvents(t *testing.T) {
	t.Parallel()
	for seed := range uint64(400) {
		for _, mode := range []Mode{ResourceBarrier, GlobalBarrier} {
			for _, origin := range []Origin{OriginStatic, OriginRegistered, OriginDiscovered} {
				newStorm(t, seed, mode, origin).run(300)
			}
		}
	}
}

func FuzzStep(f *testing.F) {
	f.Add([]byte("12345678"), false)
	f.Fuzz(func(t *testing.T, b []byte, global bool) {
		mode := ResourceBarrier
		if global {
			mode = GlobalBarrier
		}
		var seed [8]byte
		copy(seed[:], b)
		newStorm(t, binary.LittleEndian.Uint64(seed[:]), mode, OriginStatic).run(200 + len(b))
	})
}
