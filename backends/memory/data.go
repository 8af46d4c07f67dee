package memory

import (
	"crypto/rand"
	"slices"
	"strings"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
)

// data is what the store may forget or roll back.
type data struct {
	groups      map[string]*group
	sessions    map[string]*life
	incarnation string
	since       time.Time
	firstEnd    time.Time // no session ends before; zero: there was none
	top         int64     // the greatest version that was ever given
	gone        int64     // the greatest version of an entry that was removed
	lost        int64     // the greatest version that was given before data was lost
}

// life is the store's side of a session.
type life struct {
	group, node string
	expires     time.Time // it has ended at this very moment
	bound       map[string]bool
	order       int  // in which sessions were opened
	superseded  bool // by a newer session of the node's name
}

// group is the key space of one group.
type group struct {
	entries map[string]*entry
	keys    []string // of entries, sorted
	free    int      // entries that are not bound
}

type entry struct {
	value   []byte // never changed in place
	version int64
	session string
}

func newData() data {
	return data{groups: map[string]*group{}, sessions: map[string]*life{}, incarnation: rand.Text()}
}

func (d *data) stamp(now time.Time) backends.Stamp {
	return backends.Stamp{Time: now, Incarnation: d.incarnation, Since: d.since}
}

// endsBy notes that a session may end at t.
func (d *data) endsBy(t time.Time) {
	if d.firstEnd.IsZero() || t.Before(d.firstEnd) {
		d.firstEnd = t
	}
}

// expire removes the sessions that have ended by now with all that is bound to them.
func (d *data) expire(now time.Time) {
	if d.firstEnd.IsZero() || now.Before(d.firstEnd) {
		return
	}
	d.firstEnd = time.Time{}
	for id, l := range d.sessions {
		if now.Before(l.expires) {
			d.endsBy(l.expires)
		} else {
			d.end(id)
		}
	}
}

// end removes a session with all that is bound to it.
func (d *data) end(id string) {
	l := d.sessions[id]
	if l == nil {
		return
	}
	for key := range l.bound {
		d.remove(l.group, key)
	}
	delete(d.sessions, id)
}

// get is the entry of a key, nil when there is none.
func (d *data) get(groupName, key string) *entry {
	g := d.groups[groupName]
	if g == nil {
		return nil
	}
	return g.entries[key]
}

// left is the time left of the session behind e; negative when it is not bound.
func (d *data) left(e *entry, now time.Time) time.Duration {
	l := d.sessions[e.session]
	if l == nil {
		return -1
	}
	return l.expires.Sub(now)
}

// put writes an entry and gives its new version. session is "" for an entry that is not bound.
func (d *data) put(groupName, key string, value []byte, session string, now time.Time) int64 {
	version := max(d.lost+1, now.UnixMicro())
	g := d.groups[groupName]
	if g == nil {
		g = &group{entries: map[string]*entry{}}
		d.groups[groupName] = g
	}
	old := g.entries[key]
	if old == nil {
		version = max(version, d.gone+1)
		i, _ := slices.BinarySearch(g.keys, key)
		g.keys = slices.Insert(g.keys, i, key)
	} else {
		version = max(version, old.version+1)
		d.unbind(g, key, old)
	}
	g.entries[key] = &entry{value: slices.Clone(value), version: version, session: session}
	if session == "" {
		g.free++
	} else {
		d.sessions[session].bound[key] = true
	}
	d.top = max(d.top, version)
	return version
}

// remove deletes an entry if it is there.
func (d *data) remove(groupName, key string) {
	g := d.groups[groupName]
	if g == nil || g.entries[key] == nil {
		return
	}
	e := g.entries[key]
	d.unbind(g, key, e)
	d.gone = max(d.gone, e.version)
	delete(g.entries, key)
	i, _ := slices.BinarySearch(g.keys, key)
	g.keys = slices.Delete(g.keys, i, i+1)
	if len(g.keys) == 0 {
		delete(d.groups, groupName)
	}
}

func (d *data) unbind(g *group, key string, e *entry) {
	if e.session == "" {
		g.free--
	} else if l := d.sessions[e.session]; l != nil {
		delete(l.bound, key)
	}
}

// below gives the keys that begin with prefix, sorted.
func (d *data) below(groupName, prefix string) []string {
	g := d.groups[groupName]
	if g == nil {
		return nil
	}
	from, _ := slices.BinarySearch(g.keys, prefix)
	n := 0
	for from+n < len(g.keys) && strings.HasPrefix(g.keys[from+n], prefix) {
		n++
	}
	return g.keys[from : from+n]
}

// digest sums up what is below a prefix.
func (d *data) digest(groupName, prefix string, now time.Time) backends.Digest {
	sum := backends.Digest{Left: -1}
	for _, key := range d.below(groupName, prefix) {
		e := d.get(groupName, key)
		sum.Add(key, e.version, d.left(e, now))
	}
	return sum
}
