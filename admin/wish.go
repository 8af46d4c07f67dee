package admin

import (
	"context"
	"fmt"
	"maps"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/coord"
)

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

// wish is what an operator asks of a group.
type wish struct {
	what  string // for errors
	wrong error  // with the arguments: nothing is written then
	asks  []ask
	fits  func(context.Context, backends.Session) error // says why it does not fit the group as it stands; nil: it does
	// For the history: what is done, and to what. The names of asks are those of nodes, or of resources, which are to go to a node; or it is done
	// to the whole group.
	kind, detail, to string
	nodes, group     bool
}

// control writes what an operator asks for and returns the names of what was not so before.
func control(ctx context.Context, store backends.Store, group string, w wish) ([]string, error) {
	changed := map[string]bool{}
	err := w.wrong
	if err == nil {
		err = with(ctx, store, group, func(s backends.Session) error { return w.carryOut(ctx, store, s, changed) })
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", w.what, err)
	}
	return w.names(changed), nil
}

// carryOut writes what is asked for and does not stand there yet, which is noted in changed.
func (w *wish) carryOut(ctx context.Context, store backends.Store, s backends.Session, changed map[string]bool) error {
	version, err := existing(ctx, s)
	if err != nil {
		return err
	}
	if w.fits != nil {
		if err := w.fits(ctx, s); err != nil {
			return err
		}
	}
	now := map[string]bool{}
	todo, err := pending(ctx, s, w.asks, version, now)
	if err != nil {
		return err
	}
	maps.Copy(changed, now)
	return commitAll(ctx, s, w.record(store, now), todo)
}

// names are those of the asks with these keys, in their order.
func (w *wish) names(keys map[string]bool) []string {
	var list []string
	for _, a := range w.asks {
		if keys[a.key] {
			list = append(list, a.name)
		}
	}
	return list
}

// record is what the history will say of the asks with these keys.
func (w *wish) record(store backends.Store, keys map[string]bool) coord.Record {
	r := record(store, w.kind, w.detail)
	switch {
	case w.group:
		return r
	case w.nodes:
		r.Nodes = w.names(keys)
		return r
	}
	return of(r, w.to, w.names(keys))
}

func keepDetail(keep bool) string {
	if keep {
		return "claims are kept"
	}
	return ""
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
