package group

import (
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources"
)

// lane is the messages of one key, in order; the first is the one at work, or the next to be.
type lane struct {
	key   string // "" for a message without one, which has a lane of its own
	items []item // from head on; those before have been worked
	head  int
	timer *time.Timer // while the first waits to be tried again
}

// push adds a message. It makes room where messages were that have been worked, before it asks for more memory.
func (la *lane) push(it item) {
	if n := len(la.items); n == cap(la.items) && la.head > 0 && 2*la.head >= n {
		left := copy(la.items, la.items[la.head:])
		clear(la.items[left:])
		la.items, la.head = la.items[:left], 0
	}
	la.items = append(la.items, it)
}

// pop drops the first message, and tells whether there is another.
func (la *lane) pop() bool {
	la.items[la.head] = item{}
	la.head++
	if la.head == len(la.items) {
		la.items, la.head = la.items[:0], 0
	}
	return len(la.items) > 0
}

// lanes works the messages of one resource by several handlers at once, in order for each key. A message that waits to be tried
// again holds up its key and nothing else.
type lanes struct {
	w *worker
	s *settler

	mu      sync.Mutex
	all     map[*lane]struct{}
	byKey   map[string]*lane
	free    []*lane // empty, to be used again
	ready   []*lane
	running int // goroutines
	parked  int // lanes that wait to try again
	inHand  int // messages
	closed  bool
	exited  bool          // a handler ended its goroutine
	change  chan struct{} // of capacity 1: wakes the fetching goroutine
	wg      sync.WaitGroup
}

// lanes fetches, and gives the messages to the lanes.
func (w *worker) lanes(r sources.Reader, s *settler) (again bool) {
	l := &lanes{w: w, s: s, all: map[*lane]struct{}{}, byKey: map[string]*lane{}, change: make(chan struct{}, 1)}
	defer func() {
		l.close()
		again = again && !l.exited
	}()
	for {
		n, ok := l.room()
		if !ok || !s.room() {
			return false
		}
		ms, ok := w.fetch(r, n)
		if !ok {
			return !w.closing.Load()
		}
		for _, m := range ms {
			w.prepare(m)
			l.put(m)
		}
		s.idle()
	}
}

// room waits until messages may be fetched and says how many; false when the resource is to be given back.
func (l *lanes) room() (int, bool) {
	most := l.w.env.cfg.Concurrency
	prefetch := l.w.mayPrefetch()
	for {
		l.mu.Lock()
		free := readAhead + most - l.inHand // those that wait to be tried again are held, too
		if !prefetch {
			free = min(max(leastParked, parkedEach*most)+most-l.inHand, most-(l.inHand-l.parked))
		}
		exited := l.exited
		l.mu.Unlock()
		switch {
		case exited || l.w.closing.Load():
			return 0, false
		case free > 0:
			return min(free, readAhead), true
		}
		select {
		case <-l.change:
		case <-l.w.draining:
			return 0, false
		}
	}
}

func (l *lanes) put(m *rebalancer.Message) {
	it := item{m: m}
	key := l.w.keyOf(&it)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inHand++
	la := l.byKey[key]
	if key == "" || la == nil {
		la = l.newLane(key)
		la.push(it)
		l.readyLocked(la)
		return
	}
	la.push(it)
}

// keyOf is a message's order key. Where the user's function panics it is the message's own, and the message fails: without its key it may
// not be worked.
func (w *worker) keyOf(it *item) (key string) {
	f := w.env.cfg.Key
	if f == nil {
		return it.m.Key
	}
	defer func() {
		if r := recover(); r != nil {
			key, it.err = it.m.Key, fmt.Errorf("Config.Key: %w", &panicError{r, debug.Stack()})
		}
	}()
	return f(it.m)
}

// newLane takes an empty lane into use.
func (l *lanes) newLane(key string) *lane {
	var la *lane
	if n := len(l.free); n > 0 {
		la, l.free = l.free[n-1], l.free[:n-1]
	} else {
		la = &lane{}
	}
	la.key = key
	l.all[la] = struct{}{}
	if key != "" {
		l.byKey[key] = la
	}
	return la
}

// readyLocked queues a lane and sees to it that a goroutine takes it.
func (l *lanes) readyLocked(la *lane) {
	l.ready = append(l.ready, la)
	if l.running < l.w.env.cfg.Concurrency {
		l.running++
		l.wg.Add(1)
		go l.run()
	}
}

// run works lanes that are ready until there is none.
func (l *lanes) run() {
	defer l.wg.Done()
	var la *lane
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.running--
		if la != nil { // the handler ended the goroutine
			l.exited = true
			l.w.stopFetch()
			signal(l.change)
		}
	}()
	for {
		var it item
		if la, it = l.next(); la == nil {
			return
		}
		v, wait := l.w.attempt(l.s, &it)
		done := la
		la = nil
		l.finished(done, it, v, wait)
	}
}

// next takes a lane that is ready; its first message is copied, because the queue may grow meanwhile.
func (l *lanes) next() (*lane, item) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.ready) == 0 || l.closed || l.w.halted.Load() {
		return nil, item{}
	}
	la := l.ready[0]
	l.ready[0] = nil
	l.ready = l.ready[1:]
	return la, la.items[la.head]
}

// finished puts a lane where it belongs after an attempt at its first message, it.
func (l *lanes) finished(la *lane, it item, v verdict, wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer signal(l.change)
	switch v {
	case settled:
		l.inHand--
		if la.pop() {
			l.ready = append(l.ready, la)
			return
		}
		delete(l.all, la)
		if la.key != "" {
			delete(l.byKey, la.key)
		}
		l.free = append(l.free, la)
	case again:
		la.items[la.head] = it
		if l.closed {
			return
		}
		l.parked++
		la.timer = time.AfterFunc(wait, func() { l.unpark(la) })
	}
	// Else it stays as it is, for close to give back.
}

func (l *lanes) unpark(la *lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if la.timer == nil || l.closed {
		return
	}
	la.timer = nil
	l.parked--
	l.readyLocked(la)
}

// close lets handlers finish that run, and gives back the rest.
func (l *lanes) close() {
	l.mu.Lock()
	l.closed = true
	for la := range l.all { // in any order: the messages of each lane stay in theirs
		if la.timer != nil {
			la.timer.Stop()
			la.timer = nil
		}
	}
	l.mu.Unlock()
	l.wg.Wait()
	for la := range l.all {
		for _, it := range la.items[la.head:] {
			l.s.add(sources.Settlement{Message: it.m, Outcome: sources.Release})
		}
	}
}
