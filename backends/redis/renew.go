package redis

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/storereq"
)

// perScript is how many entries one script handles at most.
const perScript = 500

// run calls a script of the session. A session that this handle saw end is told so even if the data was rolled back: by a session that there is not.
func (h *session) run(ctx context.Context, script *redis.Script, args ...any) (reply, error) {
	id := h.id
	if h.over() {
		id = "-"
	}
	return h.store.run(ctx, script, h.space, id, args...)
}

// refused is why a script refused the session.
func (h *session) refused(r reply) error {
	err := refusal(r.code)
	if err == backends.ErrSessionLost {
		h.end()
	}
	return err
}

func (h *session) Renew(ctx context.Context, r backends.RenewRequest) (backends.RenewReply, error) {
	if err := storereq.Keys(r.Keys); err != nil {
		return backends.RenewReply{}, err
	}
	keys, rest := r.Keys, []string(nil)
	if len(keys) > perScript-100 {
		keys, rest = keys[:perScript-100], keys[perScript-100:]
	}
	sweep := "0"
	if r.Sweep || h.sweep.Load() {
		sweep = "1"
	}
	args := []any{r.Incarnation, h.ttl.Microseconds(), sweep, len(keys)}
	for _, k := range keys {
		args = append(args, k)
	}
	args = append(args, len(r.Digests))
	known := h.known.get(r.Incarnation)
	for _, prefix := range r.Digests {
		have := "-"
		if l := known[prefix]; l != nil {
			have = l.seq
		}
		lo, hi := bounds(prefix)
		args = append(args, part(prefix), have, lo, hi)
	}
	got, err := h.run(ctx, h.store.scripts.renew, args...)
	if err != nil {
		return backends.RenewReply{}, err
	}
	reply := backends.RenewReply{Stamp: got.stamp}
	if err := h.refused(got); err != nil {
		return reply, err
	}
	return h.renewed(ctx, r, reply, got, known, keys, rest)
}

// renewed completes the answer of a renewal that was done: what it asked for beyond one script is read now.
func (h *session) renewed(ctx context.Context, r backends.RenewRequest, reply backends.RenewReply, got reply, known map[string]*listing, keys, rest []string) (backends.RenewReply, error) {
	if len(got.rest) != 4 {
		return backends.RenewReply{}, h.store.wrap(errMalformed)
	}
	p := parser{}
	h.sweep.Store(p.text(got.rest[0]) == "1")
	states, digests, live := p.list(got.rest, 1), p.list(got.rest, 2), p.list(got.rest, 3)
	if p.err != nil || len(states) != 3*len(keys) || len(digests) != len(r.Digests) {
		return backends.RenewReply{}, h.store.wrap(errMalformed)
	}
	reply.Keys = make(map[string]backends.KeyState, len(r.Keys))
	for i, key := range keys {
		if version := p.number(states[3*i]); version != 0 {
			reply.Keys[key] = backends.KeyState{Version: version, Session: p.text(states[3*i+1]), Left: p.left(states[3*i+2])}
		}
	}
	if p.err == nil && len(rest) > 0 {
		more, err := h.Read(ctx, backends.ReadRequest{Keys: rest, NamesOnly: true})
		if err != nil {
			return backends.RenewReply{}, err
		}
		for _, e := range more.Entries {
			reply.Keys[e.Key] = backends.KeyState{Version: e.Version, Session: e.Session, Left: e.Left}
		}
	}
	ends := endsOf(&p, live)
	reply.Digests = make(map[string]backends.Digest, len(r.Digests))
	next := make(map[string]*listing, len(r.Digests))
	for i, prefix := range r.Digests {
		l, err := h.listing(ctx, &p, prefix, known[prefix], p.list(digests, i))
		if err != nil {
			return backends.RenewReply{}, err
		}
		reply.Digests[prefix] = l.digest(ends, got.stamp.Time)
		if l.whole {
			next[prefix] = l
		}
	}
	if p.err != nil {
		return backends.RenewReply{}, h.store.wrap(p.err)
	}
	if len(r.Digests) > 0 {
		h.known.set(r.Incarnation, next)
	}
	return reply, nil
}

func endsOf(p *parser, live []any) map[string]time.Time {
	ends := make(map[string]time.Time, len(live)/2)
	for i := 0; i+1 < len(live); i += 2 {
		ends[p.text(live[i])] = time.UnixMicro(p.number(live[i+1]))
	}
	return ends
}

// listings are the lists below prefixes as this session last saw them: while the server says that nothing changed there, a renewal
// has their digest without reading them again.
type listings struct {
	mu          sync.Mutex
	incarnation string
	at          map[string]*listing // never changed in place
}

// listing is what is below a prefix, also of sessions that have ended since.
type listing struct {
	seq   string // of the last change
	whole bool   // nothing changed while it was read
	names []listed
}

type listed struct {
	name, session string
	version       int64
}

func (k *listings) get(incarnation string) map[string]*listing {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.incarnation != incarnation {
		return nil
	}
	return k.at
}

func (k *listings) set(incarnation string, at map[string]*listing) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.incarnation, k.at = incarnation, at
}

// digest is that of the entries whose sessions are alive.
func (l *listing) digest(ends map[string]time.Time, now time.Time) backends.Digest {
	d := backends.Digest{Left: -1}
	for _, n := range l.names {
		left := time.Duration(-1)
		if n.session != "" {
			end, ok := ends[n.session]
			if !ok {
				continue
			}
			left = end.Sub(now)
		}
		d.Add(n.name, n.version, left)
	}
	return d
}

// listing makes the list below a prefix from a renewal's answer, and reads what had no room in it.
func (h *session) listing(ctx context.Context, p *parser, prefix string, known *listing, got []any) (*listing, error) {
	if len(got) == 1 && known != nil {
		return known, nil
	}
	if len(got) < 2 || len(got)%3 != 2 {
		p.fail()
		return &listing{}, nil
	}
	l := &listing{seq: p.text(got[0]), whole: true}
	for i := 2; i < len(got); i += 3 {
		l.names = append(l.names, listed{p.text(got[i]), p.text(got[i+2]), p.number(got[i+1])})
	}
	lo := p.text(got[1])
	_, hi := bounds(prefix)
	for lo != "" && p.err == nil {
		page, err := h.readPage(ctx, nil, []span{{part: part(prefix), lo: lo, hi: hi}}, true)
		if err != nil {
			return nil, err
		}
		for _, e := range page.spans[0].entries {
			l.names = append(l.names, listed{e.Key, e.Session, e.Version})
		}
		l.whole = l.whole && page.spans[0].seq == l.seq
		lo = page.spans[0].cut
	}
	return l, nil
}
