package statuspage

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/admin"
	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/group"
)

func TestTheFirstAnswerHasAllAndLaterOnesWhatChanged(t *testing.T) {
	t.Parallel()
	inWorld(t, nil, func(w *world) {
		w.add("a", "b", "c")
		stop := w.node("n1")
		defer stop()
		settle()
		first := w.state("")
		if first.code != http.StatusOK || first.Since != "" || len(first.Resources) != 3 || len(first.Nodes) != 1 || first.Head.Coordinator != "n1" {
			t.Fatalf("first: %+v", first)
		}
		for _, r := range first.Resources {
			if r.State != admin.StateHeld || r.Owner != "n1" || r.Since == 0 || r.Fence == 0 || r.Trouble {
				t.Errorf("%+v", r)
			}
		}
		if len(first.History) == 0 || first.History[0].Kind != admin.KindRebalance {
			t.Errorf("history: %+v", first.History)
		}

		go func() {
			time.Sleep(3 * time.Second)
			_, _ = admin.Pause(w.Context(), w.store, "g", true, "b") // its effect is looked at
		}()
		began := time.Now()
		next := w.state(first.Version)
		if took := time.Since(began); took < 3*time.Second || took > 5*time.Second {
			t.Errorf("the change was answered after %v, want within 2 s of it", took)
		}
		if next.Since != first.Version || len(next.Resources) != 1 || next.Resources[0].Name != "b" || next.Resources[0].Paused != admin.PausedKept {
			t.Errorf("next: %+v", next)
		}
	})
}

func TestWithoutChangeTheAnswerIsHeldBackAndEmpty(t *testing.T) {
	t.Parallel()
	inWorld(t, nil, func(w *world) {
		w.add("a")
		first := w.state("")
		time.Sleep(10 * time.Second)
		first = w.state(first.Version) // what changed meanwhile
		began := time.Now()
		if s := w.state(first.Version); s.code != http.StatusNoContent || time.Since(began) != hold {
			t.Errorf("after %v: %+v", time.Since(began), s)
		}
	})
}

func TestWhatIsGoneIsSaid(t *testing.T) {
	t.Parallel()
	inWorld(t, nil, func(w *world) {
		w.add("a", "b")
		first := w.state("")
		if _, err := admin.RemoveResources(w.Context(), w.store, "g", "a"); err != nil {
			t.Fatal(err)
		}
		next := w.state(first.Version)
		if !slices.Equal(next.ResourcesGone, []string{"a"}) || len(next.Resources) != 0 {
			t.Errorf("%+v", next)
		}
		for _, have := range []string{"other-1", "x", first.Version + "9", strings.Replace(first.Version, "-", "--", 1)} {
			if s := w.state(have); s.Since != "" || len(s.Resources) != 1 {
				t.Errorf("have %q: %+v", have, s)
			}
		}
	})
}

func TestOneReaderForAllAndNoneWhenNobodyLooks(t *testing.T) {
	t.Parallel()
	inWorld(t, nil, func(w *world) {
		w.add("a")
		before := w.store.Calls()
		var all sync.WaitGroup
		until := time.Now().Add(60 * time.Second)
		for range 50 {
			all.Go(func() {
				have := ""
				for time.Now().Before(until) {
					if s := w.state(have); s.code == http.StatusOK {
						have = s.Version
					}
				}
			})
		}
		all.Wait()
		// A look is one session for the description, and each pastEvery one for the history.
		if n := w.store.Calls().Open - before.Open; n > 71+15 {
			t.Errorf("50 browsers cost %d sessions in 70 s", n)
		}
		time.Sleep(idleAfter + 2*time.Second)
		asleep := w.store.Calls()
		time.Sleep(time.Minute)
		if now := w.store.Calls(); now != asleep {
			t.Errorf("nobody looks, and the store is read: %+v, then %+v", asleep, now)
		}
		if s := w.state(""); len(s.Resources) != 1 {
			t.Errorf("after the sleep: %+v", s)
		}
	})
}

func TestAStoreThatFailsIsShownOverTheLastGoodState(t *testing.T) {
	t.Parallel()
	inWorld(t, nil, func(w *world) {
		w.add("a")
		first := w.state("")
		restore := w.store.Cut("admin")
		began := time.Now()
		slow := w.state(first.Version)
		if took := time.Since(began); took > 5*time.Second || !strings.Contains(slow.Error, "has not answered for 3s") || len(slow.Resources) != 0 || slow.Since == "" {
			t.Errorf("after %v: %+v", took, slow)
		}
		if dead := w.state(slow.Version); !strings.Contains(dead.Error, "within 10s") {
			t.Errorf("%+v", dead)
		}
		if whole := w.state(""); whole.Error == "" || len(whole.Resources) != 1 {
			t.Errorf("who comes now sees: %+v", whole)
		}
		restore()
		time.Sleep(time.Minute)
		if well := w.state(""); well.Error != "" || len(well.Resources) != 1 {
			t.Errorf("%+v", well)
		}
	})
}

// brokenStore fails with what a driver could say.
type brokenStore struct{ backends.Store }

func (brokenStore) Open(context.Context, backends.SessionOptions) (backends.Session, error) {
	return nil, errors.New("dial redis://u:s3cret@h: refused")
}

func (brokenStore) Groups(context.Context) ([]string, error) {
	return nil, errors.New("password=s3cret: refused")
}

func TestErrorsOfTheStoreAreShownWithoutSecrets(t *testing.T) {
	t.Parallel()
	change := func(c *Config) { c.Store, c.Token = brokenStore{}, testToken }
	inWorld(t, change, func(w *world) {
		for _, path := range []string{"/api/groups", "/api/state?group=g"} {
			if rec := w.ask(http.MethodGet, path, ""); rec.Code != http.StatusBadGateway || strings.Contains(rec.Body.String(), "s3cret") {
				t.Errorf("%s: %d %s", path, rec.Code, rec.Body)
			}
		}
	})
	change = func(c *Config) { c.Store, c.Token, c.Groups = brokenStore{}, testToken, []string{"g"} }
	inWorld(t, change, func(w *world) {
		if s := w.state(""); !strings.Contains(s.Error, "refused") || strings.Contains(s.Error, "s3cret") {
			t.Errorf("%+v", s)
		}
		rec := w.ask(http.MethodPost, "/api/do", `{"group":"g","do":"drain","names":["n"]}`, withToken(testToken))
		if rec.Code != http.StatusBadGateway || strings.Contains(rec.Body.String(), "s3cret") {
			t.Errorf("%d %s", rec.Code, rec.Body)
		}
	})
}

func TestGroups(t *testing.T) {
	t.Parallel()
	inWorld(t, nil, func(w *world) {
		if rec := w.ask(http.MethodGet, "/api/groups", ""); !strings.Contains(rec.Body.String(), `"groups":["g"],"writable":false`) {
			t.Errorf("%s", rec.Body)
		}
		if rec := w.ask(http.MethodGet, "/api/state?group=other", ""); rec.Code != http.StatusNotFound {
			t.Errorf("a group that is not there: %d", rec.Code)
		}
	})
	inWorld(t, func(c *Config) { c.Groups = []string{"later", "g"} }, func(w *world) {
		if rec := w.ask(http.MethodGet, "/api/groups", ""); !strings.Contains(rec.Body.String(), `"groups":["later","g"]`) {
			t.Errorf("%s", rec.Body)
		}
		if rec := w.ask(http.MethodGet, "/api/state?group=later", ""); !strings.Contains(rec.Body.String(), "no such group") {
			t.Errorf("%d %s", rec.Code, rec.Body)
		}
	})
}

func TestTroublesAndLateNodes(t *testing.T) {
	t.Parallel()
	inWorld(t, nil, func(w *world) {
		if _, err := admin.Register(w.Context(), w.store, "g", admin.Registration{Name: "gpu", Require: []string{"gpu=yes"}}); err != nil {
			t.Fatal(err)
		}
		w.add("a", "b")
		stop := w.node("n1")
		defer stop()
		stop2 := w.node("n2", func(c *group.Config) { c.Static = true })
		settle()
		s := w.state("")
		for _, r := range s.Resources {
			if r.Trouble != (r.Name == "gpu") {
				t.Errorf("%+v", r)
			}
		}
		restore := w.store.Cut("n2")
		time.Sleep(8 * time.Second)
		for _, n := range w.state("").Nodes {
			if n.Late != (n.Name == "n2") {
				t.Errorf("%+v", n)
			}
		}
		restore()
		settle()
		stop2()
		if _, err := admin.Drain(w.Context(), w.store, "g", "n9"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		var got []string
		for _, n := range w.state("").Nodes {
			got = append(got, fmt.Sprintf("%s %v %v %v", n.Name, n.Here, n.Drained, n.Until > 0))
		}
		if want := []string{"n1 true false false", "n2 false false true", "n9 false true false"}; !slices.Equal(got, want) {
			t.Errorf("nodes %q, want %q", got, want)
		}
	})
}

func TestLag(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	var fails atomic.Bool
	change := func(c *Config) {
		c.Lag = func(_ context.Context, group string, resources []string) (map[string]int64, error) {
			asked.Add(1)
			if fails.Load() {
				return nil, errors.New("no")
			}
			return map[string]int64{resources[0]: 7}, nil
		}
	}
	inWorld(t, change, func(w *world) {
		w.add("a", "b")
		s := w.state("")
		s = w.state(s.Version)
		if len(s.Resources) != 1 || s.Resources[0].Lag == nil || *s.Resources[0].Lag != 7 || !s.Head.Lag {
			t.Errorf("%+v", s)
		}
		fails.Store(true)
		time.Sleep(lagEvery + 2*time.Second)
		s = w.state("")
		if len(s.Resources) != 2 || s.Resources[0].Lag != nil || s.Head.Lag {
			t.Errorf("an old lag is shown on: %+v", s)
		}
		if n := asked.Load(); n != 2 {
			t.Errorf("asked %d times", n)
		}
	})
}

type lagger struct{}

func (lagger) Lag(_ context.Context, r string) (int64, error) { return int64(len(r)), nil }

func TestLagOf(t *testing.T) {
	t.Parallel()
	if lag, err := LagOf(lagger{})(t.Context(), "g", []string{"a", "bb"}); err != nil || lag["bb"] != 2 {
		t.Errorf("%v %v", lag, err)
	}
}

// TestLastError: what went wrong last is told, without secrets.
func TestLastError(t *testing.T) {
	t.Parallel()
	d := &admin.Description{Resources: []admin.Resource{{Name: "a", LastError: "dial amqp://u:secret@h", LastErrorAt: time.UnixMilli(7)}, {Name: "b"}}}
	all, _ := resourcesOf(d, nil, time.Now(), func(s string) string { return strings.ReplaceAll(s, "secret", "***") })
	if all[0].Last != "dial amqp://u:***@h" || all[0].LastAt != 7 || all[1].Last != "" || all[1].LastAt != 0 {
		t.Errorf("%+v", all)
	}
}
