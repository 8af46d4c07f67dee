package group

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/coord"
)

const maxCheckpoint = 64 << 10 // bytes of a value

// checkpoint is the durable state of one resource, behind one claim. It is a rebalancer.VersionedCheckpoint.
type checkpoint struct {
	resource    string
	fence       int64
	session     backends.Session
	incarnation *atomic.Pointer[string]
	ours        func() bool // the claim stands, as far as this node knows
	doubt       func()      // have the claim looked at
	probes      *probes
}

// Load reads all keys.
func (c *checkpoint) Load(ctx context.Context) (map[string][]byte, error) {
	entries, err := c.LoadEntries(ctx)
	if err != nil {
		return nil, err
	}
	out := make(map[string][]byte, len(entries))
	for k, e := range entries {
		out[k] = e.Value
	}
	return out, nil
}

// LoadEntries reads some keys, or all.
func (c *checkpoint) LoadEntries(ctx context.Context, keys ...string) (map[string]rebalancer.CheckpointEntry, error) {
	prefix := coord.CheckpointPrefix(c.resource)
	req := backends.ReadRequest{Prefixes: []string{prefix}}
	if len(keys) > 0 {
		req = backends.ReadRequest{Keys: make([]string, len(keys))}
		for i, k := range keys {
			req.Keys[i] = prefix + k
		}
	}
	began := time.Now()
	r, err := c.session.Read(ctx, req)
	c.probes.checkpoint(CallLoadCheckpoint, began, err)
	if err != nil {
		return nil, fmt.Errorf("checkpoint of resource %q: load: %w", c.resource, err)
	}
	if !c.ours() { // what was read may be another's by now
		return nil, c.lost("load")
	}
	out := make(map[string]rebalancer.CheckpointEntry, len(r.Entries))
	for _, e := range r.Entries {
		out[strings.TrimPrefix(e.Key, prefix)] = rebalancer.CheckpointEntry{Value: e.Value, Version: e.Version}
	}
	return out, nil
}

// Save writes the changes in one transaction that checks the claim.
func (c *checkpoint) Save(ctx context.Context, changes map[string][]byte) error {
	if len(changes) == 0 {
		return nil
	}
	_, err := c.SaveIf(ctx, nil, changes)
	return err
}

// SaveIf writes the changes in one transaction that checks the claim and the keys.
func (c *checkpoint) SaveIf(ctx context.Context, checks map[string]int64, changes map[string][]byte) (map[string]int64, error) {
	if !c.ours() {
		return nil, c.lost("save")
	}
	txn, err := c.txn(changes)
	if err != nil {
		return nil, fmt.Errorf("checkpoint of resource %q: %w", c.resource, err)
	}
	prefix := coord.CheckpointPrefix(c.resource)
	for _, k := range slices.Sorted(maps.Keys(checks)) {
		txn.Checks = append(txn.Checks, backends.Check{Key: prefix + k, Version: checks[k]})
	}
	began := time.Now()
	r, err := c.session.Commit(ctx, backends.CommitRequest{Incarnation: *c.incarnation.Load(), Txns: []backends.Txn{txn}})
	var res backends.Result
	if err == nil && len(r.Results) == 1 {
		res = r.Results[0]
		err = res.Err
	}
	c.probes.checkpoint(CallSaveCheckpoint, began, err)
	switch {
	case err == nil:
		versions := make(map[string]int64, len(res.Versions))
		for k, v := range res.Versions {
			versions[strings.TrimPrefix(k, prefix)] = v
		}
		return versions, nil
	case errors.Is(err, backends.ErrConflict) && res.Versions[coord.ClaimKey(c.resource)] == c.fence:
		return nil, fmt.Errorf("checkpoint of resource %q: save: %w", c.resource, rebalancer.ErrStale)
	case errors.Is(err, backends.ErrConflict), errors.Is(err, backends.ErrSessionLost):
		c.doubt()
		return nil, c.lost("save")
	}
	return nil, fmt.Errorf("checkpoint of resource %q: save: %w", c.resource, err)
}

func (c *checkpoint) txn(changes map[string][]byte) (backends.Txn, error) {
	t := backends.Txn{Checks: []backends.Check{{Key: coord.ClaimKey(c.resource), Version: c.fence}}}
	prefix := coord.CheckpointPrefix(c.resource)
	for _, k := range slices.Sorted(maps.Keys(changes)) {
		v := changes[k]
		switch {
		case k == "":
			return t, errors.New("the empty key is not allowed")
		case len(prefix)+len(k) > backends.MaxKey:
			return t, fmt.Errorf("key %.20q… is too long: at most %d bytes here", k, backends.MaxKey-len(prefix))
		case len(v) > maxCheckpoint:
			return t, fmt.Errorf("value of %q has %d bytes: at most %d are allowed", k, len(v), maxCheckpoint)
		case v == nil:
			t.Deletes = append(t.Deletes, prefix+k)
		default:
			t.Puts = append(t.Puts, backends.Put{Key: prefix + k, Value: v})
		}
	}
	return t, nil
}

func (c *checkpoint) lost(what string) error {
	return fmt.Errorf("checkpoint of resource %q: %s: %w", c.resource, what, rebalancer.ErrLost)
}
