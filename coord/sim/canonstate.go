package sim

import (
	"reflect"
	"slices"
	"sort"

	"github.com/rebalancer-go/rebalancer/coord"
)

// fieldCache remembers what to do with the fields of a type: to ask for their names is slow.
type fieldCache map[reflect.Type][]fieldKind

type fieldKind uint8

const (
	fieldHashed fieldKind = iota
	fieldSkipped
	fieldRequest
)

func (f fieldCache) of(t reflect.Type) []fieldKind {
	kinds, ok := f[t]
	if !ok {
		kinds = make([]fieldKind, t.NumField())
		for i := range kinds {
			switch name := t.Field(i).Name; {
			case t.Field(i).Type == configType, t == machineType && (name == "rng" || name == "req" || name == "now"):
				kinds[i] = fieldSkipped
			case name == "Req":
				kinds[i] = fieldRequest
			}
		}
		f[t] = kinds
	}
	return kinds
}

// requestsOf are the numbers of what a machine waits for, in order.
func requestsOf(m *coord.Machine) []uint64 {
	var reqs []uint64
	for i := reflect.ValueOf(m).Elem().FieldByName("calls").MapRange(); i.Next(); {
		reqs = append(reqs, i.Key().Uint())
	}
	slices.Sort(reqs)
	return reqs
}

// hash identifies the state, left before the end of the search.
func (s *state) hash(left vtime, fields *fieldCache) sum {
	c := &canon{now: s.now, quantum: 1, digests: map[string]uint64{}, fields: fields}
	if !s.sc.Prompt {
		c.quantum = searchTick
	}
	for _, p := range []string{coord.MemberPrefix, coord.ControlPrefix} {
		c.digests[p] = s.store.digest(s.now, p, false).Sum
	}
	c.collect = true
	s.sum(c, left)
	slices.Sort(c.versions)
	c.versions, c.collect = slices.Compact(c.versions), false
	return s.sum(c, left)
}

func (s *state) sum(c *canon, left vtime) sum {
	var h sum
	h.add(uint64(left))
	c.value(&h, reflect.ValueOf(s.budget))
	for i := range s.nodes {
		n := &s.nodes[i]
		if c.reqs = nil; n.up {
			c.reqs = requestsOf(n.machine)
			c.value(&h, reflect.ValueOf(n))
		}
		var all sum
		for k := range s.flight {
			if m := s.flight[k]; m.node == i {
				m.sent = 0
				var one sum
				c.value(&one, reflect.ValueOf(&m))
				all.a += one.a
				all.b += one.b
			}
		}
		h.add(all.a)
		h.add(all.b)
	}
	c.reqs = nil
	s.store.sum(c, &h, s.now, s.budget.Rolled > 0)
	return h
}

func (s *store) sum(c *canon, h *sum, now vtime, snaps bool) {
	s.storeData.sum(c, h, s.clock(now))
	for i := range s.snaps {
		if snaps {
			s.snaps[i].sum(c, h, s.clock(now))
		}
	}
	h.text(s.incarnation)
	if s.since != 0 {
		h.add(uint64(c.length(max(vtime(s.since)*1000-s.clock(now), -longPast))))
	}
}

func (d *storeData) sum(c *canon, h *sum, clock vtime) {
	for _, k := range d.keys {
		h.text(k)
		r := d.rows[k]
		c.bytes(h, r.value)
		c.number(h, r.version)
		h.text(r.session)
	}
	keys := make([]string, 0, len(d.last))
	for k, v := range d.last {
		if v >= clock/1000 { // else the next one is the clock's
			keys = append(keys, k)
		}
	}
	sort.Strings(keys)
	for _, k := range keys {
		h.text(k)
		h.add(uint64(d.last[k] - clock/1000))
	}
	ids := make([]string, 0, len(d.sessions))
	for id := range d.sessions {
		ids = append(ids, id)
	}
	sort.Strings(ids)
	for _, id := range ids {
		h.text(id)
		h.add(uint64(c.length(max(d.sessions[id].ends-clock, -longPast))))
		if d.sessions[id].taken {
			h.add(5)
		}
	}
	if d.record {
		h.add(1)
	}
}
