package admin

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/backends/memory"
	"github.com/rebalancer-go/rebalancer/coord"
)

func TestPlacementSettings(t *testing.T) {
	t.Parallel()
	store, ctx := memory.New(), t.Context()
	s := Settings{Barrier: "resource", Origin: "static", TTL: time.Second, MaxActive: 2, FailBack: true, MaxMoving: 3, MaxMovingPerNode: 1}
	if _, err := Create(ctx, store, "g", s); err != nil {
		t.Fatal(err)
	}
	if d, err := Describe(ctx, store, "g"); err != nil || d.Settings != s {
		t.Errorf("%+v, %v", d.Settings, err)
	}
	// Each of the four counts.
	for _, other := range []func(*Settings){
		func(s *Settings) { s.MaxActive = 3 }, func(s *Settings) { s.FailBack = false },
		func(s *Settings) { s.MaxMoving = 4 }, func(s *Settings) { s.MaxMovingPerNode = 0 },
	} {
		o := s
		other(&o)
		if _, err := Create(ctx, store, "g", o); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), s.String()) {
			t.Errorf("%+v: %v", o, err)
		}
		if changed, err := Change(ctx, store, "g", o); err != nil || !changed {
			t.Errorf("%+v: %v, %v", o, changed, err)
		}
		if d, err := Describe(ctx, store, "g"); err != nil || d.Settings != o {
			t.Errorf("%+v, %v", d.Settings, err)
		}
		if _, err := Change(ctx, store, "g", s); err != nil {
			t.Error(err)
		}
	}
	_, err := Create(ctx, store, "h", Settings{TTL: time.Second, MaxActive: -1, MaxMoving: -1, MaxMovingPerNode: -1})
	for _, want := range []string{"max active -1", "max moving -1", "max moving per node -1"} {
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
	if _, err := Create(ctx, store, "h", Settings{TTL: time.Second, FailBack: true}); !errors.Is(err, ErrInvalid) {
		t.Errorf("fail-back alone: %v", err)
	}
}

func TestRegister(t *testing.T) {
	t.Parallel()
	store, ctx := memory.New(), t.Context()
	if _, err := Create(ctx, store, "g", registered); err != nil {
		t.Fatal(err)
	}
	eu := Registration{Name: "eu", Weight: 3, Require: []string{"zone=eu", "net=x", "zone=eu"}, Prefer: []string{"disk=ssd"}}
	same := eu
	same.Require = []string{"net=x", "zone=eu"}
	for _, step := range []struct {
		in   []Registration
		want []string
	}{
		{[]Registration{eu, {Name: "us"}}, []string{"eu", "us"}},
		{[]Registration{same, {Name: "us", Weight: 1}}, nil},
		{[]Registration{{Name: "us", Weight: 2}, same}, []string{"us"}},
		{[]Registration{{Name: "us"}}, []string{"us"}},
	} {
		if got, err := Register(ctx, store, "g", step.in...); err != nil || len(got)+len(step.want) > 0 && !reflect.DeepEqual(got, step.want) {
			t.Errorf("%+v: %q, %v, want %q", step.in, got, err, step.want)
		}
	}
	// The simple form leaves what is there alone.
	if got, err := AddResources(ctx, store, "g", "eu"); err != nil || len(got) > 0 {
		t.Errorf("%q, %v", got, err)
	}
	s := session(t, store)
	have, err := registrations(ctx, s)
	if want := (coord.Registration{Name: "eu", Weight: 3, Require: []string{"net=x", "zone=eu"}, Prefer: []string{"disk=ssd"}}); err != nil ||
		!reflect.DeepEqual(have["eu"].Registration, want) || !reflect.DeepEqual(have["us"].Registration, coord.Registration{Name: "us"}) {
		t.Errorf("%+v, %v", have, err)
	}
	for _, bad := range [][]Registration{
		nil, {{Name: ""}}, {{Name: "a", Weight: -1}}, {{Name: "a", Weight: MaxWeight + 1}}, {{Name: "a"}, {Name: "a", Weight: 2}},
		{{Name: "a", Require: []string{"zone"}}}, {{Name: "a", Prefer: []string{"=x"}}}, {{Name: "a", Prefer: []string{"k=\xff"}}},
		{{Name: "a", Require: []string{"k=1", "k=2"}}}, {{Name: "a", Require: []string{"k=" + strings.Repeat("x", 129)}}},
		{{Name: "a", Prefer: make([]string, 33)}},
	} {
		if _, err := Register(ctx, store, "g", bad...); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if _, err := Register(ctx, store, "none", eu); !errors.Is(err, ErrNotFound) {
		t.Errorf("no group: %v", err)
	}
}
