package coord

import "fmt"

// settingsState is what the node knows of the group's settings.
type settingsState struct {
	known   bool
	version int64
	value   Settings
	reborn  bool // this session saw a new incarnation: a coordinator waits for the known nodes
	retryAt Time
	took    bool // this session took over from an older process of the name
	owed    bool // which is still to be superseded
	elders  bool // which may still work
	elderAt Time // no look at that before
	foreign Time // since when another process of this name has been in the way
}

// pumpSettle reads the settings and the node's own member entry, as often as they may have changed.
func (m *Machine) pumpSettle() {
	if m.sess.id == "" || m.set.known || m.now < m.set.retryAt || !m.maySettle() {
		return
	}
	m.read(call{kind: callSettle}, []string{MemberPrefix}[:m.wantMembers()], []string{SettingsKey, LeaderKey, MemberKey(m.cfg.Node)})
}

// maySettle tells whether nothing but time keeps the settings from being read.
func (m *Machine) maySettle() bool {
	return !m.sess.noticing && !m.leave.superseded && !m.waitsFor(callSettle) && !m.waitsFor(callFound)
}

// wantMembers is 1 when the settings on record differ: then it matters whether anybody works under them.
func (m *Machine) wantMembers() int {
	if m.set.version != 0 && m.differs(m.set.value) != nil {
		return 1
	}
	return 0
}

func (m *Machine) settled(ev ReadDone) {
	if ev.Code != OK {
		m.set.retryAt = m.now + Time(100*millisecond)
		return
	}
	asked := m.wantMembers() == 1
	var own, set Entry
	others := 0
	for _, e := range ev.Entries {
		switch {
		case e.Key == SettingsKey:
			set = e
		case e.Key == MemberKey(m.cfg.Node):
			own = e
		default:
			others++ // another member, or a coordinator
		}
	}
	if set.Version == 0 {
		m.found(0)
		return
	}
	value, err := DecodeSettings(set.Value)
	if err != nil {
		m.fail(mismatch("%v", err))
		return
	}
	m.set.version, m.set.value = set.Version, value
	if value.Deleted {
		m.fail(fmt.Errorf("%w: group %q: create it again to use it", ErrDeleted, m.cfg.Group))
		return
	}
	if diff := m.differs(value); diff != nil {
		mine := own.Version == 0 || own.Session == m.sess.id
		switch {
		case !asked: // look who else is there
		case others == 0 && mine && m.phase != phaseActive && value.Created == "": // else somebody chose them
			m.found(set.Version) // nobody works under the old settings
		default:
			m.fail(diff)
		}
		return
	}
	m.set.known = true
	m.ownSeen(own)
}

func (m *Machine) settings() Settings {
	ms := int64(m.cfg.TTL / millisecond)
	c := &m.cfg
	return Settings{
		Mode: c.Mode, Origin: c.Origin, TTL: ms, Grace: ms, Format: m.cfg.FormatMax,
		MaxActive: c.MaxActive, FailBack: c.FailBack, MaxMoving: c.MaxMoving, MaxMovingNode: c.MaxMovingNode,
	}
}

// found writes the group's settings: they are absent, or nobody works under those that stand there.
func (m *Machine) found(version int64) {
	s := m.settings()
	s.Created = m.set.value.Created
	checks := []Check{{Key: SettingsKey, Version: version}}
	if version != 0 {
		checks = append(checks, Check{Key: LeaderKey}) // nobody may have begun under them meanwhile
	}
	m.commit(call{kind: callFound, names: []string{""}}, Txn{
		Checks: checks,
		Puts:   []Put{{Key: SettingsKey, Value: EncodeSettings(s)}},
	})
}

// differs is an error that names what does not fit.
func (m *Machine) differs(s Settings) error {
	own := m.settings()
	switch {
	case s.Mode != own.Mode:
		return mismatch("group %q runs with barrier mode %q, this node with %q", m.cfg.Group, s.Mode, own.Mode)
	case s.Origin != own.Origin:
		return mismatch("resources of group %q are %s, those of this node %s", m.cfg.Group, s.Origin, own.Origin)
	case s.TTL != own.TTL:
		return mismatch("group %q has a ttl of %d ms, this node one of %d ms", m.cfg.Group, s.TTL, own.TTL)
	case s.MaxActive != own.MaxActive || s.FailBack != own.FailBack:
		return mismatch("group %q has at most %d active nodes (0: all) with fail-back %v, this node wants %d with %v", m.cfg.Group,
			s.MaxActive, s.FailBack, own.MaxActive, own.FailBack)
	case s.MaxMoving != own.MaxMoving || s.MaxMovingNode != own.MaxMovingNode:
		return mismatch("group %q moves at most %d resources at a time, %d of one node (0: no limit), this node wants %d and %d", m.cfg.Group,
			s.MaxMoving, s.MaxMovingNode, own.MaxMoving, own.MaxMovingNode)
	case s.Format < m.cfg.FormatMin || s.Format > m.cfg.FormatMax:
		return mismatch("group %q has format %d, the library of node %q reads %d to %d: upgrade it, or whoever shares the group", m.cfg.Group, s.Format,
			m.cfg.Node, m.cfg.FormatMin, m.cfg.FormatMax)
	}
	return nil
}

// grace is how old the store's data must be before a claim.
func (m *Machine) grace() Duration {
	if m.set.value.Created == m.sess.incarnation || !m.has(GuardGrace) {
		return 0
	}
	return max(Duration(m.set.value.Grace)*millisecond, m.sess.ttl)
}
