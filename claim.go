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

// VersionedCheckpoint is what a Checkpoint may be as well; those of package group are. It is for state in several keys, whose
// writer must notice when a key is not as it last knew it: because a later one wrote under the same claim, or because a write
// of its own, given up for lost, arrived late.
type VersionedCheckpoint interface {
	Checkpoint
	// LoadEntries reads the named keys with their versions, or all keys when none are named. What is absent is not in the map.
	LoadEntries(ctx context.Context, keys ...string) (map[string]CheckpointEntry, error)
	// SaveIf is Save under further checks: each key has the version that is named for it, 0 for absent. It returns the
	// versions of what it put. When the claim stands but a check does not hold, nothing is written and the error matches
	// [ErrStale]. After an error that matches neither that nor [ErrLost] it may have been written, or be written later.
	SaveIf(ctx context.Context, checks map[string]int64, changes map[string][]byte) (map[string]int64, error)
}

// CheckpointEntry is one key of a checkpoint.
type CheckpointEntry struct {
	Value []byte
	// Version is above 0 and grows with each write of the key, also across its deletion.
	Version int64
}
