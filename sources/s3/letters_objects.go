package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
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
	if r.holds(name, info.Tag) {
		return nil, &laterError{fmt.Errorf("object %q is worked by now: another notification told of it", name)}
	}
	return &delivery{name: name, info: info}, nil
}

// holds tells whether an object is in hand: notifications come more than once, and one object is worked once at a time.
func (r *letters) holds(name, tag string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range r.hand { // any
		if d.name == name && d.info.Tag == tag {
			return true
		}
	}
	return false
}
