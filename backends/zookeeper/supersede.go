package zookeeper

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/storereq"
)

// Supersede removes the second znode of each older session of the name, without which it cannot renew. There is no proof of death:
// Left is what the sessions may have at most.
func (h *session) Supersede(ctx context.Context, node string) (backends.Superseded, error) {
	if err := storereq.Supersede(node); err != nil {
		return backends.Superseded{}, err
	}
	if err := errors.Join(h.s.open(), ctx.Err()); err != nil {
		return backends.Superseded{}, err
	}
	err := errOver
	if !h.over() {
		var reply backends.Superseded
		if reply, err = h.supersede(ctx, node); err == nil {
			return reply, nil
		}
	}
	switch {
	case errors.Is(err, errOver), errors.Is(err, backends.ErrSessionLost):
		if h.s.open() != nil {
			return backends.Superseded{}, backends.ErrClosed
		}
		h.lost()
		return backends.Superseded{Stamp: h.ended(ctx)}, backends.ErrSessionLost
	case errors.Is(err, backends.ErrSuperseded):
		return backends.Superseded{Stamp: h.s.stamp()}, err
	}
	return backends.Superseded{}, h.s.wrap(err)
}

func (h *session) supersede(ctx context.Context, node string) (backends.Superseded, error) {
	v := h.via()
	if err := v.sync(ctx); err != nil {
		return backends.Superseded{}, err
	}
	for {
		older, left, err := h.older(ctx, v, node)
		if err != nil {
			return backends.Superseded{}, err
		}
		ops := h.guards("", true)[:2] // whatever the incarnation
		var paths []string
		for _, id := range older {
			paths = append(paths, h.dir.allowed(id))
		}
		marks, err := v.statAll(ctx, paths)
		if err != nil {
			return backends.Superseded{}, err
		}
		for i := range marks {
			if marks[i].there {
				ops = append(ops, op{request: &zk.DeleteRequest{Path: paths[i], Version: -1}})
			}
		}
		_, failed, err := v.multi(ctx, ops)
		switch {
		case err == nil:
			return backends.Superseded{Stamp: h.s.stamp(), Older: len(older), Left: left}, nil
		case failed >= 0 && failed < 2:
			return backends.Superseded{}, ops[failed].guard
		case ctx.Err() != nil:
			return backends.Superseded{}, ctx.Err()
		case !errors.Is(err, zk.ErrNoNode) && !unanswered(err):
			return backends.Superseded{}, err
		}
	}
}

// older are the live sessions of the name that were opened before this one, in the order of ZooKeeper's transactions, and the longest
// time that one of them has left.
func (h *session) older(ctx context.Context, v via, node string) (ids []string, left time.Duration, err error) {
	own, err := v.stat(ctx, h.dir.alive(h.id))
	if err != nil {
		return nil, 0, err
	}
	if !own.there {
		return nil, 0, backends.ErrSessionLost
	}
	names, err := v.children(ctx, string(h.dir)+"/s")
	if err != nil {
		return nil, 0, err
	}
	var candidates, paths []string
	for _, name := range names {
		if strings.HasSuffix(name, nodeMark(node)) && name != h.id {
			candidates = append(candidates, name)
			paths = append(paths, h.dir.alive(name))
		}
	}
	nodes, err := v.getAll(ctx, paths)
	if err != nil {
		return nil, 0, err
	}
	now := h.s.clock.now()
	for i, z := range nodes {
		var w who
		if !z.there || z.stat.Czxid >= own.stat.Czxid || json.Unmarshal(z.data, &w) != nil || w.Node != node {
			continue
		}
		timeout := time.Duration(w.Timeout) * time.Millisecond
		ids = append(ids, candidates[i])
		left = max(left, time.Millisecond, min(timeout, time.UnixMilli(z.stat.Mtime).Add(timeout).Sub(now)))
	}
	return ids, left, nil
}
