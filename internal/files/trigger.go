package files

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"time"

	"github.com/rebalancer-go/rebalancer"
)

// round is what a trigger file has released: the files that were there when it was found.
type round struct {
	trigger Info
	left    map[string]bool   // not settled yet; guarded by Reader.mu
	claimed map[string]string // the claimed names that listings had of files, by their own
}

// released leaves of a listing what a trigger file has released. The trigger goes when all of that is settled, never
// before: a crash then finds it again, and what is left with it. A file is out of the round only when it was settled here
// or a look has shown that it is gone, not because a listing lacks it.
func (r *Reader) released(ctx context.Context, l *listing) ([]candidate, error) {
	all := l.candidates()
	if r.round != nil {
		maps.Copy(r.round.claimed, l.claimed)
		if err := r.endRound(ctx, l, all); err != nil {
			return nil, err
		}
	}
	if r.round == nil {
		if !l.trigger {
			return nil, nil
		}
		info, err := r.place.Stat(ctx, r.opt.Trigger)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if !r.triggered(info) {
			return nil, nil
		}
		// A listing may have passed the place of a file that came before the trigger, so one is read that begins after it.
		again := listing{opt: &r.opt, keep: r.keep}
		if err := r.place.List(ctx, again.add); err != nil {
			return nil, err
		}
		*l = again
		all = l.candidates()
		r.begin(info, all)
		maps.Copy(r.round.claimed, l.claimed)
	}
	return r.inRound(all), nil
}

// triggered tells whether the trigger file is as stable as its files must be: one that is written in two steps is not two of
// them.
func (r *Reader) triggered(info Info) bool {
	now := time.Now()
	if r.trigger == nil || !r.trigger.info.Same(info) {
		r.trigger = &awaited{info: info, stable: now.Add(r.opt.StableFor)}
	}
	if now.Before(r.trigger.stable) {
		return false
	}
	r.trigger = nil
	return true
}

// awaited is a trigger file that must not change for a while.
type awaited struct {
	info   Info
	stable time.Time
}

// begin begins a round with what is there and what is in hand.
func (r *Reader) begin(trigger Info, all []candidate) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.round = &round{trigger: trigger, left: make(map[string]bool, len(all)), claimed: map[string]string{}}
	for _, c := range all {
		r.round.left[c.Name] = true
	}
	for name := range r.owned {
		r.round.left[name] = true
	}
}

func (r *Reader) inRound(all []candidate) []candidate {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := all[:0]
	for _, c := range all {
		if r.round.left[c.Name] {
			kept = append(kept, c)
		}
	}
	return kept
}

// endRound ends the round when nothing is left of it, or when its trigger was taken away by others.
func (r *Reader) endRound(ctx context.Context, l *listing, all []candidate) error {
	if !l.trigger {
		if _, err := r.place.Stat(ctx, r.opt.Trigger); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		r.setRound(nil)
		return nil
	}
	if err := r.dropMissing(ctx, all); err != nil {
		return err
	}
	r.mu.Lock()
	left := len(r.round.left)
	r.mu.Unlock()
	if left > 0 {
		return nil
	}
	done := r.act()
	if done == nil {
		return ctx.Err()
	}
	defer done()
	err := r.place.Remove(ctx, r.opt.Trigger, r.round.trigger)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, rebalancer.ErrChanged) {
		return err
	}
	l.trigger = err != nil && errors.Is(err, rebalancer.ErrChanged) // another one: the next round
	r.setRound(nil)
	return nil
}

func (r *Reader) setRound(x *round) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.round = x
}

// dropMissing looks at what the listing lacks.
func (r *Reader) dropMissing(ctx context.Context, all []candidate) error {
	here := make(map[string]bool, len(all))
	for _, c := range all {
		here[c.Name] = true
	}
	var missing []string
	r.mu.Lock()
	for name := range r.round.left {
		if !here[name] && r.owned[name] == nil {
			missing = append(missing, name)
		}
	}
	r.mu.Unlock()
	for _, name := range missing {
		gone, err := r.isGone(ctx, name)
		if err != nil {
			return err
		}
		if gone {
			r.settledInRound(name)
		}
	}
	return ctx.Err()
}

// isGone looks for a file of the round under its own name, and under the one that it was claimed by.
func (r *Reader) isGone(ctx context.Context, name string) (bool, error) {
	at := []string{name}
	if r.opt.Claim {
		at = append(at, r.opt.claims.as(name))
		if as := r.round.claimed[name]; as != "" {
			at = append(at, as)
		}
	}
	for _, n := range at {
		if gone, err := r.isAbsent(ctx, n); !gone || err != nil {
			return false, err
		}
	}
	return true, nil
}

func (r *Reader) settledInRound(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.round != nil {
		delete(r.round.left, name)
	}
}
