package admin

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/backends/memory"
	"github.com/rebalancer-go/rebalancer/coord"
)

// keep writes keys of a resource's checkpoint.
func keep(t *testing.T, s backends.Session, resource string, keys ...string) {
	t.Helper()
	var puts []backends.Put
	for _, k := range keys {
		puts = append(puts, backends.Put{Key: coord.CheckpointPrefix(resource) + k, Value: []byte("value of " + k)})
	}
	if err := commit(t.Context(), s, backends.Txn{Puts: puts}); err != nil {
		t.Fatal(err)
	}
}

func TestCheckpoints(t *testing.T) {
	t.Parallel()
	store, ctx := memory.New(), t.Context()
	if _, err := Create(ctx, store, "g", registered); err != nil {
		t.Fatal(err)
	}
	s := session(t, store)
	keep(t, s, "a", "x", "y")
	keep(t, s, "a/b=c:1", "z/=:")
	list, err := Checkpoints(ctx, store, "g")
	if err != nil || fmt.Sprint(list) != "[{a 2} {a/b=c:1 1}]" {
		t.Errorf("%v, %v", list, err)
	}
	keys, err := ReadCheckpoint(ctx, store, "g", "a/b=c:1")
	if err != nil || len(keys) != 1 || keys[0].Key != "z/=:" || string(keys[0].Value) != "value of z/=:" || keys[0].Version == 0 {
		t.Errorf("%+v, %v", keys, err)
	}
	if keys, err := ReadCheckpoint(ctx, store, "g", "none"); err != nil || len(keys) > 0 {
		t.Errorf("%+v, %v", keys, err)
	}
	for _, execute := range []bool{false, true} {
		removed, err := ResetCheckpoints(ctx, store, "g", execute, "none", "a", "a")
		if err != nil || fmt.Sprint(removed) != "[{a 2}]" {
			t.Errorf("execute %v: %v, %v", execute, removed, err)
		}
	}
	if removed, err := ResetCheckpoints(ctx, store, "g", true, "a"); err != nil || len(removed) > 0 {
		t.Errorf("again: %v, %v", removed, err)
	}
	if list, err := Checkpoints(ctx, store, "g"); err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
	if list := history(t, store); len(list) != 2 || list[0].Kind != KindReset || list[0].Resource != "a" {
		t.Errorf("%+v", list) // one for that which was executed
	}
	if _, err := ResetCheckpoints(ctx, store, "g", true, "a", ""); !errors.Is(err, ErrInvalid) {
		t.Errorf("wrong name: %v", err)
	}
	if _, err := ReadCheckpoint(ctx, store, "g", ""); !errors.Is(err, ErrInvalid) {
		t.Errorf("wrong name: %v", err)
	}
}

// The checkpoint of a resource that somebody holds is left alone, also when he has claimed it in the last moment.
func TestResetOfWhatIsHeld(t *testing.T) {
	t.Parallel()
	store, ctx := memory.New(), t.Context()
	if _, err := Create(ctx, store, "g", registered); err != nil {
		t.Fatal(err)
	}
	s := session(t, store)
	keep(t, s, "a", "x")
	keep(t, s, "b", "x")
	late, _, err := resets(ctx, s, []string{"a"})
	if err != nil {
		t.Fatal(err)
	}
	claim := backends.Put{Key: coord.ClaimKey("a"), Value: []byte(`1{"resource":"a","node":"n"}`), Bound: true}
	if err := commit(ctx, s, backends.Txn{Puts: []backends.Put{claim}}); err != nil {
		t.Fatal(err)
	}
	if err := commit(ctx, s, late...); !errors.Is(err, backends.ErrConflict) {
		t.Errorf("claimed meanwhile: %v", err)
	}
	for _, execute := range []bool{false, true} {
		if _, err := ResetCheckpoints(ctx, store, "g", execute, "a", "b"); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), `"n" holds resource "a"`) {
			t.Errorf("execute %v: %v", execute, err)
		}
	}
	if list, err := Checkpoints(ctx, store, "g"); err != nil || len(list) != 2 {
		t.Errorf("%v, %v", list, err)
	}
}

// What takes several steps needs a pause, which must stand as long as they do.
func TestResetOfALargeCheckpoint(t *testing.T) {
	t.Parallel()
	store, ctx := memory.New(), t.Context()
	if _, err := Create(ctx, store, "g", registered); err != nil {
		t.Fatal(err)
	}
	s := session(t, store)
	var keys []string
	for i := range resetSize + 1 {
		keys = append(keys, fmt.Sprint(i))
	}
	keep(t, s, "a", keys...)
	if _, err := ResetCheckpoints(ctx, store, "g", true, "a"); !errors.Is(err, ErrRefused) {
		t.Errorf("it is not paused: %v", err)
	}
	if _, err := Pause(ctx, store, "g", true, "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := ResetCheckpoints(ctx, store, "g", true, "a"); !errors.Is(err, ErrRefused) {
		t.Errorf("it is paused and kept: %v", err)
	}
	if _, err := PauseGroup(ctx, store, "g", false); err != nil {
		t.Fatal(err)
	}
	late, _, err := resets(ctx, s, []string{"a"})
	if err != nil || len(late) != 2 {
		t.Fatalf("%d, %v", len(late), err)
	}
	if removed, err := ResetCheckpoints(ctx, store, "g", true, "a"); err != nil || fmt.Sprint(removed) != fmt.Sprintf("[{a %d}]", resetSize+1) {
		t.Errorf("%v, %v", removed, err)
	}
	if _, err := ResumeGroup(ctx, store, "g"); err != nil {
		t.Fatal(err)
	}
	if err := commit(ctx, s, late[1]); !errors.Is(err, backends.ErrConflict) {
		t.Errorf("resumed meanwhile: %v", err)
	}
}
