package measure

import (
	"sort"
	"strings"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/coord"
)

const (
	incarnation = "bench"
	sessionTTL  = coord.Duration(30e9)
)

// modelStore is a store without I/O, in which no session ends by itself.
type modelStore struct {
	entries map[string]coord.Entry
	version int64
}

func (s *modelStore) stamp(now coord.Time) coord.Stamp {
	return coord.Stamp{Time: int64(now) / 1000, Incarnation: incarnation}
}

func (s *modelStore) renew(a coord.Renew, now coord.Time) coord.Event {
	ev := coord.Renewed{Req: a.Req, Stamp: s.stamp(now), Keys: map[string]coord.KeyState{}, Digests: map[string]coord.Digest{}}
	for _, k := range a.Keys {
		if e, ok := s.entries[k]; ok {
			ev.Keys[k] = coord.KeyState{Version: e.Version, Session: e.Session, Left: e.Left}
		}
	}
	for _, p := range a.Digests {
		_, ev.Digests[p] = s.below(p)
	}
	return ev
}

func (s *modelStore) read(a coord.Read, now coord.Time) coord.Event {
	ev := coord.ReadDone{Req: a.Req, Stamp: s.stamp(now), Digests: map[string]coord.Digest{}}
	for _, k := range a.Keys {
		if e, ok := s.entries[k]; ok {
			ev.Entries = append(ev.Entries, e)
		}
	}
	for _, p := range a.Prefixes {
		es, d := s.below(p)
		ev.Entries, ev.Digests[p] = append(ev.Entries, es...), d
	}
	sort.Slice(ev.Entries, func(i, j int) bool { return ev.Entries[i].Key < ev.Entries[j].Key })
	return ev
}

func (s *modelStore) below(prefix string) ([]coord.Entry, coord.Digest) {
	var out []coord.Entry
	sum := backends.Digest{Left: -1}
	for k, e := range s.entries {
		if strings.HasPrefix(k, prefix) {
			out = append(out, e)
			sum.Add(k, e.Version, -1)
		}
	}
	return out, coord.Digest{Sum: sum.Sum, Count: sum.Count, Left: coord.Duration(sum.Left)}
}

// commit returns the answer and the addresses to wake.
func (s *modelStore) commit(a coord.Commit, now coord.Time) (coord.Event, []string) {
	ev := coord.Committed{Req: a.Req, Stamp: s.stamp(now)}
	var wake []string
	for _, t := range a.Txns {
		r := s.apply(t, a.Session)
		if r.Code == coord.OK {
			wake = append(wake, t.Wake...)
		}
		ev.Results = append(ev.Results, r)
	}
	return ev, wake
}

func (s *modelStore) apply(t coord.Txn, session string) coord.Result {
	r := coord.Result{Versions: map[string]int64{}}
	for _, c := range t.Checks {
		r.Versions[c.Key] = s.entries[c.Key].Version
		if r.Versions[c.Key] != c.Version {
			r.Code = coord.Conflict
		}
	}
	if r.Code != coord.OK {
		return r
	}
	r.Versions = map[string]int64{}
	for _, k := range t.Deletes {
		delete(s.entries, k)
	}
	for _, p := range t.Puts {
		s.version++
		e := coord.Entry{Key: p.Key, Value: p.Value, Version: s.version, Left: -1}
		if p.Bound {
			e.Session, e.Left = session, sessionTTL
		}
		s.entries[p.Key] = e
		r.Versions[p.Key] = s.version
	}
	return r
}

func (s *modelStore) end(session string) {
	for k, e := range s.entries {
		if e.Session == session {
			delete(s.entries, k)
		}
	}
}
