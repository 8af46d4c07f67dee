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
	// MaxActive is how many nodes may hold resources at once, FailBack lets one of a higher priority take over from one that is
	// well; it needs MaxActive. Default to 0, all nodes, and false.
	MaxActive int
	FailBack  bool
	// MaxMoving is how many resources may be in hand-over at a time, MaxMovingPerNode how many of one node. Default to 0, no limit.
	MaxMoving, MaxMovingPerNode int
}

func (s Settings) String() string {
	text := fmt.Sprintf("barrier %s, resources %s, ttl %v", s.Barrier, s.Origin, s.TTL)
	if s.MaxActive > 0 {
		text += fmt.Sprintf(", max active %d", s.MaxActive)
	}
	if s.FailBack {
		text += ", fail-back"
	}
	if s.MaxMoving > 0 {
		text += fmt.Sprintf(", max moving %d", s.MaxMoving)
	}
	if s.MaxMovingPerNode > 0 {
		text += fmt.Sprintf(", max moving per node %d", s.MaxMovingPerNode)
	}
	return text
}

func (s Settings) coord() (coord.Settings, error) {
	if s.Barrier == "" {
		s.Barrier = string(coord.ResourceBarrier)
	}
	if s.Origin == "" {
		s.Origin = string(coord.OriginStatic)
	}
	mode, origin, ttl := coord.Mode(s.Barrier), coord.Origin(s.Origin), s.TTL.Milliseconds()
	var errs []error
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...))
		}
	}
	bad(mode != coord.ResourceBarrier && mode != coord.GlobalBarrier, "barrier %q: it must be resource or global", s.Barrier)
	bad(origin != coord.OriginStatic && origin != coord.OriginRegistered && origin != coord.OriginDiscovered,
		"origin %q: it must be static, registered or discovered", s.Origin)
	bad(ttl < 100, "ttl %v: it must be at least 100ms", s.TTL)
	bad(s.MaxActive < 0, "max active %d: it must be at least 0 (all nodes)", s.MaxActive)
	bad(s.FailBack && s.MaxActive == 0, "fail-back: it needs max active above 0")
	bad(s.MaxMoving < 0, "max moving %d: it must be at least 0 (no limit)", s.MaxMoving)
	bad(s.MaxMovingPerNode < 0, "max moving per node %d: it must be at least 0 (no limit)", s.MaxMovingPerNode)
	return coord.Settings{
		Mode: mode, Origin: origin, TTL: ttl, Grace: ttl, Format: coord.FormatMax,
		MaxActive: s.MaxActive, FailBack: s.FailBack, MaxMoving: s.MaxMoving, MaxMovingNode: s.MaxMovingPerNode,
	}, errors.Join(errs...)
}

func fromCoord(s coord.Settings) Settings {
	return Settings{
		Barrier: string(s.Mode), Origin: string(s.Origin), TTL: time.Duration(s.TTL) * time.Millisecond,
		MaxActive: s.MaxActive, FailBack: s.FailBack, MaxMoving: s.MaxMoving, MaxMovingPerNode: s.MaxMovingNode,
	}
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
		kind := KindCreate
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
				return fmt.Errorf("%w: it exists with other settings (%v) and %d members; they can be changed while it has none",
					ErrRefused, have, len(r.Entries))
			}
			old, kind = version, KindSettings
		}
		want.Created = ses.Opened().Incarnation
		err = commitAll(ctx, ses, record(store, kind, fromCoord(want).String()), []backends.Txn{{
			Checks: []backends.Check{{Key: coord.SettingsKey, Version: old}, {Key: coord.LeaderKey}},
			Puts:   []backends.Put{{Key: coord.SettingsKey, Value: coord.EncodeSettings(want)}},
			Wake:   []string{coord.CoordinatorAddress},
		}})
		created = err == nil || errors.Is(err, backends.ErrUnknown)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("create: %w", err)
	}
	return created, nil
}
