package sim

import (
	"maps"
	"slices"
	"strings"

	"github.com/rebalancer-go/rebalancer/coord"
)

// Placement is what decides who works what, beyond the even share. Its zero value is a group without any of it.
type Placement struct {
	MaxActive, MaxMoving, MaxMovingNode int
	FailBack                            bool
	Acts                                bool                          // operators pause, drain, pin and move
	Registered                          map[string]coord.Registration // loads and labels of resources, by name
}

// place draws a placement, for half of the worlds.
func (s *Setup) place(c chance) {
	if !c.of("at all").percent(50) {
		return
	}
	s.Acts = c.of("acts").percent(60)
	if c.of("active").percent(25) {
		s.MaxActive, s.FailBack = 1+int(c.of("how many").below(3)), c.of("back").percent(40)
	}
	if c.of("moving").percent(30) {
		s.MaxMoving = 1 + int(c.of("at a time").below(4))
	}
	if c.of("moving of one").percent(20) {
		s.MaxMovingNode = 1 + int(c.of("of one").below(2))
	}
	weights, labels := c.of("weights").percent(30), c.of("labels").percent(40)
	for i := range s.Nodes {
		n, x := &s.Nodes[i], c.of("node", int64(i))
		if weights {
			n.Weight = 1 + int(x.of("weight").below(3))
		}
		if labels && x.of("labelled").percent(80) {
			n.Labels = map[string]string{"zone": pick(x.of("zone"), "a", "b")}
		}
	}
	s.register(c, labels)
}

// register draws what resources ask for, and their loads.
func (s *Setup) register(c chance, labels bool) {
	if s.Origin != coord.OriginRegistered {
		return
	}
	s.Registered = map[string]coord.Registration{}
	loads := c.of("loads").percent(40)
	for _, r := range s.Resources {
		x, v := c.of("resource").of(r), coord.Registration{Name: r}
		if loads {
			v.Weight = pick(x.of("load"), 1, 1, 2, 3, 5, 20)
		}
		zone := []string{"zone=" + pick(x.of("zone"), "a", "b")}
		switch p := x.of("asks").below(10); {
		case labels && p < 2:
			v.Require = zone
		case labels && p < 4:
			v.Prefer = zone
		}
		s.Registered[r] = v
	}
}

// unplaced takes the placement out: what a profile is for is hard enough to find without it.
func (s *Setup) unplaced() {
	s.Placement = Placement{}
	for i := range s.Nodes {
		s.Nodes[i].Weight, s.Nodes[i].Labels = 0, nil
	}
}

// acts are what operators do, as things that happen to a group.
var acts = []weighted{{ActPause, 3}, {ActPauseKept, 3}, {ActDrain, 4}, {ActDrainSelf, 3}, {ActPin, 6}, {ActMove, 6}}

// act carries out what an operator does. It is taken back after a while, or stands when the world is at rest.
func (w *World) act(f Fault) {
	w.noteAct(f)
	key, v := "", coord.Control{}
	r := ""
	if f.Arg >= 0 {
		r = w.setup.Resources[f.Arg]
	}
	name := w.names[max(f.Node, 0)]
	switch f.Kind {
	case ActPause, ActPauseKept:
		key, v = coord.PauseKey(r), coord.Control{Resource: r, Keep: f.Kind == ActPauseKept}
		if r == "" {
			key = coord.PauseGroupKey
		}
	case ActDrain:
		key, v = coord.DrainKey(name), coord.Control{Node: name}
	case ActPin:
		key, v = coord.PinKey(r), coord.Control{Resource: r, Node: name}
	case ActMove: // the coordinator takes it back
		w.write(coord.MoveKey(r), &coord.Control{Resource: r, Node: name})
		return
	case ActDrainSelf:
		w.drainSelf(f)
		return
	}
	w.controls[key] = v
	w.write(key, &v)
	if !f.Stands {
		w.at(f.At+f.Dur, func() { w.takeBack(key) })
	}
}

// takeBack ends what an operator asked for.
func (w *World) takeBack(key string) {
	delete(w.controls, key)
	w.write(key, nil)
}

// write puts down what an operator asks for, and wakes the coordinator.
func (w *World) write(key string, v *coord.Control) {
	w.store.notice(w.now)
	if v != nil {
		w.store.put(w.now, key, coord.EncodeControl(*v), "")
	} else {
		w.store.remove(key)
	}
	w.wake(coord.CoordinatorAddress)
}

// drainSelf has a process ask by itself to be given nothing.
func (w *World) drainSelf(f Fault) {
	p := w.target(f)
	if p == nil || p.dead {
		return
	}
	set := func(on bool) func() {
		return func() {
			p.draining = on
			p.step(coord.Drain{On: on})
		}
	}
	p.when(set(true))
	if !f.Stands {
		w.at(f.At+f.Dur, func() { p.when(set(false)) })
	}
}

// restore puts back what operators asked for where the store lost it, and takes away what it brought back.
func (w *World) restore() {
	for _, k := range slices.Clone(w.store.keys) {
		_, wanted := w.controls[k]
		if strings.HasPrefix(k, coord.ControlPrefix) && !wanted && !moveKey(k) {
			w.write(k, nil)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(w.controls)) {
		v := w.controls[k]
		w.write(k, &v)
	}
}

// moveKey tells whether an operator asks for a move there.
func moveKey(k string) bool {
	return strings.HasPrefix(k, strings.TrimSuffix(coord.MoveKey(""), "="))
}

// paused tells whether a resource is paused, and whether it stays claimed.
func (w *World) paused(r string) (paused, keep bool) {
	if v, ok := w.controls[coord.PauseKey(r)]; ok {
		return true, v.Keep
	}
	v, ok := w.controls[coord.PauseGroupKey]
	return ok, v.Keep
}

// drained tells whether a node is to hold nothing.
func (w *World) drained(p *proc) bool {
	_, ok := w.controls[coord.DrainKey(p.name)]
	return ok || p.draining
}

// fits tells whether a node has the labels that a resource requires.
func (w *World) fits(p *proc, r string) bool { return w.labelled(&w.setup.Nodes[p.place], r) }

// labelled tells the same of a place.
func (w *World) labelled(n *NodeSetup, r string) bool {
	for _, l := range w.setup.Registered[r].Require {
		if k, v, _ := strings.Cut(l, "="); n.Labels[k] != v {
			return false
		}
	}
	return true
}
