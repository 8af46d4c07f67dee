package zookeeper

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
)

// cache has what was read of buckets, for the digests: each commit writes the bucket of what it changes, so one that was not written since has not
// changed, but for entries of sessions that ended.
type cache struct {
	filling chan struct{} // held by who reads
	mu      sync.Mutex
	buckets map[string]*cachedBucket
	unused  int // renewals in a row that asked for no digest
}

type cachedBucket struct {
	mzxid   int64 // of the bucket, before it was read
	entries []entry
}

// batch is about how many entries of buckets that changed are read at a time.
const batch = 1000

// half is a context that ends when half of the time is over that ctx has.
func half(ctx context.Context) (context.Context, context.CancelFunc) {
	if deadline, ok := ctx.Deadline(); ok {
		return context.WithTimeout(ctx, time.Until(deadline)/2)
	}
	return context.WithCancel(ctx)
}

// digests sums up what is below prefixes. It takes at most half of the time that ctx has: a renewal must not be late because many
// entries changed. What is not read by then is left out, and read by the next ones.
func (h *session) digests(ctx context.Context, prefixes []string) (map[string]backends.Digest, error) {
	sums := make(map[string]backends.Digest, len(prefixes))
	h.cache.used(len(prefixes) > 0)
	if len(prefixes) == 0 {
		return sums, nil
	}
	rec := h.s.mark().rec
	v := h.via()
	folders, err := v.folders(ctx, h.dir, prefixes)
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, prefix := range prefixes {
		dirs = append(dirs, h.dir.below(prefix, folders)...)
	}
	slices.Sort(dirs)
	found, err := h.cached(ctx, v, slices.Compact(dirs))
	if err != nil {
		return nil, err
	}
	lives, err := h.lives(ctx, v, flatten(found))
	if err != nil {
		return nil, err
	}
	for _, prefix := range prefixes {
		d, whole := backends.Digest{Left: -1}, true
		for _, dir := range h.dir.below(prefix, folders) {
			b, read := found[dir]
			whole = whole && read
			for i := range b {
				if e := &b[i]; strings.HasPrefix(e.key, prefix) && e.present(lives.alive) {
					d.Add(e.key, rec.version(e.stat.Mzxid), lives.left(e.session))
				}
			}
		}
		if whole {
			sums[prefix] = d
		}
	}
	return sums, nil
}

func flatten(found map[string][]entry) []entry {
	var all []entry
	for _, b := range found {
		all = append(all, b...)
	}
	return all
}

// used drops the cache when nobody has asked for a digest for ten renewals: the node does not coordinate any more.
func (c *cache) used(now bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unused++; now {
		c.unused = 0
	} else if c.unused >= 10 {
		c.buckets = nil
	}
}

// cached gives the entries of buckets, without their values. What was written since it was read last is read again in the background: it is
// waited for until half of the time is over that ctx has. What is missing in the result was not read by then.
func (h *session) cached(ctx context.Context, v via, dirs []string) (map[string][]entry, error) {
	stats, err := v.statAll(ctx, dirs)
	if err != nil {
		return nil, err
	}
	found := make(map[string][]entry, len(dirs))
	look := func() (stale []staleBucket) {
		h.cache.mu.Lock()
		defer h.cache.mu.Unlock()
		for i, dir := range dirs {
			switch b := h.cache.buckets[dir]; {
			case !stats[i].there:
				found[dir] = nil
			case b != nil && b.mzxid >= stats[i].stat.Mzxid:
				found[dir] = b.entries
			default:
				stale = append(stale, staleBucket{dir, stats[i].stat.Mzxid, int(stats[i].stat.NumChildren)})
			}
		}
		return stale
	}
	stale := look()
	if len(stale) == 0 {
		return found, nil
	}
	budget, cancel := half(ctx)
	defer cancel()
	if err := h.refill(budget, v, stale); err != nil {
		return nil, err
	}
	look()
	return found, nil
}

// staleBucket is one that was written since it was read.
type staleBucket struct {
	dir   string
	mzxid int64
	size  int
}

// refill reads buckets in the background, unless that is under way, and waits for it as long as ctx lasts.
func (h *session) refill(ctx context.Context, v via, stale []staleBucket) error {
	select {
	case h.cache.filling <- struct{}{}:
	case <-ctx.Done():
		return nil
	}
	done := make(chan error, 1)
	h.s.background(func() {
		defer func() { <-h.cache.filling }()
		var err error
		for len(stale) > 0 && err == nil {
			n, size := 0, 0
			for n < len(stale) && (size < batch || n == 0) {
				size += stale[n].size
				n++
			}
			err = h.fill(h.ctx, v, stale[:n])
			stale = stale[n:]
		}
		done <- err
	})
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return nil
	}
}

// fill reads buckets and remembers them.
func (h *session) fill(ctx context.Context, v via, stale []staleBucket) error {
	read := map[string]*cachedBucket{}
	var dirs []string
	for _, b := range stale {
		read[b.dir] = &cachedBucket{mzxid: b.mzxid}
		dirs = append(dirs, b.dir)
	}
	keys, err := v.keysBelow(ctx, dirs, []string{""})
	if err != nil {
		return err
	}
	entries, err := v.fetch(ctx, h.dir, keys)
	if err != nil {
		return err
	}
	for _, e := range entries {
		dir, _ := h.dir.where(e.key)
		if e.value = nil; len(e.data) > 0 {
			e.data = e.data[:1:1]
		}
		read[dir].entries = append(read[dir].entries, e)
	}
	h.cache.mu.Lock()
	defer h.cache.mu.Unlock()
	if h.cache.buckets == nil {
		h.cache.buckets = map[string]*cachedBucket{}
	}
	maps.Copy(h.cache.buckets, read)
	return nil
}
