package group

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/coord"
)

const maxCheckpoint = 64 << 10 // bytes of a value

// checkpoint is the durable state of one resource, behind one claim.
type checkpoint struct {
	resource    string
	fence       int64
	session     backends.Session
	incarnation *atomic.Pointer[string]
	ours        func() bool // the claim stands, as far as this node knows
	doubt       func()      // have the claim looked at
}

// Load reads all keys.
func (c *checkpoint) Load(ctx context.Context) (map[string][]byte, error) {
	prefix := coord.CheckpointPrefix(c.resource)
	r, err := c.session.Read(ctx, backends.ReadRequest{Prefixes: []string{prefix}})
	if err != nil {
		return nil, fmt.Errorf("checkpoint of resource %q: load: %w", c.resource, err)
	}
	if !c.ours() { // what was read may be another's by now
		return nil, c.lost("load")
	}
	out := make(map[string][]byte, len(r.Entries))
	for _, e := range r.Entries {
		out[strings.TrimPrefix(e.Key, prefix)] = e.Value
	}
	return out, nil
}

// Save writes the changes in one transaction that checks the claim.
func (c *checkpoint) Save(ctx context.Context, changes map[string][]byte) error {
	if len(changes) == 0 {
		return nil
	}
	if !c.ours() {
		return c.lost("save")
	}
	txn, err := c.txn(changes)
	if err != nil {
		return fmt.Errorf("checkpoint of resource %q: %w", c.resource, err)
	}
	r, err := c.session.Commit(ctx, backends.CommitRequest{Incarnation: *c.incarnation.Load(), Txns: []backends.Txn{txn}})
	if err == nil && len(r.Results) == 1 {
		err = r.Results[0].Err
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, backends.ErrConflict), errors.Is(err, backends.ErrSessionLost):
		c.doubt()
		return c.lost("save")
	}
	return fmt.Errorf("checkpoint of resource %q: save: %w", c.resource, err)
}

func (c *checkpoint) txn(changes map[string][]byte) (backends.Txn, error) {
	t := backends.Txn{Checks: []backends.Check{{Key: coord.ClaimKey(c.resource), Version: c.fence}}}
	prefix := coord.CheckpointPrefix(c.resource)
	keys := make([]string, 0, len(changes))
	for k := range changes {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
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
