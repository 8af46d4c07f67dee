package group

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/rebalancer-go/rebalancer/backends"
)

// inspection is what the store says about its own set-up. It is asked for when a session was opened: a server that was replaced may be set up
// otherwise.
type inspection struct {
	said   atomic.Pointer[[]string]
	warned func(string) // called once for each new warning
}

// warnings are what the store said last.
func (i *inspection) warnings() []string {
	if said := i.said.Load(); said != nil {
		return slices.Clone(*said)
	}
	return nil
}

// ask takes what the store says, and keeps what it said before when it cannot be asked.
func (i *inspection) ask(ctx context.Context, store backends.Store) {
	in, ok := store.(backends.Inspector)
	if !ok {
		return
	}
	said, err := in.Warnings(ctx)
	if err != nil {
		return
	}
	before := i.said.Swap(&said)
	for _, w := range said {
		if before == nil || !slices.Contains(*before, w) {
			i.warned(w)
		}
	}
}
