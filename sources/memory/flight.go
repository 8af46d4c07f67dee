package memory

import "github.com/rebalancer-go/rebalancer"

// flight holds what a reader has handed out and not settled, in the order of the deliveries. While settlements come in
// that order, finding one is a comparison; the first that does not builds an index, which lives until the flight is empty.
type flight struct {
	list  []handed
	head  int
	index map[*rebalancer.Message]int // nil: not needed yet
	n     int
}

// handed is one delivery; e is nil once it is settled.
type handed struct {
	m *rebalancer.Message
	e *entry
}

func (f *flight) add(m *rebalancer.Message, e *entry) {
	if f.index != nil {
		f.index[m] = len(f.list)
	}
	f.list = append(f.list, handed{m, e})
	f.n++
}

// find returns the place of the delivery m, or -1 when it is not in flight.
func (f *flight) find(m *rebalancer.Message) int {
	if f.n == 0 || m == nil {
		return -1
	}
	if f.list[f.head].m == m {
		return f.head
	}
	if f.index == nil {
		f.index = make(map[*rebalancer.Message]int, f.n)
		for i := f.head; i < len(f.list); i++ {
			f.index[f.list[i].m] = i
		}
	}
	if i, ok := f.index[m]; ok {
		return i
	}
	return -1
}

// remove takes out the delivery at a place that find returned.
func (f *flight) remove(i int) *entry {
	e := f.list[i].e
	if f.index != nil {
		delete(f.index, f.list[i].m)
	}
	f.list[i] = handed{}
	f.n--
	if f.n == 0 {
		f.list, f.head, f.index = f.list[:0], 0, nil
		return e
	}
	for f.list[f.head].e == nil {
		f.head++
	}
	if holes := len(f.list) - f.n; holes >= 1024 && holes > f.n {
		f.compact()
	}
	return e
}

// compact closes the holes, so that one delivery that stays long does not make the list grow for ever.
func (f *flight) compact() {
	n := 0
	for _, h := range f.list[f.head:] {
		if h.e == nil {
			continue
		}
		f.list[n] = h
		if f.index != nil {
			f.index[h.m] = n
		}
		n++
	}
	clear(f.list[n:])
	f.list, f.head = f.list[:n], 0
}

// all empties the flight and returns what was in it, in the order of the deliveries.
func (f *flight) all() []*entry {
	es := make([]*entry, 0, f.n)
	for _, h := range f.list[f.head:] {
		if h.e != nil {
			es = append(es, h.e)
		}
	}
	*f = flight{}
	return es
}
