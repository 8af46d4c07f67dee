package seen

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/internal/checkpointtest"
)

// once makes the n-th save from now on (from 0) end in a fault.
func once(store *checkpointtest.Store, n int, f checkpointtest.Fault) {
	store.Plan(func(call string) checkpointtest.Fault {
		if call != "save" {
			return checkpointtest.Fault{}
		}
		n--
		if n == -1 {
			return f
		}
		return checkpointtest.Fault{}
	})
}

// TestLateJournal: a write of the journal that arrives after the next one does not undo that.
func TestLateJournal(t *testing.T) {
	t.Parallel()
	store := checkpointtest.New()
	s := open1(t, store)
	once(store, 0, checkpointtest.Fault{Late: true})
	wantErr(t, "the first", s.Settle(t.Context(), numbered(0, 5)), checkpointtest.ErrInjected)
	settle(t, s, numbered(5, 5)...)
	store.Arrive()
	same(t, "the store", contents(t, store), inMemory(t, s))
}

// TestLateRewrite: a rewrite that arrives after a journal that does not know of it does not take that away.
func TestLateRewrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := checkpointtest.New()
		s := open1(t, store)
		settle(t, s, numbered(0, 200)...)
		few := names(numbered(0, 190))
		time.Sleep(tidyEvery)
		for range 2 * triedMost { // which would be too many without an answer, but there are answers in between
			once(store, 1, checkpointtest.Fault{Late: true}) // the head, after a chunk
			l := s.Begin()
			for _, n := range few {
				l.Saw(n)
			}
			if err := l.Complete(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			wantErr(t, "Tidy", s.Tidy(t.Context()), checkpointtest.ErrInjected)
			settle(t, s, numbered(200, 5)...)
			store.Arrive()
			got := store.Values()
			if st, err := parse(got); err != nil || st.count != 205 {
				t.Fatalf("the store has %d names, %v", st.count, err)
			}
			if s.Err() != nil {
				t.Fatal(s.Err())
			}
		}
		settle(t, s, numbered(300, 300)...)
		same(t, "the store", contents(t, store), inMemory(t, s))
	})
}

// TestLostAnswersOfRewrites: each is found out, however many there are.
func TestLostAnswersOfRewrites(t *testing.T) {
	t.Parallel()
	store := checkpointtest.New()
	s := open1(t, store)
	for i := range 3 * triedMost {
		batch := numbered(i*300, 300)
		once(store, 1, checkpointtest.Fault{After: true})
		wantErr(t, "a rewrite", s.Settle(t.Context(), batch), checkpointtest.ErrInjected)
		settle(t, s, batch...)
		once(store, 0, checkpointtest.Fault{After: true})
		batch = batch[:5]
		wantErr(t, "a journal", s.Settle(t.Context(), batch), checkpointtest.ErrInjected)
		settle(t, s, batch...)
	}
	settle(t, s, numbered(9000, 300)...)
	same(t, "the store", contents(t, store), inMemory(t, s))
}

// TestRewritesWithoutAnswer: those whose end cannot be known are not kept for ever: the state has to be opened again.
func TestRewritesWithoutAnswer(t *testing.T) {
	t.Parallel()
	store := checkpointtest.New()
	s := open1(t, store)
	settle(t, s, numbered(0, 100)...)
	for range triedMost {
		once(store, 1, checkpointtest.Fault{Late: true})
		wantErr(t, "a rewrite", s.Settle(t.Context(), numbered(100, 300)), checkpointtest.ErrInjected)
	}
	store.Plan(nil)
	if err := s.Settle(t.Context(), numbered(100, 300)); err == nil || s.Err() == nil {
		t.Errorf("one more: %v, %v", err, s.Err())
	}
	next := open1(t, store)
	store.Arrive()
	settle(t, next, numbered(100, 300)...)
	same(t, "the store", contents(t, store), inMemory(t, next))
}

// TestBackWhileWritten: a name that comes back while its absence is written is there, and the store learns it.
func TestBackWhileWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := checkpointtest.New()
		s := open1(t, store)
		batch := numbered(0, 1000)
		settle(t, s, batch...)
		name := batch[950].Name
		list(t, s, nil, names(batch[:900])...)
		time.Sleep(tidyEvery)
		store.Plan(func(call string) checkpointtest.Fault {
			if call == "save" && s.mu.TryLock() {
				s.mu.Unlock()
				s.Begin().Saw(name)
			}
			return checkpointtest.Fault{}
		})
		list(t, s, nil, names(batch[:900])...)
		store.Plan(nil)
		if e := s.find(name); e.gone != 0 || e.saved == 0 {
			t.Fatalf("missing since %d, as the store has it since %d", e.gone, e.saved)
		}
		list(t, s, nil, append(names(batch[:900]), name)...)
		if e := open1(t, store).find(name); e.gone != 0 {
			t.Fatalf("the store has it as missing since %d", e.gone)
		}
	})
}

// TestLostAnswerOfATidy: what was found out about a rewrite holds for the writes after it.
func TestLostAnswerOfATidy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := checkpointtest.New()
		s := open1(t, store)
		settle(t, s, numbered(0, 200)...)
		time.Sleep(tidyEvery)
		once(store, 1, checkpointtest.Fault{After: true})
		l := s.Begin()
		l.Saw("other")
		if err := l.Complete(t.Context(), func(context.Context, string) (bool, error) { return true, nil }); err != nil {
			t.Fatal(err)
		}
		wantErr(t, "Tidy", s.Tidy(t.Context()), checkpointtest.ErrInjected)
		for i := range 3 {
			settle(t, s, numbered(200, 1+i)...)
			once(store, 0, checkpointtest.Fault{After: true})
			wantErr(t, "a journal", s.Settle(t.Context(), numbered(300, 1+i)), checkpointtest.ErrInjected)
			settle(t, s, numbered(300, 1+i)...)
		}
		same(t, "the store", contents(t, store), inMemory(t, s))
	})
}

// TestTidyIsRare: names that go one after the other cost a write in a quarter of an hour, not one each.
func TestTidyIsRare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := checkpointtest.New()
		s := open1(t, store)
		all := numbered(0, 1000)
		settle(t, s, all...)
		before, _ := store.Saves()
		for minute := range 60 {
			time.Sleep(time.Minute)
			list(t, s, nil, names(all[minute+1:])...)
		}
		if after, _ := store.Saves(); after-before < 2 || after-before > 8 { // a chunk and the head each time
			t.Errorf("%d writes in an hour", after-before)
		}
	})
}

// torn is a checkpoint whose first reading lacks a chunk, as one beside a write can: it is no snapshot.
type torn struct {
	*checkpointtest.Checkpoint
	reads int
}

func (c *torn) LoadEntries(ctx context.Context, keys ...string) (map[string]rebalancer.CheckpointEntry, error) {
	all, err := c.Checkpoint.LoadEntries(ctx, keys...)
	if c.reads++; c.reads == 1 {
		for k := range all {
			if strings.HasPrefix(k, prefixChunk) {
				delete(all, k)
			}
		}
	}
	return all, err
}

func TestTornReading(t *testing.T) {
	t.Parallel()
	store := checkpointtest.New()
	settle(t, open1(t, store), numbered(0, 300)...)
	cp := &torn{Checkpoint: store.Claim()}
	s, err := Open(t.Context(), cp, Options{Fence: cp.Fence()})
	if err != nil || s.Len() != 300 || cp.reads != 2 {
		t.Fatalf("after %d readings: %v", cp.reads, err)
	}
}
