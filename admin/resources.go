package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/coord"
	"github.com/rebalancer-go/rebalancer/internal/names"
)

// commitSize is how many resources are written in one call.
const commitSize = 200

// Resources lists the registered resources of a group, in order of their bytes. It fails with ErrNotFound when there is no
// such group, and with ErrRefused when its resources are not registered ones.
func Resources(ctx context.Context, store backends.Store, group string) ([]string, error) {
	var list []string
	err := with(ctx, store, group, func(s backends.Session) error {
		if _, err := registeredGroup(ctx, s); err != nil {
			return err
		}
		have, err := registrations(ctx, s)
		list = sortedNames(have)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list resources: %w", err)
	}
	return list, nil
}

// AddResources registers resources without any attributes and returns those that were not there before, in the order given. One that is
// there keeps its attributes; see [Register]. It fails like [Resources], and with ErrInvalid for names that no resource can have, and
// then adds none.
func AddResources(ctx context.Context, store backends.Store, group string, resources ...string) ([]string, error) {
	added, err := change(ctx, store, group, record(store, KindRegister, ""), resources, func(name string, have registration) (backends.Txn, bool, error) {
		return putRegistration(coord.Registration{Name: name}, have), have.version == 0, nil
	})
	if err != nil {
		return nil, fmt.Errorf("add resources: %w", err)
	}
	return added, nil
}

func putRegistration(r coord.Registration, have registration) backends.Txn {
	key := coord.ResourceKey(r.Name)
	return backends.Txn{
		Checks: []backends.Check{{Key: key, Version: have.version}},
		Puts:   []backends.Put{{Key: key, Value: coord.EncodeRegistration(r)}},
	}
}

// RemoveResources takes resources off the list and returns those that were there, in the order given: nodes give them back
// as in any rebalance. It fails like [AddResources].
func RemoveResources(ctx context.Context, store backends.Store, group string, resources ...string) ([]string, error) {
	removed, err := change(ctx, store, group, record(store, KindRemove, ""), resources, func(name string, have registration) (backends.Txn, bool, error) {
		return backends.Txn{
			Checks:  []backends.Check{{Key: coord.ResourceKey(name), Version: have.version}},
			Deletes: []string{coord.ResourceKey(name)},
		}, have.version != 0, nil
	})
	if err != nil {
		return nil, fmt.Errorf("remove resources: %w", err)
	}
	return removed, nil
}

// change carries out a write for each name that needs one, until none does, and returns those that did, which it adds to the record. When one of
// them cannot be, none is.
func change(ctx context.Context, store backends.Store, group string, rec coord.Record, list []string,
	write func(name string, have registration) (backends.Txn, bool, error)) ([]string, error) {
	if err := checkResources(list); err != nil {
		return nil, err
	}
	changed := map[string]bool{}
	err := with(ctx, store, group, func(s backends.Session) error {
		version, err := registeredGroup(ctx, s)
		if err != nil {
			return err
		}
		have, err := registrations(ctx, s)
		if err != nil {
			return err
		}
		var todo []backends.Txn
		var now []string
		var errs []error
		for _, name := range unique(list) {
			t, needed, err := write(name, have[name])
			if errs = append(errs, err); !needed {
				continue
			}
			changed[name], now = true, append(now, name)
			t.Checks = append(t.Checks, backends.Check{Key: coord.SettingsKey, Version: version})
			t.Wake = []string{coord.CoordinatorAddress}
			todo = append(todo, t)
		}
		if err := errors.Join(errs...); err != nil {
			return err
		}
		return commitAll(ctx, s, of(rec, "", now), todo)
	})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(unique(list), func(n string) bool { return !changed[n] }), nil
}

// commitAll writes any number of transactions, a call for each so many, after the first of them, with which the record is written: nothing is done
// before that stands.
func commitAll(ctx context.Context, s backends.Session, rec coord.Record, todo []backends.Txn) error {
	todo, err := recorded(ctx, s, rec, todo)
	if err != nil {
		return err
	}
	if len(todo) == 0 {
		return nil
	}
	if err := commit(ctx, s, todo[0]); err != nil {
		return err
	}
	for part := range slices.Chunk(todo[1:], commitSize) {
		if err := commit(ctx, s, part...); err != nil {
			return err
		}
	}
	return nil
}

func checkResources(list []string) error {
	var errs []error
	for _, n := range list {
		if why := names.Resource(n); why != "" {
			errs = append(errs, fmt.Errorf("%w: name of the resource %q: %s", ErrInvalid, n, why))
		}
	}
	if len(list) == 0 {
		errs = append(errs, fmt.Errorf("%w: no resource is named", ErrInvalid))
	}
	return errors.Join(errs...)
}

// registeredGroup returns the version of the settings of a group whose resources are registered ones.
func registeredGroup(ctx context.Context, s backends.Session) (int64, error) {
	set, version, _, err := settings(ctx, s)
	switch {
	case err != nil:
		return 0, err
	case version == 0:
		return 0, ErrNotFound
	case set.Origin != coord.OriginRegistered:
		return 0, fmt.Errorf("%w: its resources are %s, not registered", ErrRefused, set.Origin)
	}
	return version, nil
}

// registration is a registered resource as it stands in the store.
type registration struct {
	coord.Registration
	version int64
}

// registrations returns the registered resources.
func registrations(ctx context.Context, s backends.Session) (map[string]registration, error) {
	r, err := s.Read(ctx, backends.ReadRequest{Prefixes: []string{coord.ResourcePrefix}})
	if err != nil {
		return nil, fmt.Errorf("read its resources: %w", err)
	}
	have := map[string]registration{}
	for _, e := range r.Entries {
		reg, err := coord.DecodeRegistration(e.Value)
		if err != nil {
			return nil, err
		}
		have[reg.Name] = registration{reg, e.Version}
	}
	return have, nil
}

func sortedNames[V any](m map[string]V) []string {
	list := make([]string, 0, len(m))
	for n := range m {
		list = append(list, n)
	}
	slices.Sort(list)
	return list
}

// unique drops repetitions and keeps the order.
func unique(list []string) []string {
	seen := map[string]bool{}
	var out []string
	for _, n := range list {
		if !seen[n] {
			seen[n] = true
			out = append(out, n)
		}
	}
	return out
}
