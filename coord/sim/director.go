package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rebalancer-go/rebalancer/coord"
)

// Schedule is a small history that somebody wrote: what a guard is for may need an order of messages that chance does not find.
// It is played over the machines and the model store of the searches, with one resource, "r".
type Schedule struct {
	Name string
	Mode coord.Mode
	play func(*director)
}

// Play runs the schedule without some guards, and returns the promise that broke, or nil. The error tells that the schedule does not fit
// the machines any more: a message that it names was never sent.
func (s *Schedule) Play(without coord.Guards, store StoreGuards) (*Violation, error) {
	sc := &Scenario{Name: s.Name, Nodes: 4, Resources: []string{"r"}, Mode: s.Mode, Hints: true, Without: without, Store: store}
	d := &director{state: newState(sc)}
	s.play(d)
	if d.err != nil {
		return d.err, nil
	}
	return nil, d.lost
}

// director plays a schedule. Whatever it is not told to hold back arrives in the order in which it was sent.
type director struct {
	*state
	holds []func(message) bool
	kept  []message // answers that are held back
	lost  error     // the schedule does not fit
}

// over tells whether there is nothing left to show.
func (d *director) over() bool { return d.err != nil || d.lost != nil }

func (d *director) held(m message) bool {
	return slices.ContainsFunc(d.holds, func(f func(message) bool) bool { return f(m) })
}

// hold keeps from arriving what f tells, until free is called.
func (d *director) hold(f func(message) bool) { d.holds = append(d.holds, f) }

func (d *director) free() { d.holds = nil }

// idle lets everything arrive, and the nodes do what they want to do soon: neither a poll nor a renewal is waited for.
func (d *director) idle() { d.on(never, d.now+vtime(soon)) }

// pass lets everything arrive, and time go on.
func (d *director) pass(t vtime) {
	until := d.now + t
	d.on(never, until)
	d.now = max(d.now, until)
}

// until lets everything arrive until done, at most for two ttl.
func (d *director) until(what string, done func() bool) {
	d.on(done, d.now+2*searchTTL)
	if !done() && !d.over() {
		d.lost = fmt.Errorf("%s: %s: never came", d.sc.Name, what)
	}
}

func never() bool { return false }

// on lets everything arrive until done, and time go on to the end.
func (d *director) on(done func() bool, end vtime) {
	for !d.over() && !done() {
		if k := slices.IndexFunc(d.flight, func(m message) bool { return !d.held(m) }); k >= 0 {
			d.arrive(k, false)
			continue
		}
		next, wake := -1, end
		for i := range d.nodes {
			if n := &d.nodes[i]; n.up && vtime(n.machine.Wake()) <= wake {
				next, wake = i, vtime(n.machine.Wake())
			}
		}
		if next < 0 {
			return
		}
		d.now = max(d.now, wake)
		d.step(next, coord.Tick{})
		d.check()
	}
}

func (d *director) arrive(k int, split bool) {
	d.deliver(k, split)
	d.check()
}

// deliverOne lets the first message that f tells arrive now, held back or not.
func (d *director) deliverOne(what string, f func(message) bool) {
	if k := d.find(what, f); k >= 0 {
		d.arrive(k, false)
	}
}

// answerLater lets a request reach the store now, and keeps its answer for answer.
func (d *director) answerLater(what string, f func(message) bool) {
	if k := d.find(what, f); k >= 0 {
		d.arrive(k, true)
		last := len(d.flight) - 1
		d.kept = append(d.kept, d.flight[last])
		d.flight = d.flight[:last]
	}
}

// answer lets the answers that were kept arrive.
func (d *director) answer() {
	for _, m := range d.kept {
		if !d.over() {
			d.step(m.node, m.answer)
			d.check()
		}
	}
	d.kept = nil
}

func (d *director) find(what string, f func(message) bool) int {
	if d.over() {
		return -1
	}
	k := slices.IndexFunc(d.flight, f)
	if k < 0 {
		d.lost = fmt.Errorf("%s: %s: nothing of the kind is on its way", d.sc.Name, what)
	}
	return k
}

// sent tells whether such a message is on its way.
func (d *director) sent(f func(message) bool) func() bool {
	return func() bool { return slices.ContainsFunc(d.flight, f) }
}

// start boots nodes one after the other, and pins the resource to the first.
func (d *director) start(nodes ...int) {
	d.pin(nodes[0])
	for _, i := range nodes {
		d.boot(i)
		d.pass(searchTTL)
	}
	d.pass(searchTTL / 12) // not in the middle of a renewal
	d.now += ms
	if why := d.unsettled(); why != "" && !d.over() {
		d.lost = fmt.Errorf("%s: at the beginning: %s", d.sc.Name, why)
	}
}

// pin has an operator tie the resource to a node, of which the coordinator is told.
func (d *director) pin(i int) {
	d.store.put(d.now, coord.PinKey("r"), coord.EncodeControl(coord.Control{Resource: "r", Node: d.nodes[i].name}), "")
	d.wake(coord.CoordinatorAddress)
}

// settled demands that everything comes to rest, with all the time that polls and renewals need.
func (d *director) settled() {
	d.free()
	d.pass(6 * searchTTL)
	d.atRest()
}

// prompt demands that everything comes to rest before the next renewal.
func (d *director) prompt() {
	d.free()
	d.idle()
	d.atRest()
}

func (d *director) atRest() {
	if why := d.unsettled(); why != "" && !d.over() {
		d.fail(settles, "%s", why)
	}
}

// of picks messages of a node: requests on their way to the store, and hints.
func of(node int, f func(message) bool) func(message) bool {
	return func(m message) bool { return m.node == node && f(m) }
}

func anything(message) bool { return true }

func hints(m message) bool {
	_, ok := m.answer.(coord.Hinted)
	return ok
}

func renewals(m message) bool {
	_, ok := m.call.(coord.Renew)
	return ok
}

// puts picks commits that write below a prefix.
func puts(prefix string) func(message) bool {
	return commits(func(t coord.Txn) bool {
		return slices.ContainsFunc(t.Puts, func(p coord.Put) bool { return strings.HasPrefix(p.Key, prefix) })
	})
}

// deletes picks commits that delete below a prefix.
func deletes(prefix string) func(message) bool {
	return commits(func(t coord.Txn) bool {
		return slices.ContainsFunc(t.Deletes, func(k string) bool { return strings.HasPrefix(k, prefix) })
	})
}

func commits(f func(coord.Txn) bool) func(message) bool {
	return func(m message) bool {
		c, ok := m.call.(coord.Commit)
		return ok && slices.ContainsFunc(c.Txns, f)
	}
}
