package sim

import (
	"reflect"
	"slices"

	"github.com/rebalancer-go/rebalancer/coord"
)

// canon hashes states of a search so that two which go on alike are one. What differs between them without making a difference is
// taken out or renamed:
//
//   - Times count from now, rounded up to what time advances by; those that are long past are all alike.
//   - Versions, and the store's times, keep nothing but their order.
//   - The numbers of requests keep their order too, and those that nobody waits for have none.
//   - A digest is that of the store as it is, or another.
//   - What a machine's dice will show is left to chance anyway.
type canon struct {
	now      int64
	quantum  int64
	collect  bool
	versions []int64
	digests  map[string]uint64
	reqs     []uint64 // of the machine that is looked at
	fields   *fieldCache
}

// longPast is before anything that a machine still compares with.
const longPast = searchTTL

var (
	timeType     = reflect.TypeFor[coord.Time]()
	machineType  = reflect.TypeFor[coord.Machine]()
	durationType = reflect.TypeFor[coord.Duration]()
	digestType   = reflect.TypeFor[coord.Digest]()
)

// version tells numbers that come from the store's clock from all others.
func version(x int64) bool { return x >= epoch/1000 && x < 2*epoch/1000 }

func (c *canon) number(s *sum, x int64) {
	if !version(x) {
		s.add(uint64(x))
		return
	}
	if c.collect {
		c.versions = append(c.versions, x)
		return
	}
	i, _ := slices.BinarySearch(c.versions, x)
	s.add(1<<40 + uint64(i))
}

// moment is a time relative to now.
func (c *canon) moment(s *sum, x int64) {
	if x <= 0 || x >= 1<<62 {
		s.add(uint64(x))
		return
	}
	s.add(uint64(c.length(max(x-c.now, -longPast))) + 1<<50)
}

func (c *canon) length(x int64) int64 {
	if x <= 0 {
		return x
	}
	return (x + c.quantum - 1) / c.quantum * c.quantum
}

func (c *canon) request(s *sum, x uint64) {
	i, ok := slices.BinarySearch(c.reqs, x)
	if !ok {
		i = -1
	}
	s.add(uint64(i))
}

// bytes hashes text in which versions may stand.
func (c *canon) bytes(s *sum, b []byte) {
	from := 0
	for i := 0; i < len(b); {
		n, x := 0, int64(0)
		for i+n < len(b) && b[i+n] >= '0' && b[i+n] <= '9' && n < 18 {
			x = 10*x + int64(b[i+n]-'0')
			n++
		}
		if n >= 16 && version(x) {
			s.text(string(b[from:i]))
			c.number(s, x)
			from = i + n
		}
		i += max(n, 1)
	}
	s.text(string(b[from:]))
}

func (c *canon) value(s *sum, v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		s.add(2)
		if v.Bool() {
			s.add(1)
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		switch v.Type() {
		case timeType:
			c.moment(s, v.Int())
		case durationType:
			s.add(uint64(c.length(v.Int())))
		default:
			c.number(s, v.Int())
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		s.add(v.Uint())
	case reflect.String:
		s.text(v.String())
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			s.add(3)
			return
		}
		if v.Kind() == reflect.Interface {
			s.text(v.Elem().Type().String())
		}
		c.value(s, v.Elem())
	case reflect.Struct:
		c.structure(s, v)
	case reflect.Slice, reflect.Array:
		if v.Type() == bytesType {
			c.bytes(s, v.Bytes())
			return
		}
		s.add(uint64(v.Len()))
		for i := range v.Len() {
			c.value(s, v.Index(i))
		}
	case reflect.Map:
		c.mapped(s, v)
	default:
		s.text(v.String())
	}
}

func (c *canon) structure(s *sum, v reflect.Value) {
	for i, kind := range c.fields.of(v.Type()) {
		switch kind {
		case fieldHashed:
			c.value(s, v.Field(i))
		case fieldRequest:
			c.request(s, v.Field(i).Uint())
		}
	}
}

// mapped hashes the entries of a map, each on its own, and adds them up: their order does not matter.
func (c *canon) mapped(s *sum, v reflect.Value) {
	var all sum
	calls := v.Type().Key().Kind() == reflect.Uint64
	digests := v.Type().Elem() == digestType || v.Type().Elem().Kind() == reflect.Uint64
	for i := v.MapRange(); i.Next(); {
		var one sum
		if calls {
			c.request(&one, i.Key().Uint())
		} else {
			c.value(&one, i.Key())
		}
		if digests {
			c.digest(&one, i.Key().String(), i.Value())
		} else {
			c.value(&one, i.Value())
		}
		all.a += one.a
		all.b += one.b
	}
	s.add(uint64(v.Len()))
	s.add(all.a)
	s.add(all.b)
}

func (c *canon) digest(s *sum, prefix string, v reflect.Value) {
	if v.Type() == digestType {
		s.add(uint64(c.length(v.FieldByName("Left").Int())))
		v = v.FieldByName("Sum")
	}
	if v.Uint() == c.digests[prefix] {
		s.add(1)
	}
}
