package measure

import (
	"container/heap"
	"fmt"
	"strings"
	"time"

	"github.com/rebalancer-go/rebalancer/coord"
)

// tripTime is what a call of the model store takes, in the machines' own time.
const tripTime = coord.Duration(2e6)

// world runs machines over a model store in virtual time, and measures the real time of their steps.
type world struct {
	now      coord.Time
	store    modelStore
	machines map[string]*machine
	queue    eventQueue
	seq      int
	spent    Steps
}

type machine struct {
	*coord.Machine
	name    string
	session string
	working map[string]bool
	ears    map[string]bool
	wakeAt  coord.Time
	done    bool
}

// Steps is what steps of machines cost, all machines together.
type Steps struct {
	Count   int
	Total   time.Duration
	Longest time.Duration
	Trips   float64 // time that went by, in round trips of the store
}

type event struct {
	at  coord.Time
	seq int
	to  *machine
	ev  coord.Event
}

type eventQueue []event

func (q eventQueue) Len() int { return len(q) }
func (q eventQueue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}
func (q eventQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *eventQueue) Push(x any)   { *q = append(*q, x.(event)) }
func (q *eventQueue) Pop() any {
	old := *q
	e := old[len(old)-1]
	*q = old[:len(old)-1]
	return e
}

func newWorld() *world {
	return &world{now: 1e9, store: modelStore{entries: map[string]coord.Entry{}, version: 1000}, machines: map[string]*machine{}}
}

func (w *world) join(name string, mode coord.Mode, resources []string) *machine {
	m := &machine{
		Machine: coord.New(coord.Config{Group: "bench", Node: name, Instance: name, Mode: mode, Static: resources, Seed: uint64(len(name))}),
		name:    name, working: map[string]bool{}, ears: map[string]bool{},
	}
	w.machines[name] = m
	w.post(m, 0, coord.Start{})
	return m
}

func (w *world) post(m *machine, after coord.Duration, ev coord.Event) {
	w.seq++
	heap.Push(&w.queue, event{w.now + coord.Time(after), w.seq, m, ev})
}

// run takes events until done holds, and returns what the steps cost.
func (w *world) run(what string, done func() bool) (Steps, error) {
	w.spent = Steps{}
	began := w.now
	for n := 0; !done(); n++ {
		if n > 1e6 || len(w.queue) == 0 {
			return w.spent, fmt.Errorf("%s does not come to an end", what)
		}
		e := heap.Pop(&w.queue).(event)
		w.now = max(w.now, e.at)
		if _, tick := e.ev.(coord.Tick); tick && e.at != e.to.wakeAt || e.to.done {
			continue // it has another time to wake by now
		}
		w.step(e.to, e.ev)
	}
	w.spent.Trips = float64(w.now-began) / float64(tripTime)
	return w.spent, nil
}

func (w *world) step(m *machine, ev coord.Event) {
	began := time.Now()
	actions := m.Step(w.now, ev)
	wake := m.Wake()
	took := time.Since(began)
	w.spent.Count++
	w.spent.Total += took
	w.spent.Longest = max(w.spent.Longest, took)
	for _, a := range actions {
		w.do(m, a)
	}
	if m.wakeAt = max(wake, w.now); !m.done && wake < 1<<62 {
		w.post(m, coord.Duration(m.wakeAt-w.now), coord.Tick{})
	}
}

func (w *world) do(m *machine, a coord.Action) {
	switch a := a.(type) {
	case coord.OpenSession:
		m.session = m.name + "-session"
		w.post(m, tripTime, coord.Opened{Req: a.Req, Session: m.session, TTL: a.TTL, Stamp: w.store.stamp(w.now)})
	case coord.CloseSession:
		w.store.end(a.Session)
		w.post(m, tripTime, coord.Closed{Req: a.Req})
	case coord.Renew:
		w.post(m, tripTime, w.store.renew(a, w.now))
	case coord.Read:
		w.post(m, tripTime, w.store.read(a, w.now))
	case coord.Commit:
		ev, wake := w.store.commit(a, w.now)
		w.post(m, tripTime, ev)
		w.hint(wake)
	case coord.Listen:
		m.ears[a.Address] = true
	case coord.StartWork:
		m.working[a.Resource] = true
	case coord.Revoke:
		w.stop(m, a.Resource, a.Fence)
	case coord.Lose:
		w.stop(m, a.Resource, a.Fence)
	case coord.Finish:
		m.done = true
	}
}

// stop ends a worker a little later: not all in one moment.
func (w *world) stop(m *machine, resource string, fence int64) {
	delete(m.working, resource)
	w.post(m, coord.Duration(w.seq%1000)*1000, coord.Stopped{Resource: resource, Fence: fence})
}

// hint wakes, once for each address, as the runtime does.
func (w *world) hint(addresses []string) {
	told := map[string]bool{}
	for _, a := range addresses {
		if told[a] {
			continue
		}
		told[a] = true
		for _, m := range w.machines {
			if m.ears[a] && !m.done && (!strings.HasPrefix(a, "node/") || a == coord.NodeAddress(m.name)) {
				w.post(m, tripTime/2, coord.Hinted{Address: a})
			}
		}
	}
}
