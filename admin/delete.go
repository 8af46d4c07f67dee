package admin

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/coord"
)

// deleteSize is how many entries of a group are removed at once.
const deleteSize = 100

// Delete removes a group that has no live member: its settings, registered resources, checkpoints, and what operators asked of it. It reports
// whether the group was there; false when it was deleted before, and then it removes what may be left of it. What remains is a mark, so
// that a node that starts later does not make the group again but is refused with group.ErrDeleted, until somebody calls [Create]; and the history.
//
// It fails with ErrRefused, and deletes nothing, when the group has a member or somebody holds a resource of it. A node that joins at the very
// moment may be told that the group was deleted although that is then taken back. It fails with ErrNotFound when there is no such group.
func Delete(ctx context.Context, store backends.Store, group string) (deleted bool, err error) {
	var was *coord.Settings // what this call has replaced by the mark, as far as it knows
	err = with(ctx, store, group, func(s backends.Session) error {
		set, version, mark, err := settings(ctx, s)
		switch {
		case err != nil:
			return err
		case version == 0 && mark == 0:
			return ErrNotFound
		case version != 0 && was != nil && deleted:
			return nil // somebody has created it again
		case version != 0:
			if err := empty(ctx, s); err != nil {
				return err
			}
			was = &set
			if err := putMark(ctx, s, store, set, version); err != nil {
				return err
			}
			if _, _, mark, err = settings(ctx, s); err != nil || mark == 0 {
				return fmt.Errorf("read the mark of the deleted group: %w", orConflict(err))
			}
		}
		deleted = was != nil
		if err := empty(ctx, s); err != nil {
			if was != nil { // nobody can join from the mark on, so that one was there before
				deleted = false
				return restore(ctx, s, store, *was, mark, err)
			}
			return err
		}
		return purge(ctx, s, mark)
	})
	if err != nil {
		return false, fmt.Errorf("delete: %w", err)
	}
	return deleted, nil
}

// orConflict has a call begin anew when there is no error that says more.
func orConflict(err error) error {
	if err == nil {
		return backends.ErrConflict
	}
	return err
}

// empty says why a group may not be deleted.
func empty(ctx context.Context, s backends.Session) error {
	r, err := s.Read(ctx, backends.ReadRequest{
		Keys: []string{coord.LeaderKey}, Prefixes: []string{coord.MemberPrefix, coord.ClaimPrefix}, NamesOnly: true,
	})
	if err != nil {
		return fmt.Errorf("look for its members: %w", err)
	}
	members, claims := 0, 0
	for _, e := range r.Entries {
		switch {
		case strings.HasPrefix(e.Key, coord.MemberPrefix):
			members++
		case strings.HasPrefix(e.Key, coord.ClaimPrefix):
			claims++
		}
	}
	if len(r.Entries) > 0 {
		return fmt.Errorf("%w: it has %s, and %s held by somebody: stop its nodes first", ErrRefused, countOf(members, "member"), countOf(claims, "resource"))
	}
	return nil
}

func countOf(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// putMark replaces the settings by the mark of a deleted group.
func putMark(ctx context.Context, s backends.Session, store backends.Store, set coord.Settings, version int64) error {
	set.Deleted = true
	return commitAll(ctx, s, record(store, KindDelete, ""), []backends.Txn{{
		Checks: []backends.Check{{Key: coord.SettingsKey, Version: version}, {Key: coord.LeaderKey}},
		Puts:   []backends.Put{{Key: coord.SettingsKey, Value: coord.EncodeSettings(set)}},
	}})
}

// restore takes the mark back because of somebody who has joined.
func restore(ctx context.Context, s backends.Session, store backends.Store, was coord.Settings, mark int64, because error) error {
	err := commitAll(ctx, s, record(store, KindCreate, "the deletion was taken back: a node joined meanwhile"), []backends.Txn{{
		Checks: []backends.Check{{Key: coord.SettingsKey, Version: mark}},
		Puts:   []backends.Put{{Key: coord.SettingsKey, Value: coord.EncodeSettings(was)}},
	}})
	if err != nil {
		return fmt.Errorf("take the deletion back: %w", err)
	}
	return because
}

// purge removes all that a deleted group has left but its history, as long as the mark stands.
func purge(ctx context.Context, s backends.Session, mark int64) error {
	r, err := s.Read(ctx, backends.ReadRequest{Prefixes: []string{""}, NamesOnly: true})
	if err != nil {
		return fmt.Errorf("read what is left of it: %w", err)
	}
	left := slices.DeleteFunc(r.Entries, func(e backends.Entry) bool {
		return e.Key == coord.SettingsKey || strings.HasPrefix(e.Key, coord.HistoryPrefix)
	})
	for part := range slices.Chunk(left, deleteSize) {
		t := backends.Txn{Checks: []backends.Check{{Key: coord.SettingsKey, Version: mark}}}
		for _, e := range part {
			t.Deletes = append(t.Deletes, e.Key)
		}
		if err := commit(ctx, s, t); err != nil {
			return err
		}
	}
	return nil
}
