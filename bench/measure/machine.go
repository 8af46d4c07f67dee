package measure

import (
	"fmt"

	"github.com/rebalancer-go/rebalancer/coord"
)

// Phase is one time in the life of a group and what the steps of its machines cost in it.
type Phase struct {
	Name      string
	Resources int // of the group
	Moved     int // claimed or released in this phase
	Steps
}

// Machine lets one node claim so many resources, be idle, give half of them to a second node, take them back when that one
// leaves, and leave itself.
func Machine(mode coord.Mode, resources int) ([]Phase, error) {
	w := newWorld()
	var names []string
	for i := range resources {
		names = append(names, fmt.Sprintf("resource-%06d", i))
	}
	var phases []Phase
	phase := func(name string, moved int, done func() bool) error {
		s, err := w.run(name, done)
		phases = append(phases, Phase{Name: name, Resources: resources, Moved: moved, Steps: s})
		return err
	}
	a := w.join("a", mode, names)
	if err := phase("one node claims all", resources, func() bool { return len(a.working) == resources }); err != nil {
		return nil, err
	}
	until := w.now + 100e9
	if err := phase("idle for 100 s", 0, func() bool { return w.now >= until }); err != nil {
		return nil, err
	}
	b := w.join("bb", mode, names)
	half := func() bool { return len(a.working)+len(b.working) == resources && len(b.working) == resources/2 }
	if err := phase("a second node joins", resources/2, half); err != nil {
		return nil, err
	}
	w.post(b, 0, coord.Leave{})
	if err := phase("it leaves", resources/2, func() bool { return b.done && len(a.working) == resources }); err != nil {
		return nil, err
	}
	w.post(a, 0, coord.Leave{})
	if err := phase("the last node leaves", resources, func() bool { return a.done }); err != nil {
		return nil, err
	}
	return phases, nil
}
