package sim

import (
	"sort"
	"strconv"
	"strings"

	"github.com/rebalancer-go/rebalancer/coord"
)

// vtime is a moment of the world in nanoseconds from its beginning. No clock in the world shows it.
type vtime = int64

const (
	ms  vtime = 1e6
	sec vtime = 1e9
)

// epoch is what the store's clock shows at the beginning of the world.
const epoch vtime = 1_700_000_000 * sec

// row is one entry. Rows are never changed, only replaced, so that snapshots and clones may share them.
type row struct {
	value   []byte
	version int64
	session string
}

// session is a node's life in the store. Sessions too are replaced, not changed.
type session struct {
	id, node string
	ttl      vtime
	order    int   // of opening, among all sessions that there ever were
	taken    bool  // a newer session of the node's name superseded it
	ends     vtime // by the store's clock
	fair     vtime // when it would end had nobody touched the clock, in world time
}

// storeData is what the store keeps, and what it may lose.
type storeData struct {
	rows     map[string]*row
	keys     []string         // of rows, sorted
	last     map[string]int64 // greatest version that a key had, kept across deletes
	sessions map[string]*session
	record   bool // the record of the incarnation is there
	opened   int  // how many sessions were opened, used only without StoreUniqueSessions
}

// store models a backend: the semantics of package backends, with a clock that can be stepped and data that can be lost.
type store struct {
	storeData
	step        vtime // what has been added to the clock
	incarnation string
	since       int64 // µs by the store's clock; 0: proved safe
	losses      int   // how often data was lost
	ids         int   // sessions ever opened, never rolled back
	snaps       []storeData
	without     StoreGuards
	mute        bool // no digests, and no ends of claims: what is not hinted is not learnt by polling
}

func newStore(without StoreGuards) *store {
	s := &store{storeData: emptyData(), incarnation: "i0", without: without}
	s.record = true
	return s
}

func emptyData() storeData {
	return storeData{rows: map[string]*row{}, last: map[string]int64{}, sessions: map[string]*session{}}
}

func (d storeData) clone() storeData {
	c := storeData{rows: make(map[string]*row, len(d.rows)), last: make(map[string]int64, len(d.last)),
		sessions: make(map[string]*session, len(d.sessions)), record: d.record, opened: d.opened}
	c.keys = append([]string(nil), d.keys...)
	for k, v := range d.rows {
		c.rows[k] = v
	}
	for k, v := range d.last {
		c.last[k] = v
	}
	for k, v := range d.sessions {
		c.sessions[k] = v
	}
	return c
}

// clone returns a store that shares nothing that changes.
func (s *store) clone() *store {
	c := *s
	c.storeData = s.storeData.clone()
	c.snaps = append([]storeData(nil), s.snaps...)
	return &c
}

// clock is the store's own time.
func (s *store) clock(at vtime) vtime { return epoch + at + s.step }

func (s *store) stamp(at vtime) coord.Stamp {
	return coord.Stamp{Time: s.clock(at) / 1000, Incarnation: s.incarnation, Since: s.since}
}

// notice writes the record of a new incarnation where it is missing (rule F1).
func (s *store) notice(at vtime) {
	if s.record {
		return
	}
	s.record = true
	if s.has(StoreAbsentRecord) {
		s.renewIncarnation(at)
	}
}

func (s *store) renewIncarnation(at vtime) {
	s.losses++
	s.incarnation = "i" + strconv.Itoa(s.losses)
	if s.since == 0 || s.has(StoreRegrace) {
		s.since = s.clock(at) / 1000
	}
}

// alive tells whether a session lives.
func (s *store) alive(at vtime, id string) bool {
	x := s.sessions[id]
	return x != nil && s.clock(at) < x.ends
}

// stepped tells whether a session that is no more would live had the clock not been touched.
func (s *store) stepped(at vtime, id string) bool {
	x := s.sessions[id]
	return x != nil && s.clock(at) >= x.ends && at < x.fair
}

// entry returns the live entry of a key, or nil.
func (s *store) entry(at vtime, key string) *row {
	r := s.rows[key]
	if r == nil || (r.session != "" && !s.alive(at, r.session)) {
		return nil
	}
	return r
}

func (s *store) left(at vtime, r *row) coord.Duration {
	if r.session == "" {
		return -1
	}
	if x := s.sessions[r.session]; x != nil && x.ends > s.clock(at) {
		return coord.Duration(x.ends - s.clock(at))
	}
	return 0
}

func (s *store) put(at vtime, key string, value []byte, session string) int64 {
	prev := s.last[key]
	if !s.has(StorePutVersions) && s.rows[key] == nil {
		prev = 0
	}
	v := prev + 1
	if s.has(StoreClockVersions) && s.has(StorePutVersions) {
		v = max(v, s.clock(at)/1000)
	}
	s.last[key] = v
	if s.rows[key] == nil {
		i := sort.SearchStrings(s.keys, key)
		s.keys = append(s.keys, "")
		copy(s.keys[i+1:], s.keys[i:])
		s.keys[i] = key
	}
	s.rows[key] = &row{value: value, version: v, session: session}
	return v
}

func (s *store) remove(key string) {
	if s.rows[key] == nil {
		return
	}
	delete(s.rows, key)
	i := sort.SearchStrings(s.keys, key)
	s.keys = append(s.keys[:i], s.keys[i+1:]...)
}

// sweep removes what ended sessions left behind. Nobody can see the difference. Sessions stay, to be told from ones never heard of.
func (s *store) sweep(at vtime) {
	for _, k := range append([]string(nil), s.keys...) {
		if r := s.rows[k]; r.session != "" && !s.alive(at, r.session) {
			s.remove(k)
		}
	}
}

// below calls f with the live entries below a prefix, in order of their keys; with those of ended sessions too if dead.
func (s *store) below(at vtime, prefix string, dead bool, f func(key string, r *row)) {
	for i := sort.SearchStrings(s.keys, prefix); i < len(s.keys) && strings.HasPrefix(s.keys[i], prefix); i++ {
		k := s.keys[i]
		if r := s.rows[k]; dead || s.entry(at, k) != nil {
			f(k, r)
		}
	}
}

// digest sums up keys and versions below a prefix.
func (s *store) digest(at vtime, prefix string, dead bool) coord.Digest {
	d := coord.Digest{Left: -1}
	s.below(at, prefix, dead, func(k string, r *row) {
		d.Sum += uint64(chance(0).of(k, r.version))
		d.Count++
		if l := s.left(at, r); l >= 0 && (d.Left < 0 || l < d.Left) {
			d.Left = l
		}
	})
	return d
}
