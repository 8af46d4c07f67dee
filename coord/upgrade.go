package coord

// A rolling upgrade of the library: members publish the range of formats that they read, a node begins with the group's format, and the
// coordinator raises that when every member reads a newer one. From then on a node that does not is refused by name.

// format is what the node writes in: the group's format. The settings themselves are always in the first one, so that a node that is too old can
// read what it is refused for.
func (m *Machine) format() int {
	if f := m.set.value.Format; f >= m.cfg.FormatMin && f <= m.cfg.FormatMax {
		return f
	}
	return FormatMin
}

// inFormat marks what a transaction puts with the group's format. The layouts of all formats are the same so far.
func (m *Machine) inFormat(t Txn) {
	for i := range t.Puts {
		if p := &t.Puts[i]; p.Key != SettingsKey && len(p.Value) > 0 {
			p.Value[0] = byte('0' + m.format())
		}
	}
}

// upgrade raises the group's format, if all members read a newer one. One that joins at this moment with an older library is refused at its
// next look at the settings.
func (m *Machine) upgrade() {
	newest := m.cfg.FormatMax
	for _, v := range m.lead.members { // each by itself
		newest = min(newest, v.FormatMax)
	}
	if !m.set.known || newest <= m.set.value.Format || m.waitsFor(callUpgrade) {
		return
	}
	s := m.set.value
	s.Format = newest
	m.commit(call{kind: callUpgrade, names: []string{""}}, Txn{
		Checks: append(m.leadCheck(), Check{Key: SettingsKey, Version: m.set.version}),
		Puts:   []Put{{Key: SettingsKey, Value: EncodeSettings(s)}},
	})
}
