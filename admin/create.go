package admin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/coord"
)

// Settings are what all nodes of a group agree on.
type Settings struct {
	// Barrier is how the group rebalances: "resource" (only what moves stops) or "global" (everybody stops for every
	// change). Defaults to "resource".
	Barrier string
	// Origin is where its resources come from: "static" (the nodes' own lists), "registered" (kept in the store) or
	// "discovered" (listed by the coordinator). Defaults to "static".
	Origin string
	// TTL is the time after which a node that crashed is replaced. Required.
	TTL time.Duration
}

func (s Settings) coord() (coord.Settings, error) {
	if s.Barrier == "" {
		s.Barrier = string(coord.ResourceBarrier)
	}
	if s.Origin == "" {
		s.Origin = string(coord.OriginStatic)
	}
	mode, origin, ttl := coord.Mode(s.Barrier), coord.Origin(s.Origin), s.TTL.Milliseconds()
	switch {
	case mode != coord.ResourceBarrier && mode != coord.GlobalBarrier:
		return coord.Settings{}, fmt.Errorf("%w: barrier %q: it must be resource or global", ErrInvalid, s.Barrier)
	case origin != coord.OriginStatic && origin != coord.OriginRegistered && origin != coord.OriginDiscovered:
		return coord.Settings{}, fmt.Errorf("%w: origin %q: it must be static, registered or discovered", ErrInvalid, s.Origin)
	case ttl < 100:
		return coord.Settings{}, fmt.Errorf("%w: ttl %v: it must be at least 100ms", ErrInvalid, s.TTL)
	}
	return coord.Settings{Mode: mode, Origin: origin, TTL: ttl, Grace: ttl, Format: coord.FormatMax}, nil
}

func fromCoord(s coord.Settings) Settings {
	return Settings{Barrier: string(s.Mode), Origin: string(s.Origin), TTL: time.Duration(s.TTL) * time.Millisecond}
}

// Create writes the settings of a new group, and with them the promise that no node of it works anywhere: its first start
// then need not wait until nodes of a group that the store has forgotten must have stopped. It reports whether it did;
// false when the group exists with these very settings. It fails with ErrRefused when the group exists with other ones; see [Change]. A
// node whose settings differ from those of a group that was created so is refused.
func Create(ctx context.Context, store backends.Store, group string, s Settings) (created bool, err error) {
	return create(ctx, store, group, s, false)
}

// Change is Create for a group that may exist with other settings: they are replaced while nobody is a member of it. It
// fails with ErrRefused when somebody is.
func Change(ctx context.Context, store backends.Store, group string, s Settings) (changed bool, err error) {
	return create(ctx, store, group, s, true)
}

func create(ctx context.Context, store backends.Store, group string, s Settings, change bool) (created bool, err error) {
	want, err := s.coord()
	if err != nil {
		return false, fmt.Errorf("create group %q: %w", group, err)
	}
	err = with(ctx, store, group, func(ses backends.Session) error {
		got, version, old, err := settings(ctx, ses)
		if err != nil {
			return err
		}
		if version != 0 {
			have := fromCoord(got)
			if have == fromCoord(want) {
				return nil // by somebody else, or by ourselves when the answer was lost: then created is true
			}
			r, err := ses.Read(ctx, backends.ReadRequest{Prefixes: []string{coord.MemberPrefix}, NamesOnly: true})
			if err != nil {
				return fmt.Errorf("look for its members: %w", err)
			}
			if !change || len(r.Entries) > 0 {
				return fmt.Errorf("%w: it exists with other settings (barrier %s, resources %s, ttl %v) and %d members; they can be changed while it has none",
					ErrRefused, have.Barrier, have.Origin, have.TTL, len(r.Entries))
			}
			old = version
		}
		want.Created = ses.Opened().Incarnation
		err = commit(ctx, ses, backends.Txn{
			Checks: []backends.Check{{Key: coord.SettingsKey, Version: old}, {Key: coord.LeaderKey}},
			Puts:   []backends.Put{{Key: coord.SettingsKey, Value: coord.EncodeSettings(want)}},
			Wake:   []string{coord.CoordinatorAddress},
		})
		created = err == nil || errors.Is(err, backends.ErrUnknown)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("create: %w", err)
	}
	return created, nil
}
