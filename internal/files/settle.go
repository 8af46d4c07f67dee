package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources"
)

// spares bounds the names that are tried for a file that is moved.
const spares = 100

// Settle carries out the outcomes one after the other; what failed stays in hand.
func (r *Reader) Settle(ctx context.Context, s []sources.Settlement) error {
	select {
	case r.settling <- struct{}{}:
		defer func() { <-r.settling }()
	case <-r.ctx.Done():
		return fmt.Errorf("settle in %q: %w", r.resource, sources.ErrClosed)
	case <-ctx.Done():
		return ctx.Err()
	}
	both, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.settle, cancel)()
	if r.ctx.Err() != nil {
		return fmt.Errorf("settle in %q: %w", r.resource, sources.ErrClosed)
	}
	failed := map[int]error{}
	for i := range s {
		if err := r.settleOne(both, &s[i]); err != nil {
			failed[i] = fmt.Errorf("settle %s of %q: %w", label(s[i].Message), r.resource, err)
		}
	}
	if len(failed) > 0 {
		return &sources.SettleError{Failed: failed}
	}
	return nil
}

// label names a message in an error; there may be none.
func label(m *rebalancer.Message) string {
	if m == nil {
		return "no message"
	}
	return strconv.Quote(m.Key)
}

func (r *Reader) settleOne(ctx context.Context, s *sources.Settlement) error {
	r.mu.Lock()
	f := r.hand[s.Message]
	closed := r.closed
	r.mu.Unlock()
	if closed { // first: Close has emptied the hand
		return sources.ErrClosed
	}
	if f == nil {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	attempt := max(f.attempt, s.Message.Attempt) // the runtime counts its retries there
	switch s.Outcome {
	case sources.Done:
		if err := r.done(ctx, f); err != nil {
			return err
		}
		r.forget(s.Message, f)
	case sources.Reject:
		if err := r.reject(ctx, f, attempt, s.Err); err != nil {
			return err
		}
		r.forget(s.Message, f)
	case sources.Release:
		r.giveBack(s.Message, f, attempt, 0)
	case sources.Retry:
		r.giveBack(s.Message, f, attempt+1, s.Delay)
	default:
		return fmt.Errorf("unknown outcome %d", s.Outcome)
	}
	return nil
}

// forget lets go of a file that is settled. If there is one of its name still, the next listing finds it as a new one.
func (r *Reader) forget(m *rebalancer.Message, f *file) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f.closeOpens()
	delete(r.hand, m)
	delete(r.owned, f.name)
}

func (r *Reader) giveBack(m *rebalancer.Message, f *file, attempt int, delay time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f.closeOpens()
	f.attempt = attempt
	f.due = time.Now().Add(delay)
	delete(r.hand, m)
	r.returned = append(r.returned, f)
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *Reader) done(ctx context.Context, f *file) error {
	var err error
	if r.opt.Success == "" {
		err = r.place.Remove(ctx, f.name, f.info)
	} else {
		_, err = r.move(ctx, f, r.opt.Success.At(time.Now()))
	}
	return r.after(ctx, f, err)
}

func (r *Reader) reject(ctx context.Context, f *file, attempt int, why error) error {
	if r.opt.Failed == "" {
		return sources.ErrNoDeadLetter
	}
	folder := r.opt.Failed.At(time.Now())
	as, err := r.move(ctx, f, folder)
	if err == nil {
		r.reason(ctx, f, folder, as, attempt, why)
	}
	return r.after(ctx, f, err)
}

// after judges how a file left: one that is not there any more is as good as settled, and one that was changed under
// its handler stays, to be delivered as what it is now. The done-file goes last: without its file it does no harm.
func (r *Reader) after(ctx context.Context, f *file, err error) error {
	switch {
	case errors.Is(err, rebalancer.ErrChanged):
		r.opt.Logger.Warn("file changed while it was worked; it stays and comes again", "resource", r.resource, "file", f.name)
		return nil
	case errors.Is(err, fs.ErrNotExist):
		r.opt.Logger.Warn("file vanished while it was worked", "resource", r.resource, "file", f.name)
	case err != nil:
		return err
	}
	if r.opt.DoneFile == "" {
		return nil
	}
	name := r.opt.doneFile(f.name)
	info, err := r.place.Stat(ctx, name)
	if err == nil {
		err = r.place.Remove(ctx, name, info)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.opt.Logger.Warn("done-file cannot be removed", "resource", r.resource, "file", name, "error", err)
	}
	return nil
}

// move moves a file into a folder under a name that is free there, and returns it.
func (r *Reader) move(ctx context.Context, f *file, folder string) (string, error) {
	return Free(f.name, func(as string) error { return r.place.Move(ctx, f.name, f.info, folder, as) })
}

// Free tries names until one is not taken.
func Free(name string, try func(as string) error) (string, error) {
	now := time.Now()
	var err error
	for n := range spares {
		as := spare(name, n, now)
		if err = try(as); !errors.Is(err, fs.ErrExist) {
			return as, err
		}
	}
	return "", fmt.Errorf("%d names are taken: %w", spares, err)
}

// reason writes beside a rejected file why it was rejected. The file is where it belongs already, so a failure here is
// only reported.
func (r *Reader) reason(ctx context.Context, f *file, folder, as string, attempt int, why error) {
	if why == nil {
		why = errors.New("no reason given")
	}
	text := fmt.Sprintf("resource: %q\nfile: %q\nsize: %d\nmodified: %s\nrejected: %s\nattempts: %d\nfence: %d\nerror: %v\n",
		r.resource, f.name, f.info.Size, f.info.ModTime.UTC().Format(time.RFC3339Nano),
		time.Now().UTC().Format(time.RFC3339Nano), attempt, r.fence, why)
	const suffix = ".reason.txt"
	stem := as
	if len(stem)+len(suffix) > MaxName {
		stem = Cut(stem, MaxName-len(suffix))
	}
	_, err := Free(stem+suffix, func(name string) error { return r.place.Put(ctx, folder, name, []byte(text)) })
	if err != nil {
		r.opt.Logger.Warn("reason of a rejected file cannot be written",
			"resource", r.resource, "file", as, "reason", why, "error", err)
	}
}
