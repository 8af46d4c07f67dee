package rebalancer

import (
	"context"

	"github.com/rebalancer-go/rebalancer/internal/draining"
)

// Handler works one message. nil settles it; an error fails it (see [Permanent] and [RetryAfter]); a panic counts as
// an error. An error that matches [ErrLost] says that somebody downstream refused the fence: the claim is checked at
// once and no attempt is burnt.
//
// A message is settled by this return value and by nothing else, so a resource is never given away under a running
// handler.
//
// ctx has the values of Consume's ctx but not its cancellation: it ends when the drain time is over or the claim is
// lost, and context.Cause(ctx) is then [ErrRevoked], [ErrStopped] or [ErrLost]. See [Draining] for the earlier signal.
type Handler func(ctx context.Context, m *Message) error

// BatchHandler works messages of one resource, in order, under one fence. nil settles all of them; a [*BatchError]
// fails the messages that it names and settles the others; any other error fails all. See [Handler] for ctx.
type BatchHandler func(ctx context.Context, ms []*Message) error

// Draining returns a channel that is closed when the resource that ctx works for is to be given back, because the
// group moves it or the node stops. A long handler may then stop early and return an error; its message is given back
// without burning an attempt. A handler that goes on has the drain time before ctx ends. For a ctx that did not come
// from a group the channel is never closed.
func Draining(ctx context.Context) <-chan struct{} { return draining.From(ctx) }
