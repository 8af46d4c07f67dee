package sim

import (
	"reflect"
	"unsafe"

	"github.com/rebalancer-go/rebalancer/coord"
)

// cloneMachine copies a machine with all that it points to, so that a search can go on from one state in many ways. It works
// by reflection over the unexported fields: a field that is added to the machine later is copied without anybody having
// to think of it. What cannot change (configuration, functions, errors, values of entries) is shared.
func cloneMachine(m *coord.Machine) *coord.Machine {
	to := new(coord.Machine)
	copyInto(reflect.ValueOf(to).Elem(), reflect.ValueOf(m).Elem())
	return to
}

var (
	configType = reflect.TypeFor[coord.Config]()
	bytesType  = reflect.TypeFor[[]byte]()
)

// shared tells whether values of a type can be copied by assignment.
func shared(t reflect.Type) bool {
	if t == configType || t == bytesType {
		return true
	}
	switch t.Kind() {
	case reflect.Map, reflect.Slice, reflect.Pointer, reflect.Interface:
		return false
	case reflect.Struct:
		for i := range t.NumField() {
			if !shared(t.Field(i).Type) {
				return false
			}
		}
	case reflect.Array:
		return shared(t.Elem())
	}
	return true
}

// copyInto makes to, which can be addressed, a deep copy of from, which can be as well.
func copyInto(to, from reflect.Value) {
	t := to.Type()
	raw := reflect.NewAt(t, unsafe.Pointer(to.UnsafeAddr())).Elem()
	src := reflect.NewAt(t, unsafe.Pointer(from.UnsafeAddr())).Elem()
	if shared(t) {
		raw.Set(src)
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			copyInto(raw.Field(i), src.Field(i))
		}
	case reflect.Array:
		for i := range t.Len() {
			copyInto(raw.Index(i), src.Index(i))
		}
	case reflect.Pointer:
		if !src.IsNil() {
			p := reflect.New(t.Elem())
			copyInto(p.Elem(), src.Elem())
			raw.Set(p)
		}
	case reflect.Slice:
		if !src.IsNil() {
			s := reflect.MakeSlice(t, src.Len(), src.Len())
			for i := range src.Len() {
				copyInto(s.Index(i), src.Index(i))
			}
			raw.Set(s)
		}
	case reflect.Map:
		if !src.IsNil() {
			m := reflect.MakeMapWithSize(t, src.Len())
			for i := src.MapRange(); i.Next(); {
				m.SetMapIndex(i.Key(), copied(i.Value()))
			}
			raw.Set(m)
		}
	case reflect.Interface:
		raw.Set(src) // errors and the like, which nobody changes
	}
}

// copied is a deep copy of a value that cannot be addressed.
func copied(v reflect.Value) reflect.Value {
	if shared(v.Type()) {
		return v
	}
	from := reflect.New(v.Type()).Elem()
	from.Set(v)
	to := reflect.New(v.Type()).Elem()
	copyInto(to, from)
	return to
}
