package seen

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebalancer-go/rebalancer/internal/checkpointtest"
)

func names(batch []Settlement) []string {
	out := make([]string, len(batch))
	for i, x := range batch {
		out[i] = x.Name
	}
	return out
}

// TestForgetsWhatIsGone: after 24 h and 3 listings, not sooner, and a name that is back starts anew.
func TestForgetsWhatIsGone(t *testing.T) {
	t.Parallel()
	for _, n := range []int{10, 1000} { // in the journal, and in chunks
		synctest.Test(t, func(t *testing.T) {
			store := checkpointtest.New()
			s := open1(t, store)
			batch := numbered(0, n)
			settle(t, s, batch...)
			all := names(batch)
			list(t, s, nil, all...)
			few := all[:n-n/10]
			list(t, s, nil, few...)
			time.Sleep(23 * time.Hour)
			for range 5 {
				list(t, s, nil, few...)
			}
			if back := list(t, s, nil, all...); len(back) != n/10 {
				t.Fatalf("%d names came back", len(back))
			}
			for hour := range 24 {
				time.Sleep(time.Hour)
				list(t, s, nil, few...)
				if s.Len() != n {
					t.Fatalf("forgotten %d h after they were seen last", hour+1)
				}
			}
			time.Sleep(time.Hour)
			list(t, s, nil, few...)
			if s.Len() != len(few) {
				t.Fatalf("%d names, want %d", s.Len(), len(few))
			}
			same(t, "the store", contents(t, store), inMemory(t, s))
		})
	}
}

// TestFewListings: 24 h without a listing prove nothing.
func TestFewListings(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open1(t, checkpointtest.New())
		settle(t, s, numbered(0, 100)...)
		few := names(numbered(0, 90))
		for i := range 3 {
			if s.Len() != 100 {
				t.Fatalf("forgotten after %d listings", i)
			}
			list(t, s, nil, few...)
			time.Sleep(25 * time.Hour)
		}
		list(t, s, nil, few...)
		if s.Len() != 90 {
			t.Fatalf("%d names", s.Len())
		}
	})
}

// TestAbsenceIsHandedOver: the next owner counts the hours on, not the listings.
func TestAbsenceIsHandedOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := checkpointtest.New()
		s := open1(t, store)
		settle(t, s, numbered(0, 1000)...)
		few := names(numbered(0, 900))
		list(t, s, nil, few...)
		for range 12 { // each owner for 2 h
			time.Sleep(20 * time.Minute)
			list(t, s, nil, few...) // writes what is gone
			time.Sleep(100 * time.Minute)
			s = open1(t, store)
		}
		for i := range 3 {
			if s.Len() != 1000 {
				t.Fatalf("forgotten after %d listings of this owner", i)
			}
			time.Sleep(20 * time.Minute)
			list(t, s, nil, few...)
		}
		if s.Len() != 900 {
			t.Fatalf("%d names", s.Len())
		}
	})
}

// TestForgetsThoughItMoves: a resource that no owner has for long enough to write what listings prove is tidied all the same.
func TestForgetsThoughItMoves(t *testing.T) {
	t.Parallel()
	for _, busy := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			store := checkpointtest.New()
			settle(t, open1(t, store), numbered(0, 1000)...)
			few := names(numbered(0, 900))
			for range 6 * 26 {
				s := open1(t, store)
				for range 3 {
					time.Sleep(3 * time.Minute)
					list(t, s, nil, few...)
				}
				if busy {
					settle(t, s, numbered(0, 300)...) // which writes a head
				}
				time.Sleep(time.Minute)
			}
			if n := open1(t, store).Len(); n != 900 {
				t.Errorf("busy %v: %d names", busy, n)
			}
		})
	}
}

// TestReturnIsHandedOver: that a name is back is written at once; otherwise the next owner would count on from before.
func TestReturnIsHandedOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := checkpointtest.New()
		s := open1(t, store)
		batch := numbered(0, 1000)
		settle(t, s, batch...)
		all, few := names(batch), names(batch[:900])
		list(t, s, nil, few...)
		time.Sleep(time.Hour)
		list(t, s, nil, few...) // writes what is gone
		time.Sleep(22 * time.Hour)
		list(t, s, nil, all...)
		s = open1(t, store)
		for range 6 {
			time.Sleep(time.Hour)
			list(t, s, nil, few...)
		}
		if s.Len() != 1000 {
			t.Fatalf("%d names: forgotten 6 h after they were there", s.Len())
		}
	})
}

// TestListingsThatProveNothing: an empty one, one that was not ended, one with far fewer names while one of them is there.
func TestListingsThatProveNothing(t *testing.T) {
	t.Parallel()
	broken := errors.New("permission denied")
	for what, look := range map[string]func(s *State, all []string){
		"empty": func(s *State, _ []string) { list(t, s, nil) },
		"not ended": func(s *State, all []string) {
			l := s.Begin()
			for _, n := range all[:90] {
				l.Saw(n)
			}
		},
		"a name is there": func(s *State, all []string) {
			list(t, s, func(_ context.Context, name string) (bool, error) { return name < all[70], nil }, all[:60]...)
		},
		"a name cannot be looked for": func(s *State, all []string) {
			list(t, s, func(context.Context, string) (bool, error) { return true, broken }, all[:60]...)
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := open1(t, checkpointtest.New())
			batch := numbered(0, 100)
			settle(t, s, batch...)
			list(t, s, nil, names(batch)...)
			for range 50 {
				time.Sleep(time.Hour)
				look(s, names(batch))
			}
			if s.Len() != 100 {
				t.Errorf("%s: %d names are left", what, s.Len())
			}
		})
	}
}

// TestProbesConfirm: a listing with far fewer names counts when those that are looked for are gone, a few of many.
func TestProbesConfirm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open1(t, checkpointtest.New())
		batch := numbered(0, 1000)
		settle(t, s, batch...)
		list(t, s, nil, names(batch)...)
		asked := map[string]bool{}
		for range 26 {
			list(t, s, func(_ context.Context, name string) (bool, error) { asked[name] = true; return true, nil }, "other")
			time.Sleep(time.Hour)
		}
		if len(asked) < probes/2 || len(asked) > probes || s.Len() != 0 {
			t.Errorf("%d names looked for, %d left", len(asked), s.Len())
		}
	})
}

// TestBackWhileForgotten: a name that comes back while the store is told to forget it stays known.
func TestBackWhileForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := checkpointtest.New()
		s := open1(t, store)
		batch := numbered(0, 1000)
		settle(t, s, batch...)
		few := names(batch[:900])
		for range 3 {
			list(t, s, nil, few...)
			time.Sleep(8*time.Hour - time.Second)
		}
		time.Sleep(time.Minute)
		name := batch[950].Name
		store.Plan(func(call string) checkpointtest.Fault {
			if call == "save" && s.mu.TryLock() { // as the goroutine that lists would
				s.mu.Unlock()
				s.Begin().Saw(name)
			}
			return checkpointtest.Fault{}
		})
		list(t, s, nil, few...)
		store.Plan(nil)
		if _, ok := s.Look(name); !ok || s.Len() != 901 {
			t.Fatalf("known: %v, %d names", ok, s.Len())
		}
		list(t, s, nil, append(few, name)...)
		same(t, "the store", contents(t, store), inMemory(t, s))
	})
}

// TestTidyCosts: listings without news write nothing, and a Tidy does not wait for a Settle.
func TestTidyCosts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := checkpointtest.New()
		s := open1(t, store)
		batch := numbered(0, 1000)
		settle(t, s, batch...)
		list(t, s, nil, names(batch)...)
		time.Sleep(time.Hour)
		list(t, s, nil, names(batch)...) // the head learns how many files there are
		before, _ := store.Saves()
		for range 1000 {
			time.Sleep(time.Minute)
			list(t, s, nil, names(batch)...)
		}
		if after, _ := store.Saves(); after != before {
			t.Errorf("%d writes for listings without news", after-before)
		}
		s.writing <- struct{}{}
		time.Sleep(time.Hour)
		list(t, s, nil, names(batch[:900])...)
		<-s.writing
		if after, _ := store.Saves(); after != before {
			t.Error("wrote beside a Settle")
		}
	})
}
