package admin

import (
	"context"
	"errors"
	"fmt"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/coord"
	"github.com/rebalancer-go/rebalancer/internal/names"
)

// Pause stops the work on resources until [Resume], whatever nodes come and go: what is in hand is finished. With keep their nodes keep
// their claims, so that they resume at once; else they give them up, and nobody holds them. It returns those that were not paused
// so before, in the order given. A resource may be paused before it is there. It fails with ErrNotFound when there is no such
// group, and with ErrInvalid for names that no resource can have, and then pauses none.
func Pause(ctx context.Context, store backends.Store, group string, keep bool, resources ...string) ([]string, error) {
	return control(ctx, store, group, wish{
		what: "pause resources", kind: KindPause, detail: keepDetail(keep), wrong: checkResources(resources),
		asks: asks(resources, coord.PauseKey, func(r string) *coord.Control { return &coord.Control{Resource: r, Keep: keep} }),
	})
}

// Resume takes [Pause] back and returns those that were paused, in the order given. They stand still on while the whole group
// is paused. It fails like Pause.
func Resume(ctx context.Context, store backends.Store, group string, resources ...string) ([]string, error) {
	return control(ctx, store, group, wish{
		what: "resume resources", kind: KindResume, wrong: checkResources(resources), asks: asks(resources, coord.PauseKey, nothing),
	})
}

// PauseGroup is [Pause] for all resources of a group but those that are paused by themselves, also for those that come later. It
// reports whether the group was not paused so before.
func PauseGroup(ctx context.Context, store backends.Store, group string, keep bool) (changed bool, err error) {
	list, err := control(ctx, store, group, wish{
		what: "pause the group", kind: KindPause, detail: keepDetail(keep), group: true,
		asks: []ask{{key: coord.PauseGroupKey, want: &coord.Control{Keep: keep}}},
	})
	return len(list) > 0, err
}

// ResumeGroup takes [PauseGroup] back and reports whether the group was paused. Resources that are paused by themselves stay so.
func ResumeGroup(ctx context.Context, store backends.Store, group string) (changed bool, err error) {
	list, err := control(ctx, store, group, wish{
		what: "resume the group", kind: KindResume, group: true, asks: []ask{{key: coord.PauseGroupKey}},
	})
	return len(list) > 0, err
}

// Drain has nodes be given nothing until [Undrain], also when they are started anew under their names: they finish what is in hand,
// and other nodes take their resources. It returns those that were not drained so before, in the order given. A node need not be there. It
// fails with ErrNotFound when there is no such group, and with ErrInvalid for names that no node can have, and then drains none.
func Drain(ctx context.Context, store backends.Store, group string, nodes ...string) ([]string, error) {
	return control(ctx, store, group, wish{
		what: "drain nodes", kind: KindDrain, nodes: true, wrong: checkNodes(nodes),
		asks: asks(nodes, coord.DrainKey, func(n string) *coord.Control { return &coord.Control{Node: n} }),
	})
}

// Undrain takes [Drain] back and returns those that were drained, in the order given. A node that drains by itself goes on to. It fails
// like Drain.
func Undrain(ctx context.Context, store backends.Store, group string, nodes ...string) ([]string, error) {
	return control(ctx, store, group, wish{
		what: "undrain nodes", kind: KindUndrain, nodes: true, wrong: checkNodes(nodes), asks: asks(nodes, coord.DrainKey, nothing),
	})
}

// Pin ties resources to a node until [Unpin]: while it is there and may be given them, no other node is; else they are shared as
// all are. It returns those that were not pinned to it before, in the order given. Neither node nor resource need be there. It fails
// like [Pause] and [Drain].
func Pin(ctx context.Context, store backends.Store, group, node string, resources ...string) ([]string, error) {
	return control(ctx, store, group, wish{
		what: "pin resources", kind: KindPin, to: node, wrong: errors.Join(checkNodes([]string{node}), checkResources(resources)),
		asks: asks(resources, coord.PinKey, func(r string) *coord.Control { return &coord.Control{Resource: r, Node: node} }),
	})
}

// Unpin takes [Pin] back and returns those that were pinned, in the order given; they stay where they are until something else moves
// them. It fails like [Pause].
func Unpin(ctx context.Context, store backends.Store, group string, resources ...string) ([]string, error) {
	return control(ctx, store, group, wish{
		what: "unpin resources", kind: KindUnpin, wrong: checkResources(resources), asks: asks(resources, coord.PinKey, nothing),
	})
}

func checkNodes(list []string) error {
	var errs []error
	for _, n := range list {
		if why := names.Group(n); why != "" {
			errs = append(errs, fmt.Errorf("%w: name of the node %q: %s", ErrInvalid, n, why))
		}
	}
	if len(list) == 0 {
		errs = append(errs, fmt.Errorf("%w: no node is named", ErrInvalid))
	}
	return errors.Join(errs...)
}
