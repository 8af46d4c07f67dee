package group

import (
	"errors"

	"github.com/rebalancer-go/rebalancer/coord"
)

var (
	// ErrRunning is returned by Consume, ConsumeBatch and Run while another such call of the group is running.
	ErrRunning = errors.New("group is already running")
	// ErrStuck is returned by Consume, ConsumeBatch and Run when handlers outlived Drain + Grace as they stopped, or a
	// source hung: their claims are left to expire. Live wraps it while a resource is stuck.
	ErrStuck = coord.ErrStuck
	// ErrMismatch is returned when the node does not fit its group: another mode, ttl, origin of resources, or format.
	ErrMismatch = coord.ErrMismatch
	// ErrDeleted is returned when the group was deleted while the node ran.
	ErrDeleted = coord.ErrDeleted
	// ErrSuperseded is returned when a newer process took this node's static name, or an operator evicted the node (see admin.Evict).
	ErrSuperseded = coord.ErrSuperseded
	// ErrNotReady is wrapped by what Ready returns.
	ErrNotReady = errors.New("not ready")
	// ErrHalted is wrapped by what Live returns, and in ResourceStatus.Err, when a resource stands still because of
	// Exhausted Stop.
	ErrHalted = errors.New("resource stands still: a message used up its attempts")
	// ErrInvalid is wrapped by what New returns.
	ErrInvalid = errors.New("invalid configuration")
)
