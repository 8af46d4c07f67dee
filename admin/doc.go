// Package admin is what operators do with a group, over its store alone: see how it stands and what became of it, create and delete it, keep its list
// of registered resources, say who is to work what, end the membership of a node, and look after checkpoints. No node need run.
//
// Each function opens a session of its own at the store and closes it before it returns. What is read is not a snapshot: a
// group that is rebalancing may be seen half way. Writes are guarded by what was read, and are repeated when somebody else
// was faster, so that they may be given again safely when their outcome is unknown.
//
// What is changed stands in the group's history, written in the same transaction, with who did it and why where [As] says so; so do the rebalances. See
// [History].
package admin

import "errors"

var (
	// ErrNotFound is wrapped when the store has no such group.
	ErrNotFound = errors.New("no such group in this store")
	// ErrRefused is wrapped when what was asked for does not fit the group as it stands.
	ErrRefused = errors.New("refused")
	// ErrInvalid is wrapped when an argument is wrong by itself.
	ErrInvalid = errors.New("invalid argument")
)
