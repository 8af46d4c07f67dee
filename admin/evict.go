package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/coord"
)

// Evict ends the membership of nodes, also of ones that are wedged but go on renewing their sessions, and returns those that were members, in the
// order given. A node can renew and claim nothing from then on, and keeps what it holds until it gives it back or until its session ends
// at the store, which is within one ttl. One that is well learns of it with its next renewal, at the latest after a sixth of the ttl: it drains, gives
// everything back, and Consume ends with group.ErrSuperseded. What it held goes to other nodes by the ordinary rules, never before that.
//
// So nothing is worked twice that would not be worked twice when the node lost its connection to the store: a handler that does not heed the end
// of its context may still run when its resource is another node's, and only the fence tells them apart. A node that is started again
// joins again: to keep it away, [Drain] it. Evict fails like Drain.
func Evict(ctx context.Context, store backends.Store, group string, nodes ...string) ([]string, error) {
	evicted := map[string]bool{}
	err := checkNodes(nodes)
	if err == nil {
		err = with(ctx, store, group, func(s backends.Session) error {
			there, err := members(ctx, s, nodes)
			if err != nil {
				return err
			}
			for _, n := range there { // what is done must not be without a record, so that comes first
				evicted[n] = true
			}
			rec := record(store, KindEvict, "")
			rec.Nodes = there
			return recordAlone(ctx, s, rec, len(there) > 0)
		})
	}
	for _, n := range unique(nodes) {
		if err == nil && evicted[n] {
			err = evict(ctx, store, group, n)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("evict nodes: %w", err)
	}
	return slices.DeleteFunc(unique(nodes), func(n string) bool { return !evicted[n] }), nil
}

// members are those of the nodes that are members, each once.
func members(ctx context.Context, s backends.Session, nodes []string) ([]string, error) {
	if _, err := existing(ctx, s); err != nil {
		return nil, err
	}
	var keys []string
	for _, n := range unique(nodes) {
		keys = append(keys, coord.MemberKey(n))
	}
	r, err := s.Read(ctx, backends.ReadRequest{Keys: keys, NamesOnly: true})
	if err != nil {
		return nil, fmt.Errorf("look for its members: %w", err)
	}
	var there []string
	for _, n := range unique(nodes) {
		if slices.ContainsFunc(r.Entries, func(e backends.Entry) bool { return e.Key == coord.MemberKey(n) }) {
			there = append(there, n)
		}
	}
	return there, nil
}

// evict supersedes the sessions of a node, as a newer process of a static name does.
func evict(ctx context.Context, store backends.Store, group, node string) error {
	return withAs(ctx, store, group, node, func(s backends.Session) error {
		_, err := s.Supersede(ctx, node)
		if errors.Is(err, backends.ErrSuperseded) {
			return nil // by a process of this name that began after this call, and with it all that were there before
		}
		return err
	})
}

// StepDown takes the office from the group's coordinator, and returns the node that had it; "" when there was none. Its plans are void from then
// on, and it learns so with the next of them, or with its next renewal. What nodes hold stays as it is. Two other nodes, where there are
// any, are told to stand for election; where the store gives no hints, or there is no other node, the same one may be elected again. It fails
// with ErrNotFound when there is no such group.
func StepDown(ctx context.Context, store backends.Store, group string) (node string, err error) {
	var term int64 // the one that is to end: not that of its successor, when it is not known whether it did
	err = with(ctx, store, group, func(s backends.Session) error {
		if _, err := existing(ctx, s); err != nil {
			return err
		}
		r, err := s.Read(ctx, backends.ReadRequest{Keys: []string{coord.LeaderKey}, Prefixes: []string{coord.MemberPrefix}})
		if err != nil {
			return fmt.Errorf("look for its coordinator: %w", err)
		}
		d, v := &Description{}, newView()
		if err := v.take(r.Entries, d); err != nil {
			return err
		}
		if d.Coordinator == "" || term != 0 && d.Epoch != term {
			return nil
		}
		term, node = d.Epoch, d.Coordinator
		rec := record(store, KindStepDown, "")
		rec.Nodes = []string{node}
		return commitAll(ctx, s, rec, []backends.Txn{{
			Checks:  []backends.Check{{Key: coord.LeaderKey, Version: term}},
			Deletes: []string{coord.LeaderKey},
			Wake:    v.candidates(node),
		}})
	})
	if err != nil {
		return "", fmt.Errorf("step down: %w", err)
	}
	return node, nil
}

// candidates are the addresses of two members that may coordinate instead of a node: one of them may be about to leave.
func (v *view) candidates(instead string) []string {
	var list []string
	for _, name := range sortedNames(v.members) {
		if name != instead && !v.members[name].Leaving && len(list) < 2 {
			list = append(list, coord.NodeAddress(name))
		}
	}
	return list
}
