package files

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/internal/files/seen"
)

const (
	// storeTimeout bounds what Fetch waits for the store.
	storeTimeout = 20 * time.Second
	// recheckShare bounds the part of the time between two listings that is spent on looking again at files that were worked.
	recheckShare = 20
	// recheckLeast and recheckMost are how many of them are looked at after each listing.
	recheckLeast, recheckMost = 8, statsPerPoll
)

// keeping is what a Reader knows of files that stay where they are after they were worked. A listing that tells what each file
// is (Entry.Info) needs no more: who was worked and is the same costs a look-up. A listing of names alone cannot tell a file
// from another one that took its name, so those that were worked are looked at again in turn, a few after each listing, and at
// once when a name was away in between.
type keeping struct {
	opt     *Options
	cp      rebalancer.Checkpoint
	conf    seen.Options
	state   *seen.State   // set by the first listing, before anything is in hand
	cost    time.Duration // of one look, on average
	gap     time.Duration // between the last two listings
	listing *seen.Listing
	back    map[string]bool // names that were missing before this listing
	turn    uint32          // which of the turns it is
	turns   uint32
	full    bool // the last Fetch failed for want of room
	short   bool // a file waits for room
	counted bool // room is that of the walk through the files that goes on
	room    int
	settled func(name string) // the round of a trigger file waits for it no longer; nil: there are none
}

func newKeeping(c *rebalancer.Claim, opt *Options, hurry <-chan struct{}) *keeping {
	return &keeping{opt: opt, cp: c.Checkpoint, conf: seen.Options{
		Resource: c.Resource, Fence: c.Fence, Hurry: hurry, Logger: opt.Logger,
	}}
}

// beginKept makes sure that it is known what was worked, and begins a listing.
func (r *Reader) beginKept(ctx context.Context) error {
	k := r.keep
	if k == nil {
		return nil
	}
	if k.state == nil {
		ctx, cancel := context.WithTimeout(ctx, storeTimeout)
		defer cancel()
		state, err := seen.Open(ctx, k.cp, k.conf)
		if err != nil {
			return err
		}
		r.mu.Lock() // for Settle
		k.state = state
		r.mu.Unlock()
	}
	if err := k.state.Err(); err != nil {
		return err
	}
	k.counted = false
	if r.opt.Trigger != "" {
		k.settled = r.settledInRound
	}
	k.listing, k.back = k.state.Begin(), nil
	most := recheckMost
	if k.cost > 0 {
		most = min(most, max(recheckLeast, int(k.gap/recheckShare/k.cost)))
	}
	k.turns = uint32(k.state.Len()/most) + 1
	k.turn = (k.turn + 1) % k.turns
	return nil
}

// saw notes that a listing has a name.
func (k *keeping) saw(name string) {
	if k == nil {
		return
	}
	if _, _, back := k.listing.Saw(name); back {
		if k.back == nil {
			k.back = map[string]bool{}
		}
		k.back[name] = true
	}
}

// worked reports whether nothing is to be done about what a listing offers.
func (k *keeping) worked(c candidate) bool {
	if k == nil {
		return false
	}
	rec, known := k.state.Look(c.Name)
	if !known || rec.Outcome == seen.Waiting {
		return false
	}
	parts := make([]part, 0, 1+len(c.more))
	for _, e := range append(c.more[:len(c.more):len(c.more)], c.Entry) {
		if e.Info == nil {
			return !k.back[c.Name] && !k.hasTurn(c.Name)
		}
		parts = append(parts, part{name: e.Name, info: *e.Info})
	}
	same := rec.ID == k.identity(&file{part: parts[len(parts)-1], more: parts[:len(parts)-1]})
	if same && k.settled != nil {
		k.settled(c.Name)
	}
	return same
}

// knows reports whether a name is no news.
func (k *keeping) knows(name string) bool {
	if k == nil {
		return false
	}
	_, known := k.state.Look(name)
	return known
}

// hasTurn reports whether a file that was worked is to be looked at again after this listing.
func (k *keeping) hasTurn(name string) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return h.Sum32()%k.turns == k.turn
}

// looked notes the cost of a look.
func (k *keeping) looked(start time.Time) {
	if k != nil {
		k.cost += (time.Since(start) - k.cost) / 16
	}
}

// pause notes how long it is to the next listing.
func (k *keeping) pause(gap time.Duration) {
	if k != nil {
		k.gap = gap
	}
}

// identity is what is remembered of the files of a message.
func (k *keeping) identity(f *file) uint64 {
	tag := k.tag(&f.part)
	for i := range f.more {
		m := &f.more[i]
		id := seen.Identity(m.info.Size, m.info.ModTime, k.tag(m))
		tag += "\x00" + m.name + "\x00" + string(binary.BigEndian.AppendUint64(nil, id))
	}
	return seen.Identity(f.info.Size, f.info.ModTime, tag)
}

func (k *keeping) tag(p *part) string {
	if k.opt.LocalTags {
		return ""
	}
	return p.info.Tag
}

// completeKept ends a listing that was read to its end.
func (r *Reader) completeKept(ctx context.Context) error {
	k := r.keep
	if k == nil {
		return nil
	}
	if err := k.listing.Complete(ctx, r.isAbsent); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	err := k.state.Tidy(ctx)
	if err == nil || errors.Is(err, rebalancer.ErrStale) || errors.Is(err, rebalancer.ErrLost) {
		return err
	}
	r.opt.Logger.Warn("what listings show of worked files cannot be stored; tried again later", "resource", r.resource, "error", err)
	return nil
}

// unworked judges a file that was looked at by what is known of it: one that was worked is not to be delivered, and one that
// failed not before its time.
func (r *Reader) unworked(f *file, v verdict) verdict {
	k := r.keep
	if k == nil || v == missing || !f.observed {
		return v
	}
	rec, known := k.state.Look(f.name)
	if !known || rec.ID != k.identity(f) {
		return r.fitting(f, v)
	}
	if rec.Outcome != seen.Waiting {
		r.settledInRound(f.name)
		return missing // as a message
	}
	f.attempt = max(f.attempt, int(rec.Attempts)+1)
	if next := time.UnixMilli(rec.Next); next.After(f.due) {
		f.due = next
	}
	if f.dueAt().After(time.Now()) {
		return notYet
	}
	return v
}

// fitting keeps a file back that is ready but could not be remembered when it is done, so that those after it that can be have their
// turn. It is looked at again as often as an idle place is listed.
func (r *Reader) fitting(f *file, v verdict) verdict {
	k := r.keep
	if v != ready || k.knows(f.name) {
		return v
	}
	if !k.counted {
		k.room, k.counted = r.freeRoom(), true
	}
	if k.room > 0 {
		k.room--
		return v
	}
	k.short = true
	f.due = time.Now().Add(r.opt.IdleInterval)
	return notYet
}

// freeRoom is how many files more can be handed out and remembered.
func (r *Reader) freeRoom() int {
	room := r.keep.state.Room()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.owned {
		if !r.keep.knows(f.name) {
			room--
		}
	}
	return room
}

// withRoom fails when there is nothing to deliver because files could not be remembered. Else it returns picks.
func (r *Reader) withRoom(picks []*file) ([]*file, error) {
	k := r.keep
	if k == nil {
		return picks, nil
	}
	k.counted, k.full = false, false
	if !k.short || len(picks) > 0 {
		return picks, nil
	}
	if k.full = r.freeRoom() <= 0; k.full {
		return nil, k.state.Full()
	}
	k.short = false
	return picks, nil
}

// Keep implements sources.Keeper: a new Reader would have no more room for files that stay.
func (r *Reader) Keep() bool { return r.keep != nil && r.keep.full }
