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
	return control(ctx, store, group, "pause resources", checkResources(resources), asks(resources, coord.PauseKey, func(r string) *coord.Control {
		return &coord.Control{Resource: r, Keep: keep}
	}))
}

// Resume takes [Pause] back and returns those that were paused, in the order given. They stand still on while the whole group
// is paused. It fails like Pause.
func Resume(ctx context.Context, store backends.Store, group string, resources ...string) ([]string, error) {
	return control(ctx, store, group, "resume resources", checkResources(resources), asks(resources, coord.PauseKey, nothing))
}

// PauseGroup is [Pause] for all resources of a group but those that are paused by themselves, also for those that come later. It
// reports whether the group was not paused so before.
func PauseGroup(ctx context.Context, store backends.Store, group string, keep bool) (changed bool, err error) {
	list, err := control(ctx, store, group, "pause the group", nil, []ask{{key: coord.PauseGroupKey, want: &coord.Control{Keep: keep}}})
	return len(list) > 0, err
}

// ResumeGroup takes [PauseGroup] back and reports whether the group was paused. Resources that are paused by themselves stay so.
func ResumeGroup(ctx context.Context, store backends.Store, group string) (changed bool, err error) {
	list, err := control(ctx, store, group, "resume the group", nil, []ask{{key: coord.PauseGroupKey}})
	return len(list) > 0, err
}

// Drain has nodes be given nothing until [Undrain], also when they are started anew under their names: they finish what is in hand,
// and other nodes take their resources. It returns those that were not drained so before, in the order given. A node need not be there. It
// fails with ErrNotFound when there is no such group, and with ErrInvalid for names that no node can have, and then drains none.
func Drain(ctx context.Context, store backends.Store, group string, nodes ...string) ([]string, error) {
	return control(ctx, store, group, "drain nodes", checkNodes(nodes), asks(nodes, coord.DrainKey, func(n string) *coord.Control {
		return &coord.Control{Node: n}
	}))
}

// Undrain takes [Drain] back and returns those that were drained, in the order given. A node that drains by itself goes on to. It fails
// like Drain.
func Undrain(ctx context.Context, store backends.Store, group string, nodes ...string) ([]string, error) {
	return control(ctx, store, group, "undrain nodes", checkNodes(nodes), asks(nodes, coord.DrainKey, nothing))
}

// Pin ties resources to a node until [Unpin]: while it is there and may be given them, no other node is; else they are shared as
// all are. It returns those that were not pinned to it before, in the order given. Neither node nor resource need be there. It fails
// like [Pause] and [Drain].
func Pin(ctx context.Context, store backends.Store, group, node string, resources ...string) ([]string, error) {
	wrong := errors.Join(checkNodes([]string{node}), checkResources(resources))
	return control(ctx, store, group, "pin resources", wrong, asks(resources, coord.PinKey, func(r string) *coord.Control {
		return &coord.Control{Resource: r, Node: node}
	}))
}

// Unpin takes [Pin] back and returns those that were pinned, in the order given; they stay where they are until something else moves
// them. It fails like [Pause].
func Unpin(ctx context.Context, store backends.Store, group string, resources ...string) ([]string, error) {
	return control(ctx, store, group, "unpin resources", checkResources(resources), asks(resources, coord.PinKey, nothing))
}

// ask is an entry below coord.ControlPrefix that is to hold want, or not to be there when that is nil.
type ask struct {
	name string // what it is about
	key  string
	want *coord.Control
}

// nothing is for what is taken back.
func nothing(string) *coord.Control { return nil }

func asks(list []string, key func(string) string, want func(string) *coord.Control) []ask {
	var all []ask
	for _, n := range unique(list) {
		all = append(all, ask{n, key(n), want(n)})
	}
	return all
}

// control writes what an operator asks for, unless the arguments are wrong, and returns the names of what was not so before.
func control(ctx context.Context, store backends.Store, group, what string, wrong error, all []ask) ([]string, error) {
	return controlIf(ctx, store, group, what, wrong, all, nil)
}

// controlIf is control for what may not fit the group as it stands: then fits says why.
func controlIf(ctx context.Context, store backends.Store, group, what string, wrong error, all []ask,
	fits func(context.Context, backends.Session) error) ([]string, error) {
	changed := map[string]bool{}
	if wrong == nil {
		wrong = with(ctx, store, group, func(s backends.Session) error {
			_, version, _, err := settings(ctx, s)
			if err != nil {
				return err
			}
			if version == 0 {
				return ErrNotFound
			}
			if fits != nil {
				if err := fits(ctx, s); err != nil {
					return err
				}
			}
			todo, err := pending(ctx, s, all, version, changed)
			if err != nil {
				return err
			}
			return commitAll(ctx, s, todo)
		})
	}
	if wrong != nil {
		return nil, fmt.Errorf("%s: %w", what, wrong)
	}
	var list []string
	for _, a := range all {
		if changed[a.key] {
			list = append(list, a.name)
		}
	}
	return list, nil
}

// pending are the writes for what does not stand there yet; they are noted in changed.
func pending(ctx context.Context, s backends.Session, all []ask, version int64, changed map[string]bool) ([]backends.Txn, error) {
	r, err := s.Read(ctx, backends.ReadRequest{Prefixes: []string{coord.ControlPrefix}})
	if err != nil {
		return nil, fmt.Errorf("read what operators asked for: %w", err)
	}
	have := map[string]backends.Entry{}
	for _, e := range r.Entries {
		have[e.Key] = e
	}
	var todo []backends.Txn
	for _, a := range all {
		old := have[a.key]
		t := backends.Txn{
			Checks: []backends.Check{{Key: a.key, Version: old.Version}, {Key: coord.SettingsKey, Version: version}},
			Wake:   []string{coord.CoordinatorAddress},
		}
		switch {
		case a.want == nil && old.Version == 0:
			continue
		case a.want == nil:
			t.Deletes = []string{a.key}
		default:
			if c, err := coord.DecodeControl(old.Value); err == nil && c == *a.want {
				continue
			}
			t.Puts = []backends.Put{{Key: a.key, Value: coord.EncodeControl(*a.want)}}
		}
		changed[a.key] = true
		todo = append(todo, t)
	}
	return todo, nil
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
