package admin

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/backends/memory"
	"github.com/rebalancer-go/rebalancer/coord"
	"github.com/rebalancer-go/rebalancer/group"
)

var registered = Settings{Origin: "registered", TTL: 30 * time.Second}

func TestCreate(t *testing.T) {
	t.Parallel()
	store := memory.New()
	ctx := t.Context()
	for i, want := range []bool{true, false} {
		if created, err := Create(ctx, store, "g", registered); err != nil || created != want {
			t.Errorf("call %d: %v, %v", i, created, err)
		}
	}
	if _, err := Create(ctx, store, "g", Settings{TTL: time.Minute}); !errors.Is(err, ErrRefused) {
		t.Errorf("other settings: %v", err)
	}
	ses, err := store.Open(ctx, backends.SessionOptions{Group: "g", TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if err := commit(ctx, ses, backends.Txn{Puts: []backends.Put{{Key: coord.MemberKey("n"), Value: []byte("1{}"), Bound: true}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := Change(ctx, store, "g", Settings{TTL: time.Minute}); !errors.Is(err, ErrRefused) {
		t.Errorf("change with a member: %v", err)
	}
	if err := ses.Close(ctx); err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, false} {
		if changed, err := Change(ctx, store, "g", Settings{TTL: time.Minute}); err != nil || changed != want {
			t.Errorf("change %d: %v, %v", i, changed, err)
		}
	}
	for _, s := range []Settings{{}, {TTL: time.Second, Barrier: "x"}, {TTL: time.Second, Origin: "x"}} {
		if _, err := Create(ctx, store, "h", s); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v", s, err)
		}
	}
	if _, err := Create(ctx, store, "a/b", registered); !errors.Is(err, ErrInvalid) {
		t.Errorf("bad name: %v", err)
	}
	if gs, err := Groups(ctx, store); err != nil || !reflect.DeepEqual(gs, []string{"g"}) {
		t.Errorf("groups %q, %v", gs, err)
	}
}

func TestResources(t *testing.T) {
	t.Parallel()
	store, ctx := memory.New(), t.Context()
	if _, err := Resources(ctx, store, "g"); !errors.Is(err, ErrNotFound) {
		t.Errorf("no group: %v", err)
	}
	if _, err := Create(ctx, store, "g", registered); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(ctx, store, "static", Settings{TTL: time.Second}); err != nil {
		t.Fatal(err)
	}
	if _, err := AddResources(ctx, store, "static", "a"); !errors.Is(err, ErrRefused) {
		t.Errorf("static group: %v", err)
	}
	if _, err := AddResources(ctx, store, "g", "fine", "", "\xff"); !errors.Is(err, ErrInvalid) {
		t.Errorf("bad names: %v", err)
	}
	steps := []struct {
		f    func(context.Context, backends.Store, string, ...string) ([]string, error)
		in   []string
		want []string
	}{
		{AddResources, []string{"b", "a", "b", "line\nbreak"}, []string{"b", "a", "line\nbreak"}},
		{AddResources, []string{"a", "c"}, []string{"c"}},
		{RemoveResources, []string{"nothing", "a"}, []string{"a"}},
		{RemoveResources, []string{"a"}, nil},
	}
	for _, s := range steps {
		if got, err := s.f(ctx, store, "g", s.in...); err != nil || len(got)+len(s.want) > 0 && !reflect.DeepEqual(got, s.want) {
			t.Errorf("%q: %q, %v, want %q", s.in, got, err, s.want)
		}
	}
	if got, err := Resources(ctx, store, "g"); err != nil || !reflect.DeepEqual(got, []string{"b", "c", "line\nbreak"}) {
		t.Errorf("%q, %v", got, err)
	}
}

// Writers at the same time all get what they asked for.
func TestResourcesBesideOthers(t *testing.T) {
	t.Parallel()
	store, ctx := memory.New(), t.Context()
	if _, err := Create(ctx, store, "g", registered); err != nil {
		t.Fatal(err)
	}
	errs := make(chan error)
	for range 8 {
		go func() {
			_, err := AddResources(ctx, store, "g", "a", "b", "c")
			errs <- err
		}()
	}
	for range 8 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if got, err := Resources(ctx, store, "g"); err != nil || len(got) != 3 {
		t.Errorf("%q, %v", got, err)
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, ctx := memory.New(), t.Context()
		if _, err := Describe(ctx, store, "g"); !errors.Is(err, ErrNotFound) {
			t.Errorf("no group: %v", err)
		}
		if _, err := Create(ctx, store, "g", registered); err != nil {
			t.Fatal(err)
		}
		if _, err := AddResources(ctx, store, "g", "a", "b", "bad"); err != nil {
			t.Fatal(err)
		}
		d, err := Describe(ctx, store, "g")
		if err != nil || len(d.Resources) != 3 || d.Resources[0].State != StateUnshared || d.Resources[0].Reason != "no node is there" {
			t.Errorf("without nodes: %+v, %v", d, err)
		}
		stop := startNode(t, store, "one")
		time.Sleep(20 * time.Second)
		d, err = Describe(ctx, store, "g")
		if err != nil {
			t.Fatal(err)
		}
		if d.Coordinator != "one" || d.Epoch == 0 || d.Generation == 0 || d.Settings != (Settings{Barrier: "resource", Origin: "registered", TTL: 30 * time.Second}) {
			t.Errorf("%+v", d)
		}
		if n := d.Nodes; len(n) != 1 || n[0].Name != "one" || n[0].Holds != 3 || n[0].Assigned != 3 || n[0].Labels["zone"] != "x" || n[0].Left <= 0 {
			t.Errorf("nodes %+v", n)
		}
		for _, r := range d.Resources {
			if r.State != StateHeld || r.Owner != "one" || r.Fence == 0 || r.Since.IsZero() || r.Next != "" {
				t.Errorf("%+v", r)
			}
			if want := map[string]string{"bad": `one: function for resource "bad": it is bad`}[r.Name]; r.Reason != want {
				t.Errorf("%s does not get on because of %q, want %q", r.Name, r.Reason, want)
			}
		}
		stop()
		d, err = Describe(ctx, store, "g")
		if err != nil || len(d.Nodes) != 0 || d.Resources[0].State != StateUnshared || d.Coordinator != "" {
			t.Errorf("after it left: %+v, %v", d, err)
		}
	})
}

// startNode runs a node that cannot work the resource bad.
func startNode(t *testing.T, store backends.Store, name string, change ...func(*group.Config)) (stop func()) {
	t.Helper()
	cfg := group.Config{
		Name: "g", Node: name, Store: store, Resources: group.Registered(), Labels: map[string]string{"zone": "x"},
		Logger: slog.New(slog.DiscardHandler),
	}
	for _, f := range change {
		f(&cfg)
	}
	g, err := group.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- g.Run(ctx, func(ctx context.Context, c *rebalancer.Claim) error {
			if c.Resource == "bad" {
				return errors.New("it is bad")
			}
			<-ctx.Done()
			return nil
		})
	}()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// A node does not replace the settings that somebody chose, also when nobody is a member of the group.
func TestNodeDoesNotChangeCreatedGroup(t *testing.T) {
	t.Parallel()
	store := memory.New()
	if _, err := Create(t.Context(), store, "g", registered); err != nil {
		t.Fatal(err)
	}
	g, err := group.New(group.Config{Name: "g", Store: store, Resources: group.Static("a"), TTL: registered.TTL})
	if err != nil {
		t.Fatal(err)
	}
	run := func(context.Context, *rebalancer.Claim) error { return nil }
	if err := g.Run(t.Context(), run); !errors.Is(err, group.ErrMismatch) {
		t.Errorf("a static node in a registered group: %v", err)
	}
}

// What is listed and held by nobody is described, too: long static lists and discovered ones stand in entries of their own.
func TestDescribeListed(t *testing.T) {
	t.Parallel()
	store := memory.New()
	if _, err := Create(t.Context(), store, "g", Settings{Origin: "discovered", TTL: time.Minute}); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), backends.SessionOptions{Group: "g", TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	put := backends.Put{Key: coord.DiscoveredPrefix + "000000", Value: []byte(`1{"names":["b","a"]}`)}
	if err := commit(t.Context(), s, backends.Txn{Puts: []backends.Put{put}}); err != nil {
		t.Fatal(err)
	}
	d, err := Describe(t.Context(), store, "g")
	if err != nil || len(d.Resources) != 2 || d.Resources[0].Name != "a" || d.Resources[0].Owner != "" || d.Resources[0].Reason == "" {
		t.Errorf("%+v, %v", d.Resources, err)
	}
}

// The last error of a resource is that which its owner tells; another node's, and that of an earlier owner, is not shown.
func TestLastErrors(t *testing.T) {
	t.Parallel()
	store, ctx := memory.New(), t.Context()
	if _, err := Create(ctx, store, "g", registered); err != nil {
		t.Fatal(err)
	}
	if _, err := AddResources(ctx, store, "g", "a", "b"); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(ctx, backends.SessionOptions{Group: "g", Node: "n", TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	put := func(key, value string) backends.Txn {
		return backends.Txn{Puts: []backends.Put{{Key: key, Value: []byte(value), Bound: true}}}
	}
	status := `1{"last":{"a":{"error":"no room","at_us":1700000000000000},"b":{"error":"not mine","at_us":1}}}`
	r, err := s.Commit(ctx, backends.CommitRequest{Incarnation: s.Opened().Incarnation, Txns: []backends.Txn{
		put(coord.ClaimKey("a"), `1{"resource":"a","node":"n"}`), put(coord.ClaimKey("b"), `1{"resource":"b","node":"old"}`),
		put(coord.StatusKey("n"), status), put(coord.StatusKey("old"), `1{"troubles":{}}`),
	}})
	if err != nil || r.Results[2].Err != nil {
		t.Fatal(err, r)
	}
	d, err := Describe(ctx, store, "g")
	if err != nil || len(d.Resources) != 2 {
		t.Fatalf("%+v, %v", d, err)
	}
	if a := d.Resources[0]; a.LastError != "no room" || !a.LastErrorAt.Equal(time.Unix(1700000000, 0)) {
		t.Errorf("%+v", a)
	}
	if b := d.Resources[1]; b.LastError != "" || !b.LastErrorAt.IsZero() {
		t.Errorf("%+v", b)
	}
	if err := s.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if d, err = Describe(ctx, store, "g"); err != nil || d.Resources[0].LastError != "" {
		t.Errorf("it outlives its node: %+v, %v", d.Resources, err)
	}
}
