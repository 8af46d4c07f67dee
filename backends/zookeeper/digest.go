package zookeeper

import (
	"context"
	"maps"
	"strings"
	"sync"

	"github.com/rebalancer-go/rebalancer/backends"
)

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
	lives, err := h.lives(ctx, v, entries)
	if err != nil {
		return nil, err
	}
	for _, prefix := range prefixes {
		d := backends.Digest{Left: -1}
		for i := range entries {
			if e := &entries[i]; strings.HasPrefix(e.key, prefix) && e.present(lives.alive) {
				d.Add(e.key, rec.version(e.stat.Mzxid), lives.left(e.session))
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
