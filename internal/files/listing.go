package files

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rebalancer-go/rebalancer/internal/files/seen"
)

// ours begins the names that the engine and its places make; they are never messages.
const ours = ".rebalancer-"

// candidate is what a listing offers as a message: a file, or a set of files.
type candidate struct {
	Entry
	more []Entry // the other members of its set, in the order of Options.Set
}

// listing gathers what can be messages from the pages of a listing, and keeps no more of the rest than it needs.
type listing struct {
	opt     *Options
	total   int
	entries []candidate
	beside  map[string]uint8   // which companions of a name are there
	claimed map[string]string  // what was claimed, by its own name
	sets    map[string][]Entry // by what the * stands for
	partial []string           // the files that lead sets which lack others
	trigger bool
	unsound []string // names that nothing can be done with; the first few
	keep    *keeping // nil where files do not stay; also for what only counts
}

// add takes a page.
func (l *listing) add(page []Entry) error {
	l.total += len(page)
	for _, e := range page {
		if !l.opt.sound(e.Name) {
			if len(l.unsound) < mostUnsound {
				l.unsound = append(l.unsound, e.Name)
			}
			continue
		}
		if name, ok := l.opt.claims.original(e.Name); ok {
			if l.claimed == nil {
				l.claimed = map[string]string{}
			}
			l.claimed[name] = e.Name
			e.Name = name
		} else if strings.HasPrefix(e.Name, ours) {
			continue
		}
		l.keep.saw(e.Name)
		l.take(e)
	}
	return nil
}

func (l *listing) take(e Entry) {
	if e.Name == l.opt.Trigger {
		l.trigger = true
		return
	}
	for i, c := range l.opt.companions {
		if name, ok := c.of(e.Name); ok {
			if l.beside == nil {
				l.beside = map[string]uint8{}
			}
			l.beside[name] |= 1 << i
			return
		}
	}
	if l.opt.ignored(e.Name) {
		return
	}
	if len(l.opt.set) == 0 {
		if l.keep.worked(candidate{Entry: e}) {
			return
		}
		l.entries = append(l.entries, candidate{Entry: e})
		return
	}
	i, key := l.opt.member(e.Name)
	if i < 0 {
		return
	}
	if l.sets == nil {
		l.sets = map[string][]Entry{}
	}
	set := l.sets[key]
	if set == nil {
		set = make([]Entry, len(l.opt.set))
		l.sets[key] = set
	}
	set[i] = e
}

// candidates returns what can be delivered.
func (l *listing) candidates() []candidate {
	for _, set := range l.sets {
		whole := !slices.ContainsFunc(set, func(e Entry) bool { return e.Name == "" })
		c := candidate{Entry: set[0], more: set[1:]}
		if !whole && c.Name != "" && len(l.partial) < mostAbsent {
			l.partial = append(l.partial, c.Name)
		}
		if whole && l.checked(set[1:]) && !l.keep.worked(c) {
			l.entries = append(l.entries, c)
		}
	}
	l.sets = nil
	if len(l.opt.companions) > 0 {
		all := uint8(1)<<len(l.opt.companions) - 1
		l.entries = slices.DeleteFunc(l.entries, func(c candidate) bool { return l.beside[c.Name] != all })
	}
	l.once()
	return l.entries
}

// checked reports whether each member has its checksum file, where one is asked for.
func (l *listing) checked(members []Entry) bool {
	for i, c := range l.opt.companions {
		if c.checksum && slices.ContainsFunc(members, func(e Entry) bool { return l.beside[e.Name]&(1<<i) == 0 }) {
			return false
		}
	}
	return true
}

// once leaves one of what has the same name: a listing of a place that changes meanwhile may have a file twice, and a file that was
// claimed goes before one that came under its name since. What the listing tells may then be of the other.
func (l *listing) once() {
	byName := func(a, b candidate) int { return cmp.Compare(a.Name, b.Name) }
	if !slices.IsSortedFunc(l.entries, byName) {
		slices.SortFunc(l.entries, byName)
	}
	n := 0
	for _, c := range l.entries {
		if l.claimed[c.Name] != "" {
			c.Info = nil
		}
		if n > 0 && l.entries[n-1].Name == c.Name {
			l.entries[n-1].Info = nil
			continue
		}
		l.entries[n] = c
		n++
	}
	clear(l.entries[n:])
	l.entries = l.entries[:n]
}

// mostUnsound bounds how many unsound names of a listing are told.
const mostUnsound = 10

// sound tells whether a name can be the name of a file in a folder, so that no path made of it leads anywhere else.
func sound(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\x00")
}

// sound tells whether a name can be that of a message. In a tree that is so when each part of it can; where files stay, when it can be
// remembered.
func (o *Options) sound(name string) bool {
	if (o.Keep || o.FailedKeep) && len(name) > seen.MaxName {
		return false
	}
	if !o.Deep {
		return sound(name)
	}
	for part := range strings.SplitSeq(name, "/") {
		if !sound(part) {
			return false
		}
	}
	return true
}

// Count returns how many messages a listing has (see Place.List).
func (o *Options) Count(list func(each func(page []Entry) error) error) (int64, error) {
	l := listing{opt: o}
	if err := list(l.add); err != nil {
		return 0, err
	}
	return int64(len(l.candidates())), nil
}
