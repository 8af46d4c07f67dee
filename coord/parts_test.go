package coord

import (
	"fmt"
	"reflect"
	"testing"
)

// No entry grows with the group, however much a node has, gives up, or has paused; and what is put together again is the same.
func TestAssignmentInParts(t *testing.T) {
	t.Parallel()
	var names []string
	leaving := map[string]string{}
	for i := range 20_000 {
		name := fmt.Sprintf("a resource with a name that is not short %06d", i)
		names = append(names, name)
		leaving[name] = fmt.Sprintf("node %d", i%7)
	}
	for what, a := range map[string]Assignment{
		"nothing":         {Epoch: 1, Generation: 2, Drained: true},
		"a share":         {Epoch: 1, Generation: 2, Share: names},
		"paused":          {Epoch: 1, Generation: 2, Share: names, Paused: names[:15_000]},
		"what it gives":   {Epoch: 1, Generation: 2, Share: names[:1], Leaving: leaving},
		"a bit of it all": {Epoch: 1, Generation: 2, Share: names[:5], Paused: names[1:2], Leaving: map[string]string{"x": ""}},
	} {
		var entries []Entry
		for _, p := range assignmentPuts("n", a) {
			if len(p.Value) > 4*partSize {
				t.Errorf("%s: %s has %d bytes", what, p.Key, len(p.Value))
			}
			entries = append(entries, Entry{Key: p.Key, Value: p.Value})
		}
		got, err := DecodeAssignment(entries)
		if got.Parts != len(entries)-1 || got.Parts != len(a.parts())-1 {
			t.Errorf("%s: %d parts, %d entries", what, got.Parts, len(entries))
		}
		got.Parts = 0
		if err != nil || !reflect.DeepEqual(got, a) {
			t.Errorf("%s: put together again it is another one, %v", what, err)
		}
		if len(entries) > 1 {
			if _, err := DecodeAssignment(entries[:len(entries)-1]); err == nil {
				t.Errorf("%s: a part is missing, and nobody noticed", what)
			}
		}
	}
}
