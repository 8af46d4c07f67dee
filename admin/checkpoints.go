package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/coord"
)

// Checkpoint is what a group keeps for one resource: how far its source, or the program itself, has come.
type Checkpoint struct {
	Resource string
	Keys     int // how many keys it has
}

// CheckpointKey is one key of a checkpoint.
type CheckpointKey struct {
	Key     string
	Value   []byte
	Version int64 // grows with each write of it
}

// resetSize is how many keys of a checkpoint are removed at once.
const resetSize = 400

// Checkpoints lists the resources of a group that have a checkpoint, in order of their bytes, also of resources that the group does not have any more. It
// fails with ErrNotFound when there is no such group.
func Checkpoints(ctx context.Context, store backends.Store, group string) ([]Checkpoint, error) {
	var list []Checkpoint
	err := with(ctx, store, group, func(s backends.Session) error {
		_, err := existing(ctx, s)
		if err != nil {
			return err
		}
		r, err := s.Read(ctx, backends.ReadRequest{Prefixes: []string{coord.AllCheckpoints}, NamesOnly: true})
		if err != nil {
			return fmt.Errorf("read its checkpoints: %w", err)
		}
		keys := map[string]int{}
		for _, e := range r.Entries {
			if resource, _, ok := coord.CheckpointOf(e.Key); ok {
				keys[resource]++
			}
		}
		list = nil
		for _, resource := range sortedNames(keys) {
			list = append(list, Checkpoint{Resource: resource, Keys: keys[resource]})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list checkpoints: %w", err)
	}
	return list, nil
}

// ReadCheckpoint returns the checkpoint of a resource, in order of its keys; nothing when it has none. It is not a snapshot where somebody holds the resource. It
// fails like [Checkpoints], and with ErrInvalid for a name that no resource can have.
func ReadCheckpoint(ctx context.Context, store backends.Store, group, resource string) ([]CheckpointKey, error) {
	var list []CheckpointKey
	err := checkResources([]string{resource})
	if err == nil {
		err = with(ctx, store, group, func(s backends.Session) error {
			if _, err := existing(ctx, s); err != nil {
				return err
			}
			entries, err := checkpoint(ctx, s, resource, false)
			list = nil
			for _, e := range entries {
				list = append(list, CheckpointKey{Key: strings.TrimPrefix(e.Key, coord.CheckpointPrefix(resource)), Value: e.Value, Version: e.Version})
			}
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("read the checkpoint of resource %q: %w", resource, err)
	}
	return list, nil
}

// ResetCheckpoints removes the checkpoints of resources, so that whoever holds one next begins anew: for a source that remembers what it has worked, that
// is to work all of it again. It returns what it removed, in the order given. Unless execute is set it removes nothing and returns what it
// would remove.
//
// Nobody may hold the resources, since a node goes on with what it has read: pause them before, without their claims. It fails with ErrRefused and removes
// nothing when somebody does, and when one has more than 400 keys, which takes several steps, and is not paused; when somebody claims one meanwhile, its
// checkpoint stays. It fails like [ReadCheckpoint] else.
func ResetCheckpoints(ctx context.Context, store backends.Store, group string, execute bool, resources ...string) ([]Checkpoint, error) {
	removed := map[string]int{}
	err := checkResources(resources)
	if err == nil {
		err = with(ctx, store, group, func(s backends.Session) error {
			todo, keys, err := resets(ctx, s, unique(resources))
			if err != nil {
				return err
			}
			names := slices.DeleteFunc(unique(resources), func(r string) bool { return keys[r] == 0 })
			for r, n := range keys { // each by itself
				removed[r] = max(removed[r], n)
			}
			if !execute {
				return nil
			}
			return commitAll(ctx, s, of(record(store, KindReset, ""), "", names), todo)
		})
	}
	if err != nil {
		return nil, fmt.Errorf("reset checkpoints: %w", err)
	}
	var list []Checkpoint
	for _, r := range unique(resources) {
		if removed[r] > 0 {
			list = append(list, Checkpoint{Resource: r, Keys: removed[r]})
		}
	}
	return list, nil
}

// resets are the writes that remove checkpoints, and how many keys each resource has.
func resets(ctx context.Context, s backends.Session, resources []string) ([]backends.Txn, map[string]int, error) {
	version, err := existing(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	var todo []backends.Txn
	var errs []error
	keys := map[string]int{}
	for _, name := range resources {
		entries, err := checkpoint(ctx, s, name, true)
		if err != nil {
			return nil, nil, err
		}
		if keys[name] = len(entries); len(entries) == 0 {
			continue
		}
		guards, err := unheld(ctx, s, name, len(entries) > resetSize)
		if errs = append(errs, err); err != nil && !errors.Is(err, ErrRefused) {
			return nil, nil, err
		}
		guards = append(guards, backends.Check{Key: coord.SettingsKey, Version: version})
		for part := range slices.Chunk(entries, resetSize) {
			t := backends.Txn{Checks: slices.Clone(guards)}
			for _, e := range part {
				t.Deletes = append(t.Deletes, e.Key)
			}
			todo = append(todo, t)
		}
	}
	return todo, keys, errors.Join(errs...)
}

// unheld are the checks under which nobody holds a resource; with paused also those under which nobody is to be given it.
func unheld(ctx context.Context, s backends.Session, name string, paused bool) ([]backends.Check, error) {
	claim := coord.ClaimKey(name)
	r, err := s.Read(ctx, backends.ReadRequest{Keys: []string{claim, coord.PauseKey(name), coord.PauseGroupKey}})
	if err != nil {
		return nil, fmt.Errorf("look who holds resource %q: %w", name, err)
	}
	checks := []backends.Check{{Key: claim}}
	stands := false
	for _, e := range r.Entries {
		if e.Key == claim {
			c, err := coord.DecodeClaim(e.Value)
			if err != nil {
				return nil, err
			}
			return nil, fmt.Errorf("%w: node %q holds resource %q: pause it first, without --keep", ErrRefused, c.Node, name)
		}
		c, err := coord.DecodeControl(e.Value)
		if err != nil {
			return nil, err
		}
		if !c.Keep {
			stands = true
			checks = append(checks, backends.Check{Key: e.Key, Version: e.Version})
		}
	}
	if paused && !stands {
		return nil, fmt.Errorf("%w: the checkpoint of resource %q is too large to go at once: pause the resource first", ErrRefused, name)
	}
	return checks, nil
}

// checkpoint are the entries of a resource's checkpoint.
func checkpoint(ctx context.Context, s backends.Session, resource string, namesOnly bool) ([]backends.Entry, error) {
	r, err := s.Read(ctx, backends.ReadRequest{Prefixes: []string{coord.CheckpointPrefix(resource)}, NamesOnly: namesOnly})
	if err != nil {
		return nil, fmt.Errorf("read the checkpoint of resource %q: %w", resource, err)
	}
	return r.Entries, nil
}
