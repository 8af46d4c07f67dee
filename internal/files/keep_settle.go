package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/internal/files/seen"
	"github.com/rebalancer-go/rebalancer/sources"
)

// isAbsent looks for one name.
func (r *Reader) isAbsent(ctx context.Context, name string) (bool, error) {
	_, err := r.place.Stat(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return false, err
}

// kept is a settlement that has to be remembered.
type kept struct {
	i int // in the call
	f *file
	x seen.Settlement
}

// settleKept settles where files stay: what became of all of them is one write to the store, and they are let go of after it.
func (r *Reader) settleKept(ctx context.Context, s []sources.Settlement) map[int]error {
	all := make([]*kept, len(s))
	failed := r.settleEach(s, func(i int) (err error) {
		all[i], err = r.keepOne(ctx, &s[i], i)
		return err
	})
	var batch []seen.Settlement
	for _, k := range all {
		if k != nil {
			batch = append(batch, k.x)
		}
	}
	r.mu.Lock()
	state := r.keep.state
	r.mu.Unlock()
	var err error
	if len(batch) > 0 {
		err = state.Settle(ctx, batch)
	}
	for _, k := range all {
		if k == nil {
			continue
		}
		if err != nil && s[k.i].Outcome != sources.Release { // that it was tried before can be forgotten
			failed[k.i] = r.settleError(s[k.i].Message, err)
		} else {
			r.release(&s[k.i], k)
		}
		r.settledOnce(k.f)
	}
	return failed
}

// keepOne does what is to be done before a settlement is remembered. It returns nil when there is nothing to remember, and the
// settlement is then at its end.
func (r *Reader) keepOne(ctx context.Context, s *sources.Settlement, i int) (*kept, error) {
	attempt := func(f *file) int { return max(f.attempt, s.Message.Attempt) } // the runtime counts its retries there
	switch {
	case s.Outcome == sources.Done && r.opt.Keep, s.Outcome == sources.Reject && r.opt.FailedKeep, s.Outcome == sources.Retry:
	case s.Outcome == sources.Release && s.Message != nil:
	default:
		return nil, r.settleOne(ctx, s)
	}
	f, err := r.inSettlement(s.Message)
	if f == nil {
		return nil, err
	}
	k := &kept{i: i, f: f, x: seen.Settlement{Name: f.name, Record: seen.Record{ID: r.keep.identity(f)}}}
	if err := k.x.Check(); err != nil { // or it would fail those of the whole call
		r.settledOnce(f)
		return nil, err
	}
	switch s.Outcome {
	case sources.Done:
		k.x.Outcome = seen.Done
		err = r.tagAll(ctx, f, r.opt.SuccessTag)
	case sources.Reject:
		k.x.Outcome = seen.Failed
		err = r.giveUp(ctx, f, attempt(f), s.Err)
	case sources.Retry:
		k.x.Attempts, k.x.Next = uint32(attempt(f)), time.Now().Add(s.Delay).UnixMilli()
	case sources.Release:
		if attempt(f) == 1 {
			r.settledOnce(f)
			return nil, r.settleOne(ctx, s)
		}
		k.x.Attempts = uint32(attempt(f) - 1)
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		r.settledOnce(f)
		return nil, err
	}
	return k, nil
}

// giveUp does what is to be done for a file that stays though it failed, before that is remembered.
func (r *Reader) giveUp(ctx context.Context, f *file, attempts int, why error) error {
	r.opt.Logger.Warn("file is given up; it stays where it is", "resource", r.resource, "file", f.name, "attempts", attempts, "reason", why)
	return r.tagAll(ctx, f, r.opt.FailedTag)
}

// rejectKept gives up a file that was not handed out.
func (r *Reader) rejectKept(ctx context.Context, f *file, why error) error {
	if err := r.giveUp(ctx, f, f.attempt, why); err != nil {
		return err
	}
	x := seen.Settlement{Name: f.name, Record: seen.Record{ID: r.keep.identity(f), Outcome: seen.Failed}}
	if err := r.keep.state.Settle(ctx, []seen.Settlement{x}); err != nil {
		return err
	}
	r.settledInRound(f.name)
	return nil
}

// release lets go of a file whose outcome is remembered.
func (r *Reader) release(s *sources.Settlement, k *kept) {
	switch s.Outcome {
	case sources.Done, sources.Reject:
		r.settledInRound(k.f.name)
		r.forget(s.Message, k.f)
	case sources.Retry:
		r.giveBack(s.Message, k.f, int(k.x.Attempts)+1, s.Delay)
	case sources.Release:
		r.giveBack(s.Message, k.f, int(k.x.Attempts)+1, 0)
	}
}

// tagAll tags the files of a message. One that is not there any more, or is another one, needs no tag.
func (r *Reader) tagAll(ctx context.Context, f *file, tag Label) error {
	if tag == (Label{}) {
		return nil
	}
	t, ok := r.place.(Tagger)
	if !ok {
		return fmt.Errorf("%T cannot tag", r.place)
	}
	for p := range f.parts() {
		err := t.Tag(ctx, p.at(), p.info, tag.Key, tag.Value)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, rebalancer.ErrChanged) {
			r.opt.Logger.Warn("file changed or vanished while it was worked; it is not tagged", "resource", r.resource, "file", p.name)
			continue
		}
		if err != nil {
			return fmt.Errorf("tag %q: %w", p.name, err)
		}
	}
	return nil
}
