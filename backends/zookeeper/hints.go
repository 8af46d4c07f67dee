package zookeeper

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/rebalancer-go/rebalancer/backends"
)

// watched is an armed watch.
type watched struct {
	mzxid int64
	fired <-chan zk.Event
}

// Listen watches the znode of an address, which it makes when it is not there. The client library sets watches again when it
// connects again, in requests of at most 128 KB, and ZooKeeper then tells what was missed.
func (h *session) Listen(ctx context.Context, address string, hint func()) error {
	if err := errors.Join(h.s.open(), ctx.Err()); err != nil {
		return err
	}
	w, err := h.watch(ctx, address)
	if errors.Is(err, errOver) {
		if h.s.open() != nil {
			return backends.ErrClosed
		}
		h.lost()
		return backends.ErrSessionLost
	}
	if err != nil {
		return h.s.wrap(err)
	}
	h.s.background(func() { h.listen(ctx, w, address, hint) })
	return nil
}

// watch arms a watch.
func (h *session) watch(ctx context.Context, address string) (watched, error) {
	path := h.dir.hint(address)
	for {
		if h.over() {
			return watched{}, errOver
		}
		w, err := ask(ctx, h.via(), func(c *zk.Conn) (watched, error) {
			_, stat, fired, err := c.GetW(path)
			if err != nil {
				return watched{}, err
			}
			return watched{stat.Mzxid, fired}, nil
		})
		if !errors.Is(err, zk.ErrNoNode) {
			return w, err
		}
		if err := h.via().make(ctx, path); err != nil {
			return watched{}, err
		}
	}
}

// listen hints after each change, once the watch is armed again, until ctx or the session ends.
func (h *session) listen(ctx context.Context, w watched, address string, hint func()) {
	both, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(h.ctx, cancel)()
	for {
		select {
		case <-w.fired:
		case <-both.Done():
			return
		}
		next, err := h.watch(both, address)
		if both.Err() != nil {
			return
		}
		if err != nil {
			if pause(both, 100*time.Millisecond) != nil || errors.Is(err, errOver) {
				return
			}
			closed := make(chan zk.Event)
			close(closed)
			w.fired = closed // once more
			continue
		}
		changed := next.mzxid != w.mzxid
		w = next
		if changed {
			hint()
		}
	}
}
