package sim

import (
	"fmt"
	"reflect"

	"github.com/rebalancer-go/rebalancer/coord"
)

// sum is a hash of 128 bits: a search over millions of states must not take two for one.
type sum struct{ a, b uint64 }

func (s *sum) add(x uint64) {
	s.a = mix(s.a ^ x)
	s.b = mix(s.b+x*0x9e3779b97f4a7c15) + s.a
}

func (s *sum) text(x string) {
	s.add(uint64(len(x)))
	for len(x) >= 8 {
		s.add(uint64(x[0]) | uint64(x[1])<<8 | uint64(x[2])<<16 | uint64(x[3])<<24 | uint64(x[4])<<32 | uint64(x[5])<<40 | uint64(x[6])<<48 | uint64(x[7])<<56)
		x = x[8:]
	}
	var last uint64
	for i := range len(x) {
		last = last<<8 | uint64(x[i])
	}
	s.add(last)
}

// dumpMachine hashes a machine's whole state, unexported fields and all, whatever the order of its maps. Times are hashed
// relative to now, so that the same situation at another time is the same state where nothing else differs.
func dumpMachine(m *coord.Machine, now coord.Time) sum { return dump(m, now) }

func dump(x any, now coord.Time) sum {
	var s sum
	d := dumper{now: int64(now)}
	d.value(&s, reflect.ValueOf(x))
	return s
}

type dumper struct{ now int64 }

var timeType = reflect.TypeFor[coord.Time]()

func (d *dumper) value(s *sum, v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		if v.Bool() {
			s.add(1)
		} else {
			s.add(2)
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		x := v.Int()
		if v.Type() == timeType && x > 0 && x < 1<<62 {
			x -= d.now
		}
		s.add(uint64(x))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		s.add(v.Uint())
	case reflect.Float64:
		s.text(fmt.Sprint(v.Float()))
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
		d.value(s, v.Elem())
	case reflect.Struct:
		if v.Type() == configType {
			return
		}
		for i := range v.NumField() {
			d.value(s, v.Field(i))
		}
	case reflect.Slice, reflect.Array:
		s.add(uint64(v.Len()))
		for i := range v.Len() {
			d.value(s, v.Index(i))
		}
	case reflect.Map:
		d.mapped(s, v)
	}
}

// mapped hashes the entries of a map, each on its own, and adds them up: their order does not matter.
func (d *dumper) mapped(s *sum, v reflect.Value) {
	var all sum
	for i := v.MapRange(); i.Next(); {
		var one sum
		d.value(&one, i.Key())
		d.value(&one, i.Value())
		all.a += one.a
		all.b += one.b
	}
	s.add(uint64(v.Len()))
	s.add(all.a)
	s.add(all.b)
}
