package statuspage

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
)

// maxGone bounds how many names a table remembers that are no more.
const maxGone = 20000

// table is rows as they are sent, each with the version in which it came to be so.
type table struct {
	rows map[string]row
	gone map[string]int64 // and the version in which it went
	// floor is the version from which on changes are known; before, everything must be sent.
	floor int64
}

type row struct {
	raw []byte
	at  int64
}

// named is a row to be.
type named struct {
	name  string
	value any
}

// update makes the table hold just these rows, and reports whether that changed anything; what did is of this version.
func (t *table) update(version int64, rows []named) (changed bool, err error) {
	old := t.rows
	t.rows = make(map[string]row, len(rows))
	for _, n := range rows {
		raw, err := json.Marshal(n.value)
		if err != nil {
			t.rows = old
			return false, err
		}
		r, was := old[n.name]
		if !was || !bytes.Equal(r.raw, raw) {
			r, changed = row{raw, version}, true
		}
		t.rows[n.name] = r
		delete(t.gone, n.name)
	}
	for name := range old { // into a set
		if _, still := t.rows[name]; still {
			continue
		}
		changed = true
		if t.gone == nil {
			t.gone = map[string]int64{}
		}
		t.gone[name] = version
	}
	if len(t.gone) > maxGone {
		t.gone, t.floor = nil, version
	}
	return changed, nil
}

// since are the rows that changed after a version, and the names that went; 0: all rows. Both are sorted.
func (t *table) since(version int64) (rows []json.RawMessage, gone []string) {
	rows = []json.RawMessage{}
	for _, name := range slices.Sorted(maps.Keys(t.rows)) {
		if r := t.rows[name]; r.at > version {
			rows = append(rows, r.raw)
		}
	}
	if version == 0 {
		return rows, nil
	}
	for _, name := range slices.Sorted(maps.Keys(t.gone)) {
		if t.gone[name] > version {
			gone = append(gone, name)
		}
	}
	return rows, gone
}

// names are those of the rows, sorted.
func (t *table) names() []string { return slices.Sorted(maps.Keys(t.rows)) }
