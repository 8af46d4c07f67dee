package zookeeper

import (
	"context"
	"maps"
	"sync"
	"time"
)

// many is up to how many sessions are read one by one whenever they are asked for.
const many = 64

// beats remembers when sessions were last renewed, so that a node that asks for the digest of many members need not read each session
// for each renewal of its own.
type beats struct {
	mu   sync.Mutex
	last map[string]int64 // ms by the server's clock
}

// lives are the sessions behind some entries that are alive, and when they were renewed at the latest that is known.
type lives struct {
	h    *session
	last map[string]int64
	now  time.Time
}

func (l lives) alive(session string) bool { _, ok := l.last[session]; return ok }

// left is about when the session of a process that died ends: a timeout after its last renewal and a little more, since the client
// pings between renewals, and the server rounds up. It is never said to be more than the TTL, nor to be over while the session is there.
func (l lives) left(session string) time.Duration {
	last, ok := l.last[session]
	if !ok {
		return -1
	}
	t := l.h.lease.timeout
	least := max(t/40, 50*time.Millisecond)
	return min(max(time.UnixMilli(last).Add(t+t/20).Sub(l.now), least), l.h.TTL())
}

// lives asks for the sessions behind entries, after the entries were read: see via.alive. Of many, only those are read
// that were not renewed for half a TTL as far as is known, and the others listed.
func (h *session) lives(ctx context.Context, v via, entries []entry) (lives, error) {
	l := lives{h, map[string]int64{}, h.s.clock.now()}
	asked := map[string]bool{}
	for i := range entries {
		if s := entries[i].session; s != "" {
			asked[s] = true
		}
	}
	known := map[string]int64{}
	listed := len(asked) > many
	if listed {
		names, err := v.children(ctx, string(h.dir)+"/s")
		if err != nil {
			return l, err
		}
		h.beats.mu.Lock()
		for _, name := range names {
			if last := h.beats.last[name]; asked[name] && l.now.Sub(time.UnixMilli(last)) < h.TTL()/2 {
				l.last[name], known[name] = last, last
			} else if asked[name] {
				known[name] = 0
			}
		}
		h.beats.mu.Unlock()
		for name := range asked {
			if _, there := known[name]; !there || l.last[name] != 0 {
				delete(asked, name) // ended, or known well enough
			}
		}
	}
	var names, paths []string
	for name := range asked {
		names = append(names, name)
		paths = append(paths, h.dir.alive(name))
	}
	nodes, err := v.statAll(ctx, paths)
	if err != nil {
		return l, err
	}
	for i, z := range nodes {
		if z.there {
			l.last[names[i]] = z.stat.Mtime
		}
	}
	h.beats.mu.Lock()
	defer h.beats.mu.Unlock()
	if listed || h.beats.last == nil {
		h.beats.last = map[string]int64{}
	}
	maps.Copy(h.beats.last, l.last)
	return l, nil
}
