package seen

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rebalancer-go/rebalancer"
)

const (
	writeTries = 4
	chunksOnce = 4 // chunks of one transaction: 256 KB
	triedMost  = 4 // rewrites whose end is unknown
)

// Settle remembers outcomes. When it returns nil the store has them; after an error it may or may not, and they may be passed
// again. Of two settlements of one name the later counts. It fails with ErrFull when there is no room for all, with ErrLost when
// the claim does not stand, and with ErrStale, for good, when another State was opened.
func (s *State) Settle(ctx context.Context, batch []Settlement) error {
	if len(batch) == 0 {
		return nil
	}
	for i := range batch {
		if err := batch[i].Check(); err != nil {
			return s.wrap(err)
		}
	}
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.unlock()
	if err := s.pace(ctx, len(batch)); err != nil {
		return err
	}
	return s.write(ctx, func() error { return s.settle(ctx, batch) })
}

// Check says why a settlement cannot be remembered; nil: it can.
func (x *Settlement) Check() error {
	if len(x.Name) == 0 || len(x.Name) > maxName || x.Outcome > Failed {
		return fmt.Errorf("a name of %d bytes with outcome %d cannot be remembered: it must have 1 to %d bytes", len(x.Name), x.Outcome, maxName)
	}
	return nil
}

// Err says why nothing can be written any more: another State of the resource was opened. nil: it can.
func (s *State) Err() error {
	select {
	case s.writing <- struct{}{}:
		defer s.unlock()
		return s.broken
	default:
		return nil // somebody writes, and will see
	}
}

// write calls one that writes until it is not in the way of an earlier write of ours.
func (s *State) write(ctx context.Context, one func() error) error {
	s.lastPut = time.Now()
	var err error
	for range writeTries {
		if err = s.resolve(ctx); err != nil {
			break
		}
		if err = one(); !errors.Is(err, rebalancer.ErrStale) {
			break
		}
	}
	return s.wrap(err)
}

// resolve learns what the store has when that is not certain.
func (s *State) resolve(ctx context.Context) error {
	if s.broken != nil || !s.unsure {
		return s.broken
	}
	now, err := s.cp.LoadEntries(ctx, keyHead, keyJournal)
	if err != nil {
		return err
	}
	h, err := parseHead(now[keyHead].Value)
	if err != nil {
		return err
	}
	w := s.tried[h.seq]
	if h.nonce != s.nonce || h.seq != s.applied && w == nil {
		s.broken = fmt.Errorf("it was taken over by another reader of the resource, or the store lost data: %w", rebalancer.ErrStale)
		return s.broken
	}
	if h.seq != s.applied {
		s.adopt(w, h.seq)
	}
	s.headV, s.jourV, s.unsure = now[keyHead].Version, now[keyJournal].Version, false
	return nil
}

// save is one transaction. When it fails, the store may have it all the same, now or later.
func (s *State) save(ctx context.Context, journal bool, changes map[string][]byte) (map[string]int64, error) {
	checks := map[string]int64{keyHead: s.headV}
	if journal {
		checks[keyJournal] = s.jourV
	}
	versions, err := s.cp.SaveIf(ctx, checks, changes)
	if err != nil {
		s.unsure = true
	}
	return versions, err
}

func (s *State) settle(ctx context.Context, batch []Settlement) error {
	puts, grown := s.merged(batch)
	if s.Len()+grown > s.opt.Most {
		return s.Full()
	}
	if len(puts) > journalMost {
		return s.rewrite(ctx, s.lastTidy, puts, keepAll, untouched)
	}
	list := newList()
	for _, e := range puts {
		list.add(e)
	}
	if list.size() > maxValue {
		return s.rewrite(ctx, s.lastTidy, puts, keepAll, untouched)
	}
	versions, err := s.save(ctx, true, map[string][]byte{keyJournal: list.bytes()})
	if err != nil {
		return err
	}
	s.jourV = versions[keyJournal]
	clear(s.tried) // they rely on the journal before
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range puts {
		e.saved = e.gone
		s.put(e)
		s.noteReturn(e)
	}
	return nil
}

func keepAll(*entry) bool  { return false }
func untouched(*leaf) bool { return false }

// merged is the journal with a batch and with what returned, in order, as entries of their own; and how many names are new.
func (s *State) merged(batch []Settlement) (puts []*entry, grown int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[string]*entry, len(s.young)+len(batch))
	for name, e := range s.young {
		twin := *e
		all[name] = &twin
	}
	for name := range s.returned {
		twin := *s.find(name)
		all[name] = &twin
	}
	for _, x := range batch {
		e := &entry{name: strings.Clone(x.Name), Record: x.Record, seen: s.listing}
		e.Next = max(0, e.Next)
		if e.Outcome != Waiting {
			e.Attempts, e.Next = 0, 0
		}
		if old := s.find(x.Name); old != nil {
			e.presence(old)
		} else if all[x.Name] == nil {
			grown++
		}
		all[x.Name] = e
	}
	puts = slices.Collect(maps.Values(all))
	slices.SortFunc(puts, func(a, b *entry) int { return strings.Compare(a.name, b.name) })
	return puts, grown
}

// noteReturn notes whether the store has a name as missing that is there; mu is held.
func (s *State) noteReturn(e *entry) {
	if e.saved != 0 && e.gone == 0 {
		s.returned[e.name] = true
	} else {
		delete(s.returned, e.name)
	}
}

// rewrite puts the journal and more into new chunks, and then into force.
func (s *State) rewrite(ctx context.Context, tidied time.Time, puts []*entry, drop func(*entry) bool, touch func(*leaf) bool) error {
	if len(s.tried) >= triedMost {
		s.broken = fmt.Errorf("%d rewrites have had no answer: %w", triedMost, rebalancer.ErrStale)
		return s.broken
	}
	s.mu.Lock()
	w := rewriteLeaves(s.leaves, change{puts, drop, touch})
	if len(w.leaves) > s.chunksMost { // many are far from full
		w = rewriteLeaves(s.leaves, change{puts, drop, func(*leaf) bool { return true }})
	}
	h := head{fence: s.opt.Fence, nonce: s.nonce, names: uint32(s.names), listed: uint32(tidied.Unix())}
	s.mu.Unlock()
	if len(w.leaves) > s.chunksMost {
		return s.Full()
	}
	orphans := slices.Clone(s.trash)
	for _, l := range w.fresh {
		l.number = s.next
		s.next++
	}
	h.next = s.next
	for _, l := range w.leaves {
		h.chunks = append(h.chunks, chunkRef{l.number, uint32(len(l.entries)), l.sum})
	}
	s.seq++
	h.seq = s.seq
	value := h.bytes()
	if err := s.putChunks(ctx, w); err != nil {
		return err
	}
	changes := map[string][]byte{keyHead: value}
	if s.jourV != 0 {
		changes[keyJournal] = nil
	}
	for _, n := range slices.Concat(orphans, w.gone) {
		changes[chunkKey(n)] = nil
	}
	w.values = nil
	s.tried[s.seq] = w
	versions, err := s.save(ctx, true, changes)
	if err != nil {
		return err
	}
	s.headV, s.jourV, s.trash, s.listedOld = versions[keyHead], 0, nil, int(h.names)
	s.adopt(w, s.seq)
	return nil
}

// putChunks writes the new chunks. No head has them yet.
func (s *State) putChunks(ctx context.Context, w *rewrite) error {
	for from := 0; from < len(w.fresh); from += chunksOnce {
		changes := map[string][]byte{}
		for i := from; i < min(from+chunksOnce, len(w.fresh)); i++ {
			s.trash = append(s.trash, w.fresh[i].number)
			changes[chunkKey(w.fresh[i].number)] = w.values[i]
		}
		if _, err := s.save(ctx, false, changes); err != nil {
			return err
		}
	}
	return nil
}

// adopt makes a rewrite that the store has the state in memory.
func (s *State) adopt(w *rewrite, seq uint64) {
	kept := make(map[uint32]bool, len(w.fresh))
	for _, l := range w.fresh {
		kept[l.number] = true
	}
	// Chunks of other rewrites may be there still. Some are perhaps deleted with this head; the next one deletes them again.
	s.trash = slices.DeleteFunc(s.trash, func(n uint32) bool { return kept[n] })
	s.applied = seq
	clear(s.tried)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range w.fresh {
		for i := range l.entries {
			e := &l.entries[i]
			if old := s.find(e.name); old != nil {
				e.presence(old)
			}
			s.noteReturn(e)
		}
	}
	before := s.table
	s.table = table{leaves: w.leaves, young: map[string]*entry{}}
	for _, l := range w.leaves {
		s.count += len(l.entries)
	}
	for name := range s.returned {
		if s.find(name) == nil { // it came back while it was being forgotten
			e := *before.find(name)
			s.put(&e)
		}
	}
}
