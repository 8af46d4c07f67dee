package zookeeper

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/storereq"
)

// Read is as new as what was acknowledged before it. It needs four round trips, whatever the number of keys up to the pipeline's length.
func (h *session) Read(ctx context.Context, r backends.ReadRequest) (backends.ReadReply, error) {
	if err := storereq.Keys(r.Keys); err != nil {
		return backends.ReadReply{}, err
	}
	for {
		if err := errors.Join(h.s.open(), ctx.Err()); err != nil {
			return backends.ReadReply{}, err
		}
		v, err := h.reader(ctx)
		if err != nil {
			return backends.ReadReply{}, h.s.wrap(err)
		}
		reply, err := h.read(ctx, v, r)
		if !errors.Is(err, errOver) && !errors.Is(err, errBehind) {
			return reply, h.s.wrap(err)
		}
	}
}

func (h *session) read(ctx context.Context, v via, r backends.ReadRequest) (backends.ReadReply, error) {
	if err := v.sync(ctx); err != nil {
		return backends.ReadReply{}, h.s.missing(ctx, v, err)
	}
	rec, err := h.s.current(ctx, v)
	if err != nil {
		return backends.ReadReply{}, err
	}
	dirs, err := v.bucketsOf(ctx, h.dir, r.Prefixes)
	if err != nil {
		return backends.ReadReply{}, err
	}
	below, err := v.keysBelow(ctx, dirs, r.Prefixes)
	if err != nil {
		return backends.ReadReply{}, err
	}
	keys := append(below, r.Keys...)
	slices.Sort(keys)
	keys = slices.Compact(keys)
	found, err := v.fetch(ctx, h.dir, keys)
	if err != nil {
		return backends.ReadReply{}, err
	}
	alive, err := v.alive(ctx, h.dir, found)
	if err != nil {
		return backends.ReadReply{}, err
	}
	reply := backends.ReadReply{Stamp: h.s.stamp(), Digests: make(map[string]backends.Digest, len(r.Prefixes))}
	reply.Incarnation, reply.Since = rec.id, rec.since
	for i := range found {
		e := &found[i]
		if !e.present(alive) {
			continue
		}
		out := backends.Entry{Key: e.key, Version: rec.version(e.stat.Mzxid), Session: e.session, Left: -1}
		if !r.NamesOnly {
			out.Value = e.value
		}
		reply.Entries = append(reply.Entries, out)
	}
	for _, prefix := range r.Prefixes {
		d := backends.Digest{Left: -1}
		for _, e := range reply.Entries {
			if strings.HasPrefix(e.Key, prefix) {
				d.Add(e.Key, e.Version, -1)
			}
		}
		reply.Digests[prefix] = d
	}
	return reply, nil
}

// current is the incarnation of what is read through v; when it is another one than was known, by a look.
func (s *Store) current(ctx context.Context, v via) (*record, error) {
	m := s.mark()
	r, err := s.readRecord(ctx, v)
	if err != nil || r != nil && m.rec != nil && r.id == m.rec.id {
		return r, err
	}
	return s.look(ctx, v)
}

// missing makes what a store needs when that was the reason of an error.
func (s *Store) missing(ctx context.Context, v via, err error) error {
	if ctx.Err() == nil && strings.Contains(err.Error(), "node does not exist") {
		_, err = s.look(ctx, v)
	}
	return err
}

// keyStates reads what a renewal tells of keys.
func (h *session) keyStates(ctx context.Context, keys []string) (map[string]backends.KeyState, error) {
	states := make(map[string]backends.KeyState, len(keys))
	if len(keys) == 0 {
		return states, nil
	}
	rec := h.s.mark().rec
	v := h.via()
	entries, err := v.fetch(ctx, h.dir, keys)
	if err != nil {
		return nil, err
	}
	alive, err := v.alive(ctx, h.dir, entries)
	if err != nil {
		return nil, err
	}
	for i := range entries {
		if e := &entries[i]; e.present(alive) {
			states[e.key] = backends.KeyState{Version: rec.version(e.stat.Mzxid), Session: e.session, Left: -1}
		}
	}
	return states, nil
}

// cache has what was read of buckets, for the digests: each commit writes the bucket of what it changes, so one that was not written since has not
// changed, but for entries of sessions that ended.
type cache struct {
	mu      sync.Mutex
	buckets map[string]*cachedBucket
}

type cachedBucket struct {
	mzxid   int64 // of the bucket, before it was read
	entries []entry
}

// digests sums up what is below prefixes.
func (h *session) digests(ctx context.Context, prefixes []string) (map[string]backends.Digest, error) {
	sums := make(map[string]backends.Digest, len(prefixes))
	if len(prefixes) == 0 {
		h.cache.drop()
		return sums, nil
	}
	rec := h.s.mark().rec
	v := h.via()
	dirs, err := v.bucketsOf(ctx, h.dir, prefixes)
	if err != nil {
		return nil, err
	}
	entries, err := h.cached(ctx, v, dirs)
	if err != nil {
		return nil, err
	}
	alive, err := v.alive(ctx, h.dir, entries)
	if err != nil {
		return nil, err
	}
	for _, prefix := range prefixes {
		d := backends.Digest{Left: -1}
		for i := range entries {
			if e := &entries[i]; strings.HasPrefix(e.key, prefix) && e.present(alive) {
				d.Add(e.key, rec.version(e.stat.Mzxid), -1)
			}
		}
		sums[prefix] = d
	}
	return sums, nil
}

func (c *cache) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.buckets = nil
}

// cached gives all entries of some buckets, without their values, and reads again what was written since.
func (h *session) cached(ctx context.Context, v via, dirs []string) ([]entry, error) {
	stats, err := v.statAll(ctx, dirs)
	if err != nil {
		return nil, err
	}
	h.cache.mu.Lock()
	known := maps.Clone(h.cache.buckets)
	h.cache.mu.Unlock()
	fresh := map[string]*cachedBucket{}
	var stale []string
	for i, dir := range dirs {
		switch old := known[dir]; {
		case !stats[i].there:
		case old != nil && old.mzxid == stats[i].stat.Mzxid:
			fresh[dir] = old
		default:
			fresh[dir] = &cachedBucket{mzxid: stats[i].stat.Mzxid}
			stale = append(stale, dir)
		}
	}
	keys, err := v.keysBelow(ctx, stale, []string{""})
	if err != nil {
		return nil, err
	}
	read, err := v.fetch(ctx, h.dir, keys)
	if err != nil {
		return nil, err
	}
	for _, e := range read {
		dir, _ := h.dir.where(e.key)
		if e.value = nil; len(e.data) > 0 {
			e.data = e.data[:1:1]
		}
		fresh[dir].entries = append(fresh[dir].entries, e)
	}
	var all []entry
	for _, b := range fresh {
		all = append(all, b.entries...)
	}
	h.cache.mu.Lock()
	defer h.cache.mu.Unlock()
	if h.cache.buckets == nil {
		h.cache.buckets = map[string]*cachedBucket{}
	}
	maps.Copy(h.cache.buckets, fresh)
	return all, nil
}
