package seen

import (
	"cmp"
	"slices"
	"strings"
)

// leaf is a chunk in memory. Its names never change, what is known of their presence does.
type leaf struct {
	number  uint32
	sum     uint32
	size    int     // of the value
	entries []entry // at least one
}

func (l *leaf) first() string { return l.entries[0].name }
func (l *leaf) last() string  { return l.entries[len(l.entries)-1].name }

// table is all names: those of chunks, and over them those of the journal.
type table struct {
	leaves []*leaf
	young  map[string]*entry
	count  int // of different names

	leaf, at int // where the last look-up ended: listings often come in the order of names
}

// find returns what is known of a name, nil for nothing.
func (t *table) find(name string) *entry {
	if e := t.young[name]; e != nil {
		return e
	}
	return t.old(name)
}

// old looks into the chunks alone.
func (t *table) old(name string) *entry {
	if e := t.near(name); e != nil {
		return e
	}
	i, found := slices.BinarySearchFunc(t.leaves, name, func(l *leaf, name string) int { return cmp.Compare(l.first(), name) })
	if !found {
		i--
	}
	if i < 0 {
		return nil
	}
	l := t.leaves[i]
	at, found := slices.BinarySearchFunc(l.entries, name, func(e entry, name string) int { return cmp.Compare(e.name, name) })
	t.leaf, t.at = i, at
	if !found {
		return nil
	}
	return &l.entries[at]
}

// near looks at where the last look-up ended and at the name after it.
func (t *table) near(name string) *entry {
	for range 2 {
		if t.leaf >= len(t.leaves) {
			return nil
		}
		l := t.leaves[t.leaf]
		if t.at >= len(l.entries) {
			t.leaf, t.at = t.leaf+1, 0
			continue
		}
		e := &l.entries[t.at]
		if e.name == name {
			return e
		}
		t.at++
	}
	return nil
}

// put takes a settled name into the journal's part.
func (t *table) put(e *entry) {
	if old := t.find(e.name); old == nil {
		t.count++
	} else {
		e.presence(old)
	}
	t.young[e.name] = e
}

// each calls f for every name, in no order.
func (t *table) each(f func(*entry)) {
	for _, e := range t.young {
		f(e)
	}
	for _, l := range t.leaves {
		for i := range l.entries {
			e := &l.entries[i]
			if len(t.young) > 0 && t.young[e.name] != nil {
				continue
			}
			f(e)
		}
	}
}

// compact puts all names into one string, so that entries that came from elsewhere do not keep that alive.
func compact(entries []entry) []entry {
	n := 0
	for i := range entries {
		n += len(entries[i].name)
	}
	var b strings.Builder
	b.Grow(n)
	for i := range entries {
		b.WriteString(entries[i].name)
	}
	all, at := b.String(), 0
	out := make([]entry, len(entries))
	for i := range entries {
		out[i] = entries[i]
		out[i].name = all[at : at+len(entries[i].name)]
		at += len(entries[i].name)
	}
	return out
}
