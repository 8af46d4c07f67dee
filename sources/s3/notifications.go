package s3

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources"
	"github.com/rebalancer-go/rebalancer/sources/pickup"
)

// NotificationsConfig says where notifications come from and what becomes of the objects that they tell of. Queues, Client and Bucket are
// required.
type NotificationsConfig struct {
	// Queues is the source of the notifications, such as one of SQS: its resources are the resources, and a notification is settled there when all its objects
	// are. Whoever made it closes it, after all Readers. Required.
	Queues sources.Source
	// Client and Bucket are as in Config; Bucket is a plain name, as notifications have it. Required.
	Client Client
	Bucket string
	// Base is the prefix below which objects are messages; notifications of others are dropped. Defaults to none: the whole bucket.
	Base string
	// OnSuccess is what becomes of an object whose handler succeeded, before its notification is settled: pickup.Delete() or pickup.MoveTo(folder), as in
	// Config, if it is unchanged; what is written to that folder is no message. Defaults to nothing: the object stays, and need not be remembered, as its
	// notification is gone. OnFailure is that of Queues, whose dead letters are notifications.
	OnSuccess pickup.Action
	// Deletion is as in Config.
	Deletion Deletion
	// Logger is told what nobody else learns, such as a notification that nobody can read. Defaults to none.
	Logger *slog.Logger
}

// Notifications is a source whose messages are objects that notifications tell of, without a listing: at a request for each object instead of
// one for a thousand keys each time, whether there are objects or not. Objects that were there before notifications were set up are not found;
// work them once with a Source.
//
// A notification becomes a message for each of its objects, their keys decoded. One that tells of a test, of deletions or of other things than new, copied or
// restored objects is settled and passed over, and so is what vanished since, or is archived. What replaced an object is delivered as what it is by then. A
// notification whose object cannot be looked at, or is in hand by another one, comes again after a minute, which may cost it a receive. What
// cannot be read, or tells of another bucket, is rejected, and where there are no dead letters it stays in hand and is reported. At most 8 objects
// of a resource are looked at, and settled, at a time. Order is that of the queue. A message's Resource, Attempt and Headers are those of the notification; the rest is as with a Source, Key being the key below Base.
//
// It implements sources.Source and, as far as Queues does, sources.Lagger, sources.Discoverer, sources.Prefetcher and sources.Holder.
type Notifications struct {
	queues sources.Source
	place  *place
	leave  bool // objects stay
	folder bool // they are moved
}

var (
	_ sources.Source     = (*Notifications)(nil)
	_ sources.Lagger     = (*Notifications)(nil)
	_ sources.Discoverer = (*Notifications)(nil)
	_ sources.Prefetcher = (*Notifications)(nil)
	_ sources.Holder     = (*Notifications)(nil)
	_ sources.Keeper     = (*letters)(nil)
)

// NewNotifications checks c, all violations at once. It does no I/O.
func NewNotifications(c NotificationsConfig) (*Notifications, error) {
	var errs []error
	if c.Queues == nil {
		errs = append(errs, errors.New("s3: Queues is nil, must be a source of notifications"))
	}
	if strings.HasPrefix(c.Bucket, "arn:") {
		errs = append(errs, fmt.Errorf("s3: Bucket is %q, must be a plain name, as notifications have it", c.Bucket))
	}
	n := &Notifications{queues: c.Queues, leave: c.OnSuccess == (pickup.Action{}), folder: c.OnSuccess.Kind() == pickup.Moves}
	policy := pickup.Policy{OnSuccess: c.OnSuccess, Logger: c.Logger, Ignore: []string{}}
	switch c.OnSuccess.Kind() {
	case pickup.None:
		policy.OnSuccess = pickup.Delete()
	case pickup.Deletes, pickup.Moves:
	default:
		errs = append(errs, fmt.Errorf("s3: OnSuccess is %v, must be Delete(), MoveTo(folder) or nothing, which keeps the object", c.OnSuccess))
		policy.OnSuccess = pickup.Delete()
	}
	s, err := New(Config{Policy: policy, Client: c.Client, Bucket: c.Bucket, Base: c.Base, Subtree: true, Deletion: c.Deletion})
	if err = errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	n.place = &place{source: s, resource: "."}
	return n, nil
}

// Names is that of Queues.
func (n *Notifications) Names(resources []string) ([]string, error) { return n.queues.Names(resources) }

// DeadLetters is that of Queues.
func (n *Notifications) DeadLetters() bool { return n.queues.DeadLetters() }

// Prefetch is that of Queues.
func (n *Notifications) Prefetch() bool {
	p, ok := n.queues.(sources.Prefetcher)
	return !ok || p.Prefetch()
}

// HeldFor is that of Queues.
func (n *Notifications) HeldFor() time.Duration {
	if h, ok := n.queues.(sources.Holder); ok {
		return h.HeldFor()
	}
	return 0
}

// Lag is that of Queues: it counts notifications. It fails with errors.ErrUnsupported where Queues has none.
func (n *Notifications) Lag(ctx context.Context, resource string) (int64, error) {
	if l, ok := n.queues.(sources.Lagger); ok {
		return l.Lag(ctx, resource)
	}
	return 0, fmt.Errorf("s3: lag of %q: the source of the notifications cannot count: %w", resource, errors.ErrUnsupported)
}

// Discover is that of Queues. It fails with errors.ErrUnsupported where Queues has none.
func (n *Notifications) Discover(ctx context.Context, pattern string) ([]string, error) {
	if d, ok := n.queues.(sources.Discoverer); ok {
		return d.Discover(ctx, pattern)
	}
	return nil, fmt.Errorf("s3: discover %q: the source of the notifications cannot: %w", pattern, errors.ErrUnsupported)
}

// Open opens the queue. It fails where what Deletion says about the store is not so.
func (n *Notifications) Open(ctx context.Context, c *rebalancer.Claim) (sources.Reader, error) {
	r, err := n.queues.Open(ctx, c)
	if err != nil {
		return nil, err
	}
	if !n.leave {
		if err := n.place.source.probe(ctx, n.place.source.prefix(".")); err != nil {
			return nil, fmt.Errorf("s3: open %q: %w", c.Resource, errors.Join(err, r.Close(ctx)))
		}
	}
	return newLetters(n, r, c), nil
}

// isOurs tells whether an object can be a message by its key, and its name.
func (n *Notifications) isOurs(key string, size int64) (string, bool) {
	s := n.place.source
	name, ok := strings.CutPrefix(key, s.prefix("."))
	if !ok || !s.isFile(name, size) {
		return "", false
	}
	dir, _, deep := cutLast(name)
	return name, !deep || !s.isMoved(dir, s.prefix(".")+dir)
}

// cutLast cuts a name at its last slash.
func cutLast(name string) (dir, last string, ok bool) {
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		return name[:i], name[i+1:], true
	}
	return "", name, false
}
