// Package draining carries the early signal of a revoke inside a handler's context: the runtime puts it there, the
// root package hands it to handlers.
package draining

import "context"

type key struct{}

// With returns a context that carries c, closed when the handler's resource is to be given back.
func With(ctx context.Context, c <-chan struct{}) context.Context {
	return context.WithValue(ctx, key{}, c)
}

// From returns the channel that With put into ctx, or nil, which blocks for ever.
func From(ctx context.Context) <-chan struct{} {
	c, _ := ctx.Value(key{}).(<-chan struct{})
	return c
}
