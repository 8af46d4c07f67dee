package admin

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/backends/memory"
	"github.com/rebalancer-go/rebalancer/coord"
	"github.com/rebalancer-go/rebalancer/group"
)

// left are the keys of the group g, without its history.
func left(t *testing.T, s backends.Session) []string {
	t.Helper()
	r, err := s.Read(t.Context(), backends.ReadRequest{Prefixes: []string{""}, NamesOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, e := range r.Entries {
		if len(e.Key) < len(coord.HistoryPrefix) || e.Key[:len(coord.HistoryPrefix)] != coord.HistoryPrefix {
			keys = append(keys, e.Key)
		}
	}
	return keys
}

// A group is deleted with all it has kept but its history; its name can be used again.
func TestDelete(t *testing.T) {
	t.Parallel()
	store, ctx := memory.New(), t.Context()
	if _, err := Delete(ctx, store, "g"); !errors.Is(err, ErrNotFound) {
		t.Errorf("no group: %v", err)
	}
	if _, err := Create(ctx, store, "g", registered); err != nil {
		t.Fatal(err)
	}
	if _, err := AddResources(ctx, store, "g", "a", "b"); err != nil {
		t.Fatal(err)
	}
	if _, err := Pin(ctx, store, "g", "n", "a"); err != nil {
		t.Fatal(err)
	}
	s := session(t, store)
	keep(t, s, "a", "x")
	for i, want := range []bool{true, false} {
		if deleted, err := Delete(ctx, As(store, "ann", ""), "g"); err != nil || deleted != want {
			t.Fatalf("call %d: %v, %v", i, deleted, err)
		}
	}
	if keys := left(t, s); !slices.Equal(keys, []string{coord.SettingsKey}) {
		t.Errorf("left are %q", keys)
	}
	if gs, err := Groups(ctx, store); err != nil || len(gs) > 0 {
		t.Errorf("groups %q, %v", gs, err)
	}
	if _, err := Describe(ctx, store, "g"); !errors.Is(err, ErrNotFound) {
		t.Errorf("describe: %v", err)
	}
	if list := history(t, store); len(list) != 5 || list[0].Kind != KindDelete || list[0].Actor != "ann" {
		t.Errorf("%+v", list)
	}
	g, err := group.New(group.Config{Name: "g", Store: store, Resources: group.Registered(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Run(ctx, func(context.Context, *rebalancer.Claim) error { return nil }); !errors.Is(err, group.ErrDeleted) {
		t.Errorf("a node of it: %v", err)
	}
	if created, err := Create(ctx, store, "g", registered); err != nil || !created {
		t.Errorf("anew: %v, %v", created, err)
	}
	if list, err := Resources(ctx, store, "g"); err != nil || len(list) > 0 {
		t.Errorf("it has %q, %v", list, err)
	}
	if gs, err := Groups(ctx, store); err != nil || !slices.Equal(gs, []string{"g"}) {
		t.Errorf("groups %q, %v", gs, err)
	}
}

// Who works keeps his group, and all it has kept.
func TestDeleteOfALiveGroup(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]string{"member": coord.MemberKey("n"), "claim": coord.ClaimKey("a"), "coordinator": coord.LeaderKey} {
		store, ctx := memory.New(), t.Context()
		if _, err := Create(ctx, store, "g", registered); err != nil {
			t.Fatal(err)
		}
		s := session(t, store)
		keep(t, s, "a", "x")
		if err := commit(ctx, s, backends.Txn{Puts: []backends.Put{{Key: key, Value: []byte("1{}"), Bound: true}}}); err != nil {
			t.Fatal(err)
		}
		if deleted, err := Delete(ctx, store, "g"); !errors.Is(err, ErrRefused) || deleted {
			t.Errorf("%s: %v, %v", name, deleted, err)
		}
		if keys := left(t, s); len(keys) != 3 {
			t.Errorf("%s: left are %q", name, keys)
		}
	}
}

// joinsLate is a store into which a node writes when the mark of a deleted group is being written.
type joinsLate struct {
	backends.Store
	key string
}

func (j joinsLate) Open(ctx context.Context, o backends.SessionOptions) (backends.Session, error) {
	s, err := j.Store.Open(ctx, o)
	return lateSession{s, j}, err
}

type lateSession struct {
	backends.Session
	j joinsLate
}

func (s lateSession) Commit(ctx context.Context, r backends.CommitRequest) (backends.CommitReply, error) {
	for _, p := range r.Txns[0].Puts {
		if set, err := coord.DecodeSettings(p.Value); p.Key == coord.SettingsKey && err == nil && set.Deleted {
			other, err := s.j.Store.Open(ctx, backends.SessionOptions{Group: "g", TTL: registered.TTL})
			if err != nil {
				return backends.CommitReply{}, err
			}
			if err := commit(ctx, other, backends.Txn{Puts: []backends.Put{{Key: s.j.key, Value: []byte("1{}"), Bound: true}}}); err != nil {
				return backends.CommitReply{}, err
			}
		}
	}
	return s.Session.Commit(ctx, r)
}

// Somebody who joins in the last moment keeps his group: the deletion is taken back before anything is removed.
func TestDeleteBesideAJoin(t *testing.T) {
	t.Parallel()
	for _, key := range []string{coord.MemberKey("n"), coord.LeaderKey} {
		store, ctx := memory.New(), t.Context()
		if _, err := Create(ctx, store, "g", registered); err != nil {
			t.Fatal(err)
		}
		s := session(t, store)
		keep(t, s, "a", "x")
		if deleted, err := Delete(ctx, joinsLate{store, key}, "g"); !errors.Is(err, ErrRefused) || deleted {
			t.Errorf("%s: %v, %v", key, deleted, err)
		}
		if keys := left(t, s); len(keys) != 3 {
			t.Errorf("%s: left are %q", key, keys)
		}
		if set, version, _, err := settings(ctx, s); err != nil || version == 0 || fromCoord(set) != fromCoord(mustCoord(t, registered)) {
			t.Errorf("%s: settings %+v, %v", key, set, err)
		}
	}
}

func mustCoord(t *testing.T, s Settings) coord.Settings {
	t.Helper()
	c, err := s.coord()
	if err != nil {
		t.Fatal(err)
	}
	return c
}
