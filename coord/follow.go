package coord

import (
	"errors"
	"slices"
	"strings"
)

// followState is what the node knows of what is addressed to it: its assignment, and who coordinates.
type followState struct {
	dirty   bool // something may have changed: read
	retryAt Time // no read before
	readAt  Time // when the last read was sent
	polling bool // the store gives no hints: poll quickly while something is awaited

	applied bool  // an assignment was applied in this session
	seen    int64 // version of the entry that was applied
	epoch   int64
	gen     int64
	share   map[string]bool
	leaving map[string]string // next owners of what is not ours any more
	paused  map[string]bool   // of share: claimed, but not worked
	drained bool              // nothing is given because somebody asked for that

	leader  string // name of the coordinator as last read; "" unknown
	leaderV int64  // version of the leader entry; 0: there is none
	electAt Time   // when to stand for election; 0: never

	ledUntil Time // when the own last term ended

	// blocked are claims that others hold, with the moment at which that can end; 0: not known.
	blocked   map[string]Time
	watchedTo string // the last of them that was looked at: the next ones come after it
	unseen    int    // how many of them are to be looked at for the last hint: it does not say which one it means
}

func (f *followState) reset() { *f = followState{blocked: map[string]Time{}} }

// forget drops what was read in an earlier incarnation.
func (f *followState) forget() {
	f.dirty, f.applied, f.seen, f.electAt, f.retryAt = true, false, 0, 0, 0
	f.blocked = map[string]Time{}
}

func (m *Machine) onHint(ev Hinted) {
	switch ev.Address {
	case NodeAddress(m.cfg.Node):
		m.follow.dirty, m.follow.unseen = true, len(m.follow.blocked)
	case CoordinatorAddress:
		m.lead.dirty = true
	}
}

// pumpFollow reads the assignment, the coordinator, and the claims waited for, in one call.
func (m *Machine) pumpFollow() {
	f := &m.follow
	if m.phase != phaseActive || m.sess.noticing {
		return
	}
	if at := m.pollAt(); at != 0 && m.now >= at {
		f.dirty = true
	}
	if !f.dirty || m.now < f.retryAt || m.waitsFor(callFollow) {
		return
	}
	f.dirty, f.readAt = false, m.now
	keys := []string{LeaderKey}
	if m.cfg.Mode == GlobalBarrier {
		keys = append(keys, BarrierKey)
	}
	c := call{kind: callFollow, names: m.watched(4 * maxWatched)}
	f.unseen = max(min(f.unseen, len(f.blocked))-len(c.names), 0) // what is not waited for any more need not be seen
	m.read(c, []string{AssignmentKey(m.cfg.Node)}, append(keys, claimKeys(c.names)...))
}

// pollAt is when to read, hints or not: at the end of a session that holds what is waited for, and often where there are no
// hints and something is awaited; 0 for never.
func (m *Machine) pollAt() Time {
	w := wake{never}
	for _, until := range m.follow.blocked {
		w.by(until)
	}
	if f := &m.follow; f.polling && (len(f.blocked) > 0 || !f.applied || m.barrierOpenAwaited()) {
		w.by(f.readAt + Time(m.fastPoll()))
	}
	if w.at == never {
		return 0
	}
	return max(w.at, m.follow.readAt+Time(5*millisecond))
}

func (m *Machine) fastPoll() Duration {
	return min(max(m.sess.ttl/60, 50*millisecond), 250*millisecond)
}

func (m *Machine) followed(c call, ev ReadDone) {
	f := &m.follow
	if ev.Code != OK || m.phase != phaseActive {
		// Without the guard the failed read is taken for done, as the version was when the renewal told it.
		f.dirty, f.retryAt = m.has(GuardSeenOnApply), m.now+Time(100*millisecond)
		f.unseen = len(f.blocked)
		return
	}
	m.queue.stale = false
	if f.unseen > 0 {
		f.dirty = true // they are too many for one read
	}
	var assignment []Entry
	states := map[string]KeyState{}
	var leader Entry
	for _, e := range ev.Entries {
		if strings.HasPrefix(e.Key, AssignmentPrefix) {
			assignment = append(assignment, e)
			continue
		}
		states[e.Key] = KeyState{Version: e.Version, Session: e.Session, Left: e.Left}
		if v, err := DecodeClaim(e.Value); err == nil && v.Node == m.cfg.Node && !m.has(GuardOwnSession) {
			m.obtained(v.Resource, e.Version)
		}
		switch e.Key {
		case LeaderKey:
			leader = e
		case BarrierKey:
			m.barrierSeen(e)
		}
	}
	if l, err := DecodeLeader(leader.Value); err == nil {
		f.leader = l.Node
	}
	m.leaderSeen(c.sent, states[LeaderKey])
	m.claimsSeen(c.names, states)
	m.applyEntry(assignment)
}

// applyEntry takes over an assignment that differs from the one that was applied.
func (m *Machine) applyEntry(entries []Entry) {
	f := &m.follow
	version := int64(0)
	if len(entries) > 0 {
		version = entries[0].Version
	}
	if version == 0 || f.applied && version == f.seen && m.has(GuardSeenOnApply) {
		return // nothing stands there yet: what is held goes on, nothing is claimed
	}
	a, err := DecodeAssignment(entries)
	if errors.Is(err, errTorn) {
		f.dirty = true
		return
	}
	if err != nil {
		m.storeFailed("reading of the assignment", err)
		return
	}
	if !m.has(GuardDiffers) && a.Generation <= f.gen {
		return
	}
	f.seen, f.applied, f.epoch, f.gen = version, true, a.Epoch, a.Generation
	f.share = make(map[string]bool, len(a.Share))
	for _, name := range a.Share[:a.grants()] {
		f.share[name] = true
	}
	f.drained, f.paused = a.Drained, make(map[string]bool, len(a.Paused))
	for _, name := range a.Paused {
		f.paused[name] = true
	}
	f.leaving = a.Leaving
	// What is not ours any more is looked at once more: the claim that was in the way may be one of this session, which came back
	// when the store went back in time.
	// So is what this session asked for without an answer: it is not granted from now on, but may have been.
	waited := f.blocked
	f.blocked = map[string]Time{}
	for name := range waited { // into a map
		if !f.share[name] {
			f.blocked[name] = m.now
		}
	}
	for name := range m.queue.unsure { // into a map
		if !f.share[name] {
			f.blocked[name] = m.now
			delete(m.queue.unsure, name)
		}
	}
	for name := range m.queue.free { // each by itself
		if !f.share[name] {
			delete(m.queue.free, name)
		}
	}
	m.touchAll()
	n := Notify{Kind: KindAssigned, Reason: plural(len(a.Share), "resource")}
	if m.cfg.Measure {
		n.Share = m.holdings(a)
	}
	m.notify(n)
}

// leaderSeen follows the leader entry, and knows when its session can end.
func (m *Machine) leaderSeen(sent Time, k KeyState) {
	f := &m.follow
	if !m.leading() && sent < f.ledUntil {
		return // the answer may be older than the end of the own term
	}
	f.leaderV = k.Version
	if m.leading() {
		if sent < m.lead.since {
			return // the answer may be older than the term
		}
		if k.Version != m.lead.epoch {
			m.stepDownHere("another node holds the leader entry")
		}
		return
	}
	switch {
	case k.Version == 0:
		f.leader = ""
		if f.electAt == 0 || f.electAt > m.now+Time(m.stagger()) {
			f.electAt = m.now + Time(m.jitter(m.stagger()))
		}
	case k.Session == m.sess.id:
		m.elected(k.Version) // our own campaign, whose answer was lost
	case k.Left >= 0:
		// Ends are known, not polled for; one after the other, so that not everybody writes at once.
		f.electAt = m.now + Time(k.Left+millisecond+m.jitter(m.stagger()))
	default:
		f.electAt = 0
	}
}

// stagger spreads the campaigns of several nodes.
func (m *Machine) stagger() Duration { return min(100*millisecond, m.sess.ttl/50) }

// watched are claims that this node waits for, at most n, taking turns. The turn is kept by name, since others of them come free meanwhile.
func (m *Machine) watched(n int) []string {
	f := &m.follow
	names := sortedKeys(f.blocked)
	if len(names) <= n {
		return names
	}
	from, found := slices.BinarySearch(names, f.watchedTo)
	if found {
		from++
	}
	names = append(names[from:], names[:from]...)[:n]
	f.watchedTo = names[n-1]
	return names
}

func claimKeys(names []string) []string {
	keys := make([]string, len(names))
	for i, name := range names {
		keys[i] = ClaimKey(name)
	}
	return keys
}

// watchedSeen takes what a renewal tells of the own assignment, the barrier, and the claims that it named.
func (m *Machine) watchedSeen(c call, keys map[string]KeyState) {
	f := &m.follow
	if m.has(GuardRenewAssignment) {
		if v := keys[AssignmentKey(m.cfg.Node)].Version; v != f.seen {
			f.dirty = true
			if !m.has(GuardSeenOnApply) {
				f.seen = v
			}
		}
	}
	if m.cfg.Mode == GlobalBarrier && keys[BarrierKey].Version != m.bar.version {
		f.dirty = true
	}
	m.claimsSeen(c.names, keys)
}

// claimsSeen looks at claims that were waited for.
func (m *Machine) claimsSeen(names []string, keys map[string]KeyState) {
	f := &m.follow
	for _, name := range names {
		if _, ok := f.blocked[name]; !ok {
			continue // it was settled meanwhile
		}
		k, held := keys[ClaimKey(name)]
		switch {
		case !held:
			delete(f.blocked, name)
			m.touch(name)
		case k.Session == m.sess.id:
			delete(f.blocked, name)
			m.ghost(name, k.Version)
		case !f.share[name]:
			delete(f.blocked, name) // it was given to another node meanwhile
		case k.Left >= 0:
			f.blocked[name] = m.now + Time(k.Left+millisecond)
		default:
			f.blocked[name] = 0
		}
	}
}

func (m *Machine) wakeFollow(w *wake) {
	f := &m.follow
	if m.sess.noticing {
		return // see wakeSession
	}
	if m.mayCampaign() {
		w.by(f.electAt)
	}
	if m.held() {
		w.by(m.holdEnds())
	}
	if len(m.todo) > 0 {
		w.by(m.now) // something was touched after resources had been looked at
	}
	q := &m.queue
	if q.wanted.len() > 0 && m.mayClaim() {
		w.by(max(q.graceUntil, q.claimAt))
	}
	if q.toRelease.len() > 0 && m.mayRelease() {
		w.by(q.releaseAt)
	}
	if m.waitsFor(callFollow) {
		return
	}
	if f.dirty {
		w.by(max(f.retryAt, m.now))
	}
	if at := m.pollAt(); at != 0 {
		w.by(max(at, f.retryAt))
	}
}
