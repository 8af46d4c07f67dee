package group

import (
	"context"
	"slices"
	"time"

	"github.com/rebalancer-go/rebalancer/coord"
)

// Resources is where a group's list of resources comes from. The zero value is not valid: use [Static], [Registered]
// or [Discover]. A name is 1 to 512 bytes of UTF-8 without NUL.
type Resources struct {
	origin coord.Origin
	names  []string
	every  time.Duration
	list   func(context.Context) ([]string, error)
}

// Static lists the names. The group shares the union of what its live nodes list, and each resource goes only to nodes
// that list it, so that a rolling deploy with a changed list works.
func Static(names ...string) Resources {
	return Resources{origin: coord.OriginStatic, names: slices.Clone(names)}
}

// Registered takes the list that is kept in the store (`rebalancer resources add`). A name that is not in the canonical
// form of the node's source is reported and not worked.
func Registered() Resources { return Resources{origin: coord.OriginRegistered} }

// Discover asks list on the coordinator only, every so often. An error or a panic keeps the last list; a name must be missing
// twice to go, and a shrink by more than 30 % is held back and reported. The interval 0 means DefaultDiscoverEvery.
func Discover(every time.Duration, list func(context.Context) ([]string, error)) Resources {
	if every == 0 {
		every = DefaultDiscoverEvery
	}
	return Resources{origin: coord.OriginDiscovered, every: every, list: list}
}
