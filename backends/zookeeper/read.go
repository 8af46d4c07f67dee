package zookeeper

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"
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
	lives, err := h.lives(ctx, v, found)
	if err != nil {
		return backends.ReadReply{}, err
	}
	reply := backends.ReadReply{Stamp: h.s.stamp(), Digests: make(map[string]backends.Digest, len(r.Prefixes))}
	reply.Incarnation, reply.Since = rec.id, rec.since
	for i := range found {
		e := &found[i]
		if !e.present(lives.alive) {
			continue
		}
		out := backends.Entry{Key: e.key, Version: rec.version(e.stat.Mzxid), Session: e.session, Left: lives.left(e.session)}
		if !r.NamesOnly {
			out.Value = e.value
		}
		reply.Entries = append(reply.Entries, out)
	}
	for _, prefix := range r.Prefixes {
		d := backends.Digest{Left: -1}
		for _, e := range reply.Entries {
			if strings.HasPrefix(e.Key, prefix) {
				d.Add(e.Key, e.Version, e.Left)
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
	if ctx.Err() == nil && errors.Is(err, zk.ErrNoNode) {
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
	lives, err := h.lives(ctx, v, entries)
	if err != nil {
		return nil, err
	}
	for i := range entries {
		if e := &entries[i]; e.present(lives.alive) {
			states[e.key] = backends.KeyState{Version: rec.version(e.stat.Mzxid), Session: e.session, Left: lives.left(e.session)}
		}
	}
	return states, nil
}
