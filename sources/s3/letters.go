package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/internal/files"
	"github.com/rebalancer-go/rebalancer/sources"
)

// letters reads notifications and hands out the objects that they tell of.
type letters struct {
	n        *Notifications
	queue    sources.Reader
	resource string

	settling chan struct{} // of capacity 1: held by Settle, and by Close

	// Of Fetch alone.
	raw   []*rebalancer.Message // not looked at yet
	over  []sources.Settlement  // notifications without objects, to be settled
	ready []*rebalancer.Message // not handed out yet
	out   []*rebalancer.Message

	mu     sync.Mutex
	closed bool
	hand   map[*rebalancer.Message]*delivery
}

// letter is a notification whose objects are in hand, or ready.
type letter struct {
	message *rebalancer.Message
	left    int // objects that are not settled
	sum     sources.Settlement
}

// delivery is an object in hand.
type delivery struct {
	letter *letter
	name   string
	info   files.Info
	opens  []io.Closer
	over   bool // it is not in hand any more
}

// end closes what handlers left open, and keeps them from opening more; letters.mu is held.
func (d *delivery) end() {
	d.over = true
	for _, c := range d.opens {
		_ = c.Close()
	}
}

func newLetters(n *Notifications, queue sources.Reader, c *rebalancer.Claim) *letters {
	return &letters{n: n, queue: queue, resource: c.Resource, hand: map[*rebalancer.Message]*delivery{}, settling: make(chan struct{}, 1)}
}

// Fetch returns objects of which notifications tell and which are there.
func (r *letters) Fetch(ctx context.Context, max int) ([]*rebalancer.Message, error) {
	for {
		r.mu.Lock()
		closed := r.closed
		r.mu.Unlock()
		if closed {
			return nil, fmt.Errorf("s3: fetch from %q: %w", r.resource, sources.ErrClosed)
		}
		if len(r.ready) > 0 && max > 0 {
			k := min(max, len(r.ready))
			r.out = append(r.out[:0], r.ready[:k]...)
			r.ready = slices.Delete(r.ready, 0, k)
			return r.out, nil
		}
		if err := r.settleOver(ctx); err != nil {
			return nil, err
		}
		if len(r.raw) == 0 {
			ms, err := r.queue.Fetch(ctx, max)
			if err != nil {
				return nil, err
			}
			r.raw = slices.Clone(ms)
		}
		if err := r.unfold(ctx); err != nil && len(r.ready) == 0 {
			return nil, fmt.Errorf("s3: fetch from %q: %w", r.resource, err)
		}
	}
}

// Keep is that of the queue's Reader; what is in hand here is in hand there.
func (r *letters) Keep() bool {
	k, ok := r.queue.(sources.Keeper)
	return ok && k.Keep()
}

// unfold makes messages of notifications, in their order. One whose objects cannot be looked at stays raw, with those behind it.
func (r *letters) unfold(ctx context.Context) error {
	looks := r.looks(ctx)
	for i, m := range r.raw {
		objects, err := looks[i].objects, looks[i].err
		if err == nil {
			err = r.held(objects)
		}
		var bad *unreadableError
		var later *laterError
		switch {
		case errors.As(err, &bad):
			r.over = append(r.over, sources.Settlement{Message: m, Outcome: sources.Reject, Err: bad.err})
		case errors.As(err, &later):
			r.over = append(r.over, sources.Settlement{Message: m, Outcome: sources.Retry, Delay: laterBy, Err: err})
		case err != nil:
			r.raw = r.raw[i:]
			return err
		case len(objects) == 0:
			r.over = append(r.over, sources.Settlement{Message: m, Outcome: sources.Done})
		default:
			r.take(m, objects)
		}
	}
	r.raw = nil
	return nil
}

// take makes the messages of a notification.
func (r *letters) take(m *rebalancer.Message, objects []delivery) {
	l := &letter{message: m, left: len(objects)}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range objects {
		d := &objects[i]
		d.letter = l
		o := &rebalancer.Message{
			Resource: m.Resource, ID: fmt.Sprintf("%s@%d-%d-%s", d.name, d.info.Size, d.info.ModTime.UnixNano(), d.info.Tag), Key: d.name,
			Size: d.info.Size, Headers: m.Headers, Attempt: m.Attempt, Published: d.info.ModTime, Fence: m.Fence, Native: d.info.Native,
			Stream: func(ctx context.Context) (io.ReadCloser, error) { return r.open(ctx, d) },
		}
		r.hand[o] = d
		r.ready = append(r.ready, o)
	}
}

func (r *letters) open(ctx context.Context, d *delivery) (io.ReadCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c, err := r.n.place.Open(ctx, d.name, d.info)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: %w", rebalancer.ErrChanged, err)
	}
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if d.over { // meanwhile: nobody would close it
		_ = c.Close()
		return nil, fmt.Errorf("s3: open %q: it is not in hand any more: %w", d.name, fs.ErrClosed)
	}
	d.opens = append(d.opens, c)
	return c, nil
}

// settleOver settles what has no objects. What cannot be rejected stays in hand: nothing is dropped silently.
func (r *letters) settleOver(ctx context.Context) error {
	if len(r.over) == 0 {
		return nil
	}
	err := r.queue.Settle(ctx, r.over)
	failed, whole := split(err)
	var again []sources.Settlement
	for i, s := range r.over {
		if s.Outcome == sources.Reject {
			r.n.place.source.options.Logger.Warn("notification cannot be read", "resource", r.resource, "id", s.Message.ID, "error", s.Err, "rejected", failed[i] == nil && whole == nil)
		}
		one := errors.Join(failed[i], whole)
		if one != nil && !errors.Is(one, sources.ErrNoDeadLetter) && !errors.Is(one, sources.ErrRedelivered) {
			again = append(again, s)
		}
	}
	if r.over = again; len(again) > 0 {
		return fmt.Errorf("s3: fetch from %q: notifications without objects cannot be settled: %w", r.resource, err)
	}
	return nil
}

// split takes an error of Settle apart: of single settlements, or of the whole.
func split(err error) (failed map[int]error, whole error) {
	var some *sources.SettleError
	if errors.As(err, &some) {
		return some.Failed, nil
	}
	return nil, err
}

// Settle settles objects, and notifications with the last of theirs.
func (r *letters) Settle(ctx context.Context, s []sources.Settlement) error {
	select {
	case r.settling <- struct{}{}:
		defer func() { <-r.settling }()
	case <-ctx.Done():
		return ctx.Err()
	}
	worked, err := r.worked(s)
	if err != nil {
		return err
	}
	errs := make([]error, len(s))
	sideBySide(len(worked), func(k int) {
		i := worked[k]
		errs[i] = r.dispose(ctx, s[i].Message, s[i].Outcome)
	})
	failed := map[int]error{}
	var sums []sources.Settlement
	var last []int // of s, for each of sums
	for _, i := range worked {
		if errors.Is(errs[i], sources.ErrClosed) {
			return errs[i]
		}
		if errs[i] != nil {
			failed[i] = errs[i]
			continue
		}
		if sum, all := r.add(s[i].Message, &s[i]); all {
			sums, last = append(sums, sum), append(last, i)
			continue
		}
		r.forget(s[i].Message)
	}
	if len(sums) > 0 {
		some, whole := split(r.queue.Settle(ctx, sums))
		for k, i := range last {
			if err := errors.Join(some[k], whole); err != nil {
				failed[i] = err
				continue
			}
			r.forget(s[i].Message)
		}
	}
	if len(failed) > 0 {
		return &sources.SettleError{Failed: failed}
	}
	return nil
}

// worked are those of s that are in hand, each once.
func (r *letters) worked(s []sources.Settlement) ([]int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, r.ended("settle")
	}
	var all []int
	for i := range s {
		if r.hand[s[i].Message] != nil && !slices.ContainsFunc(all, func(j int) bool { return s[j].Message == s[i].Message }) {
			all = append(all, i)
		}
	}
	return all, nil
}

func (r *letters) ended(what string) error {
	return fmt.Errorf("s3: %s in %q: %w", what, r.resource, sources.ErrClosed)
}

// dispose does with an object that is worked what is to become of it.
func (r *letters) dispose(ctx context.Context, m *rebalancer.Message, o sources.Outcome) error {
	r.mu.Lock()
	d, closed := r.hand[m], r.closed
	r.mu.Unlock()
	if closed || d == nil {
		return r.ended("settle")
	}
	if o != sources.Done || r.n.leave {
		return nil
	}
	p, err := r.n.place, error(nil)
	if r.n.folder {
		folder := p.source.options.Success.At(time.Now())
		_, err = files.Free(d.name, func(as string) error { return p.Move(ctx, d.name, d.info, folder, as) })
	} else {
		err = p.Remove(ctx, d.name, d.info)
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, rebalancer.ErrChanged) { // another notification tells of what it is now
		p.source.options.Logger.Warn("object changed or vanished while it was worked", "resource", r.resource, "file", d.name)
		return nil
	}
	return err
}

// add adds an outcome to those of its notification; the worst counts. all: it is the last.
func (r *letters) add(m *rebalancer.Message, s *sources.Settlement) (sum sources.Settlement, all bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.hand[m]
	if d == nil { // Close was faster
		return sum, false
	}
	l := d.letter
	sum = l.sum
	sum.Message = l.message
	sum.Outcome = max(sum.Outcome, s.Outcome) // Done, Release, Retry, Reject
	sum.Delay = max(sum.Delay, s.Delay)
	sum.Err = errors.Join(sum.Err, s.Err)
	l.message.Attempt = max(l.message.Attempt, s.Message.Attempt)
	if l.left == 1 {
		return sum, true // it may be passed again: nothing is noted yet
	}
	l.left--
	l.sum = sum
	return sum, false
}

func (r *letters) forget(m *rebalancer.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if d := r.hand[m]; d != nil { // else Close was faster
		d.end()
	}
	delete(r.hand, m)
}

// Close waits for the objects that are being settled, so that nothing is deleted or moved after it, and gives back the notifications of what is not.
func (r *letters) Close(ctx context.Context) error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	var err error
	select {
	case r.settling <- struct{}{}:
		defer func() { <-r.settling }()
	case <-ctx.Done():
		err = fmt.Errorf("s3: close %q while objects are settled: %w", r.resource, ctx.Err())
	}
	r.mu.Lock()
	for _, d := range r.hand {
		d.end()
	}
	clear(r.hand)
	r.mu.Unlock()
	return errors.Join(err, r.queue.Close(ctx))
}
