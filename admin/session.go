package admin

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/coord"
	"github.com/rebalancer-go/rebalancer/internal/names"
)

const (
	// sessionTTL is long enough for a slow call and short enough that a killed command leaves no trace for long.
	sessionTTL = 10 * time.Second
	// closeTime bounds the farewell, also when ctx has ended.
	closeTime = 2 * time.Second
	// rounds is how often a write is tried when somebody else was faster, pause the longest that is waited before the second time; then it
	// grows.
	rounds = 20
	pause  = 10 * time.Millisecond
)

// Groups lists the groups that the store knows, in order of their bytes, without those that were deleted.
func Groups(ctx context.Context, store backends.Store) ([]string, error) {
	all, err := store.Groups(ctx)
	if err != nil {
		return nil, fmt.Errorf("list groups: %w", err)
	}
	var list []string
	for _, group := range all {
		deleted := false
		err := with(ctx, store, group, func(s backends.Session) error {
			_, _, old, err := settings(ctx, s)
			deleted = old != 0
			return err
		})
		if err != nil && ctx.Err() != nil {
			return nil, fmt.Errorf("list groups: %w", err)
		}
		if !deleted { // one whose settings cannot be read is there
			list = append(list, group)
		}
	}
	return list, nil
}

// nobody is the node of a session that no node has.
const nobody = "admin"

// with calls f with a session of the group, and again when another writer was faster.
func with(ctx context.Context, store backends.Store, group string, f func(backends.Session) error) error {
	return withAs(ctx, store, group, nobody, f)
}

// withAs is with under the name of a node.
func withAs(ctx context.Context, store backends.Store, group, node string, f func(backends.Session) error) error {
	if why := names.Group(group); why != "" {
		return fmt.Errorf("%w: name of the group %q: %s", ErrInvalid, group, why)
	}
	var err error
	for round := range rounds {
		if err = once(ctx, store, group, node, f); !retryable(err) || !waitAbout(ctx, time.Duration(round+1)*pause) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("group %q: %w", group, err)
	}
	return nil
}

// waitAbout waits for up to d, so that those who met once do not meet again; false when ctx has ended.
func waitAbout(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(rand.N(d))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func once(ctx context.Context, store backends.Store, group, node string, f func(backends.Session) error) error {
	s, err := store.Open(ctx, backends.SessionOptions{Group: group, Node: node, TTL: sessionTTL})
	if err != nil {
		return fmt.Errorf("open a session: %w", err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
		defer cancel()
		_ = s.Close(ctx) // it ends by itself otherwise
	}()
	return f(s)
}

func retryable(err error) bool {
	for _, again := range []error{backends.ErrConflict, backends.ErrUnknown, backends.ErrSessionLost, backends.ErrIncarnation} {
		if errors.Is(err, again) {
			return true
		}
	}
	return false
}

// settings reads the group's settings. version is 0 when there are none or only a tombstone's (then old is its version).
func settings(ctx context.Context, s backends.Session) (set coord.Settings, version, old int64, err error) {
	r, err := s.Read(ctx, backends.ReadRequest{Keys: []string{coord.SettingsKey}})
	if err != nil {
		return set, 0, 0, fmt.Errorf("read its settings: %w", err)
	}
	if len(r.Entries) == 0 {
		return set, 0, 0, nil
	}
	set, err = coord.DecodeSettings(r.Entries[0].Value)
	if err != nil {
		return set, 0, 0, err
	}
	if set.Deleted {
		return set, 0, r.Entries[0].Version, nil
	}
	return set, r.Entries[0].Version, 0, nil
}

// existing returns the version of the settings of a group that is there.
func existing(ctx context.Context, s backends.Session) (int64, error) {
	_, version, _, err := settings(ctx, s)
	if err == nil && version == 0 {
		err = ErrNotFound
	}
	return version, err
}

// commit writes and returns the first result that is not an applied one.
func commit(ctx context.Context, s backends.Session, txns ...backends.Txn) error {
	r, err := s.Commit(ctx, backends.CommitRequest{Incarnation: s.Opened().Incarnation, Txns: txns})
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	for _, res := range r.Results {
		if res.Err != nil {
			return fmt.Errorf("write: %w", res.Err)
		}
	}
	return nil
}
