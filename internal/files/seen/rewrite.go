package seen

import (
	"slices"
	"strings"
)

const (
	fill  = 60 << 10 // bytes at which a chunk is full
	small = 16 << 10 // bytes below which one is joined with its neighbour

	mostRecord = 36 // bytes of an entry without its name
)

// rewrite is the leaves with changes worked in. Leaves that nothing changed are the old ones.
type rewrite struct {
	leaves []*leaf
	fresh  []*leaf  // those that are to be written; they have no number yet
	values [][]byte // of fresh
	gone   []uint32 // the numbers of those that are replaced
}

// change says what a rewrite does: puts are in order, drop says which names go, and touch which leaves are written although
// no put is for them.
type change struct {
	puts  []*entry
	drop  func(*entry) bool
	touch func(*leaf) bool
}

// rewriteLeaves works a change in: runs of neighbouring leaves that it touches are merged and divided anew.
func rewriteLeaves(old []*leaf, c change) *rewrite {
	w := &rewrite{}
	puts := c.puts
	if len(old) == 0 {
		w.divide(merge(nil, nil, puts, c.drop), true)
		return w
	}
	for i := 0; i < len(old); {
		var run []entry
		taken, size := 0, 0
		for i < len(old) {
			mine := puts
			if i+1 < len(old) {
				mine = puts[:firstFrom(puts, old[i+1].first())]
			}
			if len(mine) == 0 && !c.touch(old[i]) && (taken == 0 || size >= small) {
				break
			}
			run = merge(run, old[i].entries, mine, c.drop)
			puts = puts[len(mine):]
			w.gone = append(w.gone, old[i].number)
			size += old[i].size
			i++
			taken++
		}
		if taken == 0 {
			w.leaves = append(w.leaves, old[i])
			i++
			continue
		}
		w.divide(run, i == len(old))
	}
	return w
}

// firstFrom is the index of the first put that is not below name.
func firstFrom(puts []*entry, name string) int {
	i, _ := slices.BinarySearchFunc(puts, name, func(e *entry, name string) int { return strings.Compare(e.name, name) })
	return i
}

// merge appends old entries with the puts worked in to run.
func merge(run, old []entry, puts []*entry, drop func(*entry) bool) []entry {
	run = slices.Grow(run, len(old)+len(puts))
	for len(old) > 0 || len(puts) > 0 {
		var e entry
		switch {
		case len(puts) == 0 || len(old) > 0 && old[0].name < puts[0].name:
			e, old = old[0], old[1:]
		case len(old) > 0 && old[0].name == puts[0].name:
			e = *puts[0]
			old, puts = old[1:], puts[1:]
		default:
			e, puts = *puts[0], puts[1:]
		}
		if !drop(&e) {
			run = append(run, e)
		}
	}
	return run
}

// divide makes leaves of a run: even ones, but at the end of all names, where new ones often come, full ones and the rest.
func (w *rewrite) divide(run []entry, end bool) {
	limit := fill
	if !end {
		all := newList()
		for i := range run {
			all.add(&run[i])
		}
		limit = all.size()/(1+all.size()/fill) + 1
	}
	for len(run) > 0 {
		list, n := newList(), 0
		for n < len(run) && list.size() < limit {
			list.add(&run[n])
			n++
		}
		entries := compact(run[:n])
		for i := range entries {
			entries[i].saved = entries[i].gone
		}
		value := list.bytes()
		l := &leaf{sum: checksumOf(value), size: len(value), entries: entries}
		w.leaves = append(w.leaves, l)
		w.fresh = append(w.fresh, l)
		w.values = append(w.values, value)
		run = run[n:]
	}
}
