package zookeeper

import (
	"context"
	"time"

	"github.com/go-zookeeper/zk"
)

const (
	// graveTime is how long the znode of a deleted key stays: longer than any request can be under way, since its session, and the
	// connection, would have ended.
	graveTime = 10 * time.Minute
	// hintTime is after how long without a hint the znode of an address is removed; who still listens makes it again.
	hintTime = 24 * time.Hour
	// sweepChunk is how many znodes are removed by one request.
	sweepChunk = 100
)

// sweepFor sweeps in the background, unless that is under way, and waits for it for a while, at most half of the time that ctx has: a
// renewal must not be late.
func (h *session) sweepFor(ctx context.Context, patience time.Duration) {
	ctx, cancel := half(ctx)
	defer cancel()
	select {
	case h.sweep <- struct{}{}:
	default:
		return
	}
	done := make(chan struct{})
	h.s.background(func() {
		defer close(done)
		defer func() { <-h.sweep }()
		h.sweepAll(h.ctx) // what fails is found by the next one
	})
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	case <-ctx.Done():
	case <-h.ctx.Done():
	}
}

// sweepAll deletes what ended sessions left, and removes what was deleted long ago.
func (h *session) sweepAll(ctx context.Context) {
	v := h.via()
	dirs, err := v.bucketsOf(ctx, h.dir, []string{""})
	if err != nil {
		return
	}
	found, err := h.cached(ctx, v, dirs)
	if err != nil {
		return
	}
	entries := flatten(found)
	alive, err := v.alive(ctx, h.dir, entries)
	if err != nil {
		return
	}
	old := h.s.clock.now().Add(-max(graveTime, 10*h.lease.timeout)).UnixMilli()
	var ops [][]op
	for i := range entries {
		e := &entries[i]
		bucket, path := h.dir.where(e.key)
		switch {
		case e.deleted() && e.stat.Mtime < old:
			ops = append(ops, []op{{request: &zk.DeleteRequest{Path: path, Version: e.stat.Version}}})
		case !e.deleted() && !e.present(alive):
			ops = append(ops, []op{{request: &zk.SetDataRequest{Path: path, Version: e.stat.Version}}, {request: &zk.SetDataRequest{Path: bucket, Version: -1}}})
		}
	}
	h.removeAll(ctx, v, ops)
	h.sweepHints(ctx, v)
}

// removeAll carries out small transactions, many in one; where one of them fails, each alone.
func (h *session) removeAll(ctx context.Context, v via, all [][]op) {
	for len(all) > 0 && ctx.Err() == nil {
		chunk := all[:min(sweepChunk, len(all))]
		all = all[len(chunk):]
		var ops []op
		for _, o := range chunk {
			ops = append(ops, o...)
		}
		if _, failed, err := v.multi(ctx, ops); err == nil || failed < 0 {
			continue
		}
		_ = each(len(chunk), func(i int) error {
			_, _, _ = v.multi(ctx, chunk[i]) // somebody else was first
			return nil
		})
	}
}

// sweepHints removes the znodes of addresses that nobody woke for long.
func (h *session) sweepHints(ctx context.Context, v via) {
	paths, err := v.listAll(ctx, []string{string(h.dir) + "/h"})
	if err != nil {
		return
	}
	nodes, err := v.statAll(ctx, paths)
	if err != nil {
		return
	}
	old := h.s.clock.now().Add(-hintTime).UnixMilli()
	var ops [][]op
	for i, z := range nodes {
		if z.there && z.stat.Mtime < old {
			ops = append(ops, []op{{request: &zk.DeleteRequest{Path: paths[i], Version: z.stat.Version}}})
		}
	}
	h.removeAll(ctx, v, ops)
}
