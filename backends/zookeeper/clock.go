package zookeeper

import (
	"sync"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
)

// clock is the store's clock as far as it is known: a time that a server told in answer to a write, and what has passed here since the
// answer came. It is behind the server's by the way of the answer, never ahead.
type clock struct {
	mu     sync.Mutex
	server int64 // ms
	at     time.Time
}

func (c *clock) set(ms int64) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server, c.at = ms, time.Now()
	return time.UnixMilli(ms)
}

// now is in whole milliseconds, rounded down as servers do. It is zero before the first answer.
func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() {
		return time.Time{}
	}
	return time.UnixMilli(c.server + time.Since(c.at).Milliseconds())
}

// stamp is for a reply that no server has put its time on.
func (s *Store) stamp() backends.Stamp { return s.stampAt(s.clock.now()) }

func (s *Store) stampAt(now time.Time) backends.Stamp {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := backends.Stamp{Time: now}
	if s.rec != nil {
		st.Incarnation, st.Since = s.rec.id, s.rec.since
	}
	return st
}

// lease tells which renewals a node may count on for the whole TTL.
//
// A session of ZooKeeper ends its timeout T after the leader last heard of it. Of a client of another server the leader hears
// with that server's answer to a ping, which it sends every half tick, and not with the client's writes. So a server that
// acknowledges a renewal and is then cut off from its leader leaves the leader with what it heard before: the session ends T after
// an earlier request, not after the renewal. A renewal counts when an earlier request was sent at most T/5 before it and was answered at
// least T/10 before it: then the leader has heard of that one (T/10 is at least half a tick when T is at least five ticks), and the
// session lives until 4/5 T after the renewal was sent, which is the TTL that Session.TTL tells. Of a new session, or one that was moved to another
// server, the leader hears at once.
type lease struct {
	timeout time.Duration // T
	mu      sync.Mutex
	touches []touch
}

// touch is a request that was answered.
type touch struct{ sent, heard time.Time }

func (l *lease) ttl() time.Duration   { return l.timeout - l.early() }
func (l *lease) early() time.Duration { return l.timeout / 5 }
func (l *lease) relay() time.Duration { return l.timeout / 10 }

// assured tells whether a request that is sent at some time assures the TTL, given when the leader heard of the session directly.
func (l *lease) assured(sent, direct time.Time) bool {
	least := sent.Add(-l.early())
	if !direct.Before(least) {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.touches {
		if !t.sent.Before(least) && !t.heard.After(sent.Add(-l.relay())) {
			return true
		}
	}
	return false
}

// wait is how long it takes until a request that is sent then assures the TTL by one that was answered.
func (l *lease) wait() time.Duration {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	least := l.relay()
	for _, t := range l.touches {
		at := t.heard.Add(l.relay())
		if !at.Before(now) && at.Sub(t.sent) <= l.early() {
			least = min(least, at.Sub(now))
		}
	}
	return least
}

// add notes a request that was answered just now.
func (l *lease) add(sent time.Time) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	keep := l.touches[:0]
	for _, t := range l.touches {
		if now.Sub(t.sent) < l.timeout {
			keep = append(keep, t)
		}
	}
	if n := len(keep); n > 0 && now.Sub(keep[n-1].heard) < l.timeout/100 {
		l.touches = keep // one that is hardly older will do
		return
	}
	l.touches = append(keep, touch{sent, now})
}
