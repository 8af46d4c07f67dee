package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/coord"
)

// Move has the coordinator give resources to a node once, at its next plan; they stay there until something else moves them. It returns those
// for which that was not asked before, in the order given. It fails with ErrRefused when it cannot be: the node is not there, or is
// given nothing (drained, leaving, on standby), or a resource is not there, is paused without its claim, or pinned elsewhere, or the
// node may not take it. It fails like [Pin] else.
func Move(ctx context.Context, store backends.Store, group, node string, resources ...string) ([]string, error) {
	return control(ctx, store, group, wish{
		what: "move resources", kind: KindMove, to: node, wrong: errors.Join(checkNodes([]string{node}), checkResources(resources)),
		asks: asks(resources, coord.MoveKey, func(r string) *coord.Control { return &coord.Control{Resource: r, Node: node} }),
		fits: func(ctx context.Context, s backends.Session) error {
			d, v, err := look(ctx, s)
			if err != nil {
				return err
			}
			return v.mayMove(d, node, unique(resources))
		},
	})
}

// mayMove says why resources cannot be moved to a node.
func (v *view) mayMove(d *Description, node string, resources []string) error {
	i := slices.IndexFunc(d.Nodes, func(n Node) bool { return n.Name == node })
	if i < 0 {
		return fmt.Errorf("%w: node %q is not there", ErrRefused, node)
	}
	if why := idle(d.Nodes[i]); why != "" {
		return fmt.Errorf("%w: node %q %s", ErrRefused, node, why)
	}
	var errs []error
	for _, r := range resources {
		if why := v.immovable(d, node, r); why != "" {
			errs = append(errs, fmt.Errorf("%w: resource %q %s", ErrRefused, r, why))
		}
	}
	return errors.Join(errs...)
}

// immovable says why a resource cannot be moved to a node that is given something.
func (v *view) immovable(d *Description, node, name string) string {
	r := v.all[name]
	pin := v.control.pins[name]
	switch {
	case !v.there[name]:
		return "is not there"
	case r.Paused == PausedReleased:
		return "is paused and given up: resume it first"
	case pin != "" && pin != node:
		return fmt.Sprintf("is pinned to %q: unpin it first", pin)
	}
	if why := v.unfit(d, v.members[node], name); why != "" {
		return fmt.Sprintf("cannot go to node %q, which %s", node, why)
	}
	return ""
}
