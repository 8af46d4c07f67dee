package rebalancer

import (
	"context"
	"time"
)

// Claim is this node's hold on one resource, from the grant to the release.
type Claim struct {
	Group, Node, Resource string
	// Fence is above 0 and greater than that of every earlier claim of the resource.
	Fence int64
	// TTL of the session behind the claim, as the store granted it.
	TTL time.Duration
	// Checkpoint is the resource's durable state in the group's store; never nil.
	Checkpoint Checkpoint
}

// Checkpoint is small durable state of one resource in the group's store. It survives moves of the resource.
type Checkpoint interface {
	// Load reads all keys; an empty map when nothing was saved.
	Load(ctx context.Context) (map[string][]byte, error)
	// Save applies the changes (nil deletes a key; 64 KiB at most a value) in one write. It is refused with [ErrLost]
	// unless the claim still stands.
	Save(ctx context.Context, changes map[string][]byte) error
}
