package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources"
)

// spares bounds the names that are tried for a file that is moved.
const spares = 100

// Settle carries out the outcomes, as many at once as the place takes; what failed stays in hand.
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
	settle := r.settleAll
	if r.keep != nil {
		settle = r.settleKept
	}
	if failed := settle(both, s); len(failed) > 0 {
		return &sources.SettleError{Failed: failed}
	}
	return nil
}

// settleAll settles several at once, where the place takes that. It returns what failed.
func (r *Reader) settleAll(ctx context.Context, s []sources.Settlement) map[int]error {
	return r.settleEach(s, func(i int) error { return r.settleOne(ctx, &s[i]) })
}

// settleEach calls one for each settlement, several at once where the place takes that. It returns what failed.
func (r *Reader) settleEach(s []sources.Settlement, one func(i int) error) map[int]error {
	errs := make([]error, len(s))
	var next atomic.Int64
	work := func() {
		for i := int(next.Add(1)) - 1; i < len(s); i = int(next.Add(1)) - 1 {
			errs[i] = r.settleError(s[i].Message, one(i))
		}
	}
	var workers sync.WaitGroup
	for range min(len(s), r.opt.Parallel) - 1 {
		workers.Go(work)
	}
	work()
	workers.Wait()
	failed := map[int]error{}
	for i, err := range errs {
		if err != nil {
			failed[i] = err
		}
	}
	return failed
}

func (r *Reader) settleError(m *rebalancer.Message, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("settle %s of %q: %w", label(m), r.resource, err)
}

// label names a message in an error; there may be none.
func label(m *rebalancer.Message) string {
	if m == nil {
		return "no message"
	}
	return strconv.Quote(m.Key)
}

func (r *Reader) settleOne(ctx context.Context, s *sources.Settlement) error {
	f, err := r.inSettlement(s.Message)
	if f == nil {
		return err
	}
	defer r.settledOnce(f)
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

// inSettlement takes a message that is in hand into its settlement, which settledOnce ends; nil for one that is not, and for the
// same one twice in one call.
func (r *Reader) inSettlement(m *rebalancer.Message) (*file, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed { // first: Close has emptied the hand
		return nil, sources.ErrClosed
	}
	f := r.hand[m]
	if f == nil || f.settling {
		return nil, nil
	}
	f.settling = true
	return f, nil
}

func (r *Reader) settledOnce(f *file) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f.settling = false
}

// forget lets go of a file that is settled. If there is one of its name still, the next listing finds it as a new one.
func (r *Reader) forget(m *rebalancer.Message, f *file) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f.closeOpens()
	delete(r.hand, m)
	delete(r.owned, f.name)
	delete(r.claimed, f)
	if r.left != nil {
		r.left[f.name] = true
	}
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
	folder := ""
	if r.opt.Success != "" {
		folder = r.opt.Success.At(time.Now())
	}
	_, err := r.dispose(ctx, f, folder)
	return r.after(ctx, f, folder, err)
}

func (r *Reader) reject(ctx context.Context, f *file, attempt int, why error) error {
	if r.opt.FailedKeep {
		return r.rejectKept(ctx, f, why)
	}
	if r.opt.Failed == "" {
		return sources.ErrNoDeadLetter
	}
	folder := r.opt.Failed.At(time.Now())
	as, err := r.dispose(ctx, f, folder)
	if err == nil {
		r.reason(ctx, f, folder, as, attempt, why)
	}
	return r.after(ctx, f, folder, err)
}

// dispose moves all files of a message into a folder, or deletes them when it is "", and returns the new name of the one
// that leads. That goes last: what a crash leaves of a set can be told by it. A set of which a file has changed stays as
// it is.
func (r *Reader) dispose(ctx context.Context, f *file, folder string) (as string, err error) {
	if len(f.more) > 0 {
		if err := r.unchanged(ctx, f); err != nil {
			return "", err
		}
	}
	for p := range f.parts() {
		if folder == "" {
			err = r.place.Remove(ctx, p.at(), p.info)
		} else {
			as, err = r.move(ctx, f, p, folder)
		}
		if err != nil && !(p != &f.part && errors.Is(err, fs.ErrNotExist)) {
			return as, err
		}
	}
	return as, nil
}

// unchanged fails with ErrChanged when a file of a set that is still there is another one by now.
func (r *Reader) unchanged(ctx context.Context, f *file) error {
	for p := range f.parts() {
		info, err := r.place.Stat(ctx, p.at())
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		case !info.Same(p.info):
			return fmt.Errorf("%q: %w", p.name, rebalancer.ErrChanged)
		}
	}
	return nil
}

// after judges how a file left: one that is not there any more is as good as settled, and one that was changed under
// its handler stays, to be delivered as what it is now.
func (r *Reader) after(ctx context.Context, f *file, folder string, err error) error {
	switch {
	case errors.Is(err, rebalancer.ErrChanged):
		r.opt.Logger.Warn("file changed while it was worked; it stays and comes again", "resource", r.resource, "file", f.name)
		return nil
	case errors.Is(err, fs.ErrNotExist):
		r.opt.Logger.Warn("file vanished while it was worked", "resource", r.resource, "file", f.name)
	case err != nil:
		return err
	}
	r.settledInRound(f.name)
	for i := range f.beside {
		r.leave(ctx, f, &f.beside[i], folder)
	}
	return nil
}

// leave takes away what stood beside a file, if it is what was there when the file was delivered: another one is that of the next
// file of the name. It goes last: its file without it would wait for ever, and a done-file that a crash leaves is older than
// the next file and does not release it.
func (r *Reader) leave(ctx context.Context, f *file, b *beside, folder string) {
	var err error
	if b.checksum && folder != "" {
		_, err = r.move(ctx, f, &b.part, folder)
	} else {
		err = r.place.Remove(ctx, b.name, b.info)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, rebalancer.ErrChanged) {
		r.opt.Logger.Warn("done-file or checksum file cannot be removed", "resource", r.resource, "file", b.name, "error", err)
	}
}

// move moves one of the files of f into a folder under a name that is free there and that the folder takes, and returns it.
func (r *Reader) move(ctx context.Context, f *file, p *part, folder string) (string, error) {
	try := func(as string) error { return r.place.Move(ctx, p.at(), p.info, folder, as) }
	as, err := f.mark.free(p.name, try)
	if errors.Is(err, ErrName) {
		if plain := Plain(p.name); plain != p.name {
			as, err = f.mark.free(plain, try)
		}
	}
	return as, err
}

// Free tries names until one is not taken.
func Free(name string, try func(as string) error) (string, error) { return new(mark).free(name, try) }

// mark is what the moved files of one message have in their names, so that they are found together: a file begins with what was
// free for the one before it.
type mark struct {
	at time.Time
	n  int
}

func (m *mark) free(name string, try func(as string) error) (string, error) {
	if m.at.IsZero() {
		m.at = time.Now()
	}
	var err error
	for ; m.n < spares; m.n++ {
		as := spare(name, m.n, m.at)
		if err = try(as); !errors.Is(err, fs.ErrExist) {
			return as, err
		}
	}
	*m = mark{} // the next try has another time
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
	dir, stem := path.Split(as)
	if len(stem)+len(suffix) > MaxName {
		stem = Cut(stem, MaxName-len(suffix))
	}
	_, err := Free(dir+stem+suffix, func(name string) error { return r.place.Put(ctx, folder, name, []byte(text)) })
	if err != nil {
		r.opt.Logger.Warn("reason of a rejected file cannot be written",
			"resource", r.resource, "file", as, "reason", why, "error", err)
	}
}
