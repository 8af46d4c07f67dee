package s3

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/internal/readertest"
	"github.com/rebalancer-go/rebalancer/sources"
	"github.com/rebalancer-go/rebalancer/sources/memory"
	"github.com/rebalancer-go/rebalancer/sources/pickup"
)

// crowd lets no call return before as many as may are there, and counts how many were.
type crowd struct {
	Client
	looks, deletions gathering
}

type gathering struct {
	mu       sync.Mutex
	in, most int
	full     chan struct{}
}

func (g *gathering) enter(ctx context.Context) {
	g.mu.Lock()
	if g.in++; g.in == parallel && g.most < parallel {
		close(g.full)
	}
	g.most = max(g.most, g.in)
	g.mu.Unlock()
	select {
	case <-g.full:
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.in--
}

func (c *crowd) HeadObject(ctx context.Context, in *s3.HeadObjectInput, opts ...func(*s3.Options)) (*s3.HeadObjectOutput, error) {
	c.looks.enter(ctx)
	return c.Client.HeadObject(ctx, in, opts...)
}

func (c *crowd) DeleteObject(ctx context.Context, in *s3.DeleteObjectInput, opts ...func(*s3.Options)) (*s3.DeleteObjectOutput, error) {
	c.deletions.enter(ctx)
	return c.Client.DeleteObject(ctx, in, opts...)
}

// TestNotificationsSideBySide: objects are looked at and deleted several at a time, and come in the order of the queue.
func TestNotificationsSideBySide(t *testing.T) {
	t.Parallel()
	st, queues := newStub(t), memory.New()
	t.Cleanup(func() { _ = queues.Close() })
	var want []string
	for i := range 2*parallel + 1 {
		name := fmt.Sprintf("%02d", 99-i)
		want = append(want, name)
		st.put("in/"+name, name)
		if err := queues.Send("q", notice(record("ObjectCreated:Put", "bkt", "in/"+name, ""))); err != nil {
			t.Fatal(err)
		}
	}
	c := &crowd{Client: st.client(), looks: gathering{full: make(chan struct{})}, deletions: gathering{full: make(chan struct{})}}
	n := notifications(t, NotificationsConfig{Queues: queues, Client: c, Bucket: "bkt", Base: "in", OnSuccess: pickup.Delete(), Deletion: DeleteConditional})
	r, err := n.Open(t.Context(), claim("q"))
	if err != nil {
		t.Fatal(err)
	}
	ms := readertest.Fetch(t, r, len(want))
	if got := keysOf(ms); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	readertest.Settle(t, r, sources.Done, ms...)
	st.put("in/"+want[0], want[0])
	if _, err := ms[0].Open(t.Context()); !errors.Is(err, fs.ErrClosed) && !errors.Is(err, rebalancer.ErrChanged) { // nobody would close it
		t.Errorf("open of what is settled: %v", err)
	}
	st.set(func() { delete(st.objects, "in/"+want[0]) })
	if looks, deletions := c.looks.most, c.deletions.most; looks != parallel || deletions != parallel {
		t.Errorf("%d looks and %d deletions at once, want %d", looks, deletions, parallel)
	}
	if left := st.keys(); len(left) != 0 {
		t.Errorf("left are %q", left)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
