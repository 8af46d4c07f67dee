package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rebalancer-go/rebalancer/coord"
)

// open begins a session.
func (s *store) open(at vtime, node string, req coord.OpenSession) coord.Opened {
	s.notice(at)
	s.ids++
	s.opened++
	id := "s" + strconv.Itoa(s.ids)
	if !s.has(StoreUniqueSessions) {
		id = "s" + strconv.Itoa(s.opened)
	}
	s.sessions[id] = &session{id: id, node: node, order: s.ids, ttl: vtime(req.TTL), ends: s.clock(at) + vtime(req.TTL), fair: at + vtime(req.TTL)}
	return coord.Opened{Req: req.Req, Code: coord.OK, Session: id, TTL: req.TTL, Stamp: s.stamp(at)}
}

// end ends a session with all that is bound to it.
func (s *store) end(at vtime, id string) {
	s.notice(at)
	x := s.sessions[id]
	if x == nil {
		return
	}
	delete(s.sessions, id)
	for _, k := range append([]string(nil), s.keys...) {
		if s.rows[k].session == id {
			s.remove(k)
		}
	}
}

// refuse says why a request under a session and an incarnation cannot be carried out, or OK. A node that was superseded learns that
// first, whichever incarnation it has accepted.
func (s *store) refuse(at vtime, session, incarnation string, compare, alive StoreGuards) coord.Code {
	switch {
	case s.taken(at, session):
		return coord.Taken
	case incarnation != "" && incarnation != s.incarnation && s.has(compare):
		return coord.Reincarnated
	case s.has(alive) && !s.alive(at, session):
		return coord.SessionLost
	}
	return coord.OK
}

// taken tells whether a live session was superseded.
func (s *store) taken(at vtime, id string) bool {
	x := s.sessions[id]
	return x != nil && x.taken && s.alive(at, id) && s.has(StoreSupersedeRefuses)
}

// supersede marks the older sessions of a name. Those whose process is proved to be dead end at once.
func (s *store) supersede(at vtime, req coord.Supersede, dead func(id string) bool) coord.Superseded {
	s.notice(at)
	re := coord.Superseded{Req: req.Req, Stamp: s.stamp(at)}
	x := s.sessions[req.Session]
	switch {
	case x == nil || !s.alive(at, req.Session):
		re.Code = coord.SessionLost
		return re
	case s.taken(at, x.id):
		re.Code = coord.Taken
		return re
	}
	for id, o := range s.sessions { // each by itself
		if o.node != req.Node || o.order >= x.order || !s.alive(at, id) {
			continue
		}
		if dead(id) || !s.has(StoreSupersedeKeeps) {
			s.end(at, id)
			continue
		}
		y := *o
		y.taken = true
		s.sessions[id] = &y
		re.Older++
	}
	return re
}

func (s *store) renew(at vtime, req coord.Renew) coord.Renewed {
	s.notice(at)
	re := coord.Renewed{Req: req.Req, Stamp: s.stamp(at)}
	re.Code = s.refuse(at, req.Session, req.Incarnation, StoreRenewCompares, StoreRenewAlive)
	x := s.sessions[req.Session]
	if re.Code == coord.OK && x == nil {
		re.Code = coord.SessionLost
	}
	if re.Code != coord.OK {
		return re
	}
	y := *x
	y.ends, y.fair = s.clock(at)+x.ttl, at+x.ttl
	s.sessions[x.id] = &y
	if req.Sweep && s.has(StoreExpiryAware) {
		s.sweep(at)
	}
	re.Keys = make(map[string]coord.KeyState, len(req.Keys))
	for _, k := range req.Keys {
		r := s.entry(at, k)
		if r == nil && !s.has(StoreExpiryAware) {
			r = s.rows[k]
		}
		if r != nil {
			re.Keys[k] = coord.KeyState{Version: r.version, Session: r.session, Left: s.left(at, r)}
		}
	}
	re.Digests = make(map[string]coord.Digest, len(req.Digests))
	for _, p := range req.Digests {
		if s.mute {
			break
		}
		re.Digests[p] = s.digest(at, p, !s.has(StoreExpiryAware))
	}
	return re
}

func (s *store) read(at vtime, req coord.Read) coord.ReadDone {
	s.notice(at)
	re := coord.ReadDone{Req: req.Req, Stamp: s.stamp(at), Digests: make(map[string]coord.Digest, len(req.Prefixes))}
	seen := map[string]bool{}
	want := func(k string, r *row) { seen[k] = true }
	for _, p := range req.Prefixes {
		s.below(at, p, false, want)
		re.Digests[p] = s.digest(at, p, false)
	}
	for _, k := range req.Keys {
		if r := s.entry(at, k); r != nil {
			seen[k] = true
		}
	}
	for _, k := range s.keys {
		if r := s.rows[k]; seen[k] {
			left := s.left(at, r)
			if s.mute && strings.HasPrefix(k, coord.ClaimPrefix) {
				left = -1
			}
			re.Entries = append(re.Entries, coord.Entry{Key: k, Value: r.value, Version: r.version, Session: r.session, Left: left})
		}
	}
	return re
}

// applied is called with each transaction that is about to change the store, which still shows what was there before.
type applied func(session string, t coord.Txn)

func (s *store) commit(at vtime, req coord.Commit, watch applied) coord.Committed {
	s.notice(at)
	re := coord.Committed{Req: req.Req, Stamp: s.stamp(at)}
	re.Code = s.refuse(at, req.Session, req.Incarnation, StoreCommitCompares, StoreCommitAlive)
	taken := re.Code == coord.Taken
	if taken {
		re.Code = coord.OK
	}
	if re.Code != coord.OK {
		return re
	}
	for _, t := range req.Txns {
		switch bound := slices.ContainsFunc(t.Puts, func(p coord.Put) bool { return p.Bound }); {
		case taken && bound:
			re.Results = append(re.Results, coord.Result{Code: coord.Taken})
		case taken && req.Incarnation != s.incarnation:
			re.Results = append(re.Results, coord.Result{Code: coord.Reincarnated})
		default:
			re.Results = append(re.Results, s.transact(at, req.Session, t, watch))
		}
	}
	return re
}

func (s *store) transact(at vtime, session string, t coord.Txn, watch applied) coord.Result {
	res := coord.Result{Versions: map[string]int64{}}
	if t.Grace > 0 && s.since != 0 && s.has(StoreClaimGrace) && s.clock(at)/1000 < s.since+int64(t.Grace)/1000 {
		res.Code = coord.TooYoung
		return res
	}
	for _, c := range t.Checks {
		var v int64
		if r := s.entry(at, c.Key); r != nil {
			v = r.version
		}
		res.Versions[c.Key] = v
		if v != c.Version && s.has(StoreAtomicChecks) {
			res.Code = coord.Conflict
		}
	}
	if res.Code != coord.OK {
		return res
	}
	for _, c := range t.Checks {
		s.settleDead(at, c.Key)
	}
	if watch != nil {
		watch(session, t)
	}
	res.Versions = map[string]int64{}
	for _, k := range t.Deletes {
		s.remove(k)
	}
	for _, p := range t.Puts {
		owner := ""
		if p.Bound {
			owner = session
		}
		res.Versions[p.Key] = s.put(at, p.Key, p.Value, owner)
	}
	return res
}

// settleDead ends for good a session that a transaction relied on being dead: it does not come back when the clock is set back.
func (s *store) settleDead(at vtime, key string) {
	r := s.rows[key]
	if r == nil || r.session == "" || s.alive(at, r.session) || s.sessions[r.session] == nil {
		return
	}
	dead := *s.sessions[r.session]
	dead.ends = 0
	s.sessions[r.session] = &dead
}

// wrong says how a transaction breaks the contract, or "".
func wrong(t coord.Txn) string {
	seen := map[string]bool{}
	for _, p := range t.Puts {
		if seen[p.Key] || p.Key == "" {
			return fmt.Sprintf("key %q is put twice or empty", p.Key)
		}
		seen[p.Key] = true
	}
	for _, k := range t.Deletes {
		if seen[k] {
			return fmt.Sprintf("key %q is both put and deleted, or deleted twice", k)
		}
		seen[k] = true
	}
	return ""
}

// snapshot remembers the data as a replica or a backup would.
func (s *store) snapshot() { s.snaps = append(s.snaps, s.storeData.clone()) }

// lose takes the store back to its latest snapshot (a failover) or to nothing (a restart without persistence), under a clock
// that is off by skew: another server may answer.
func (s *store) lose(at, skew vtime, all bool) {
	if n := len(s.snaps); !all && n > 0 {
		s.storeData = s.snaps[n-1].clone()
		s.step += skew
		s.renewIncarnation(at)
		return
	}
	s.storeData = emptyData()
	s.step += skew
	// No restart shows itself: only the missing record does.
	s.notice(at)
}
