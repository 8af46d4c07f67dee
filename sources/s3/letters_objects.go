package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rebalancer-go/rebalancer"
)

// unreadableError says that no further try would help.
type unreadableError struct{ err error }

func (e *unreadableError) Error() string { return e.err.Error() }

// laterError says that a notification is to come again: what stands in its way concerns its objects alone.
type laterError struct{ err error }

func (e *laterError) Error() string { return e.err.Error() }

// laterBy is after how long.
const laterBy = time.Minute

// objects are those of a notification that are there, as they are by now: that there is another notification of what replaced one cannot be relied on.
func (r *letters) objects(ctx context.Context, m *rebalancer.Message) ([]delivery, error) {
	rc, err := m.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer rc.Close()
	text, err := io.ReadAll(io.LimitReader(rc, 1<<20))
	if err != nil {
		return nil, err
	}
	events, err := parseEvents(text)
	if err != nil {
		return nil, &unreadableError{err}
	}
	var all []delivery
	for _, e := range events {
		if bucket := r.n.place.source.Bucket; e.bucket != bucket {
			return nil, &unreadableError{fmt.Errorf("it tells of the bucket %q, and Config.Bucket is %q", e.bucket, bucket)}
		}
		d, err := r.object(ctx, e.key)
		if err != nil {
			return nil, err
		}
		if d != nil && !slices.ContainsFunc(all, func(o delivery) bool { return o.name == d.name }) {
			all = append(all, *d)
		}
	}
	return all, nil
}

// object looks at one object; nil: it is none that is to be worked now.
func (r *letters) object(ctx context.Context, key string) (*delivery, error) {
	log := r.n.place.source.options.Logger
	name, ours := r.n.isOurs(key, 1)
	if !ours {
		return nil, nil
	}
	info, err := r.n.place.Stat(ctx, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case errors.Is(err, errArchived):
		log.Warn("object is archived; the notification of its restoration brings it", "resource", r.resource, "file", name)
		return nil, nil
	case err != nil && passing(err):
		return nil, err
	case err != nil:
		log.Warn("object of a notification cannot be looked at; the notification comes again", "resource", r.resource, "file", name, "error", err)
		return nil, &laterError{err}
	}
	if name, ours = r.n.isOurs(key, info.Size); !ours {
		return nil, nil
	}
	if err := checkPath(name); err != nil { // as a Source, which would not deliver it either
		log.Warn("object has a name that leads elsewhere where it is taken for a path; it is left alone", "resource", r.resource, "file", name, "error", err)
		return nil, nil
	}
	return &delivery{name: name, info: info}, nil
}

// look is what was found of the objects of one notification.
type look struct {
	objects []delivery
	err     error
}

// looks looks at the objects of all raw notifications, those of several side by side. After one that failed no more are begun: what
// has failed is theirs too.
func (r *letters) looks(ctx context.Context) []look {
	all := make([]look, len(r.raw))
	var failed atomic.Pointer[look]
	sideBySide(len(all), func(i int) {
		if f := failed.Load(); f != nil {
			all[i] = *f
			return
		}
		all[i].objects, all[i].err = r.objects(ctx, r.raw[i])
		if err := all[i].err; err != nil && !errors.As(err, new(*unreadableError)) && !errors.As(err, new(*laterError)) {
			failed.Store(&all[i])
		}
	})
	return all
}

// sideBySide calls do for 0 to n-1, begun in that order, parallel at a time at most.
func sideBySide(n int, do func(i int)) {
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(n, parallel) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	workers.Wait()
}

// held is a laterError when one of the objects is in hand: notifications come more than once, and one object is worked once at a time.
func (r *letters) held(objects []delivery) error {
	if len(objects) == 0 {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range r.hand { // any
		for i := range objects {
			if o := &objects[i]; d.name == o.name && d.info.Tag == o.info.Tag {
				return &laterError{fmt.Errorf("object %q is worked by now: another notification told of it", o.name)}
			}
		}
	}
	return nil
}
