package zookeeper

import (
	"context"
	"errors"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/rebalancer-go/rebalancer/backends"
)

// pipeline is how many requests are under way at once on one connection.
const pipeline = 128

// via is a connection to ask through, and what waits until it can be used.
type via struct {
	l     *link
	ready func(context.Context) error
}

// znode is what is at a path; there is false when there is nothing.
type znode struct {
	there bool
	data  []byte
	stat  zk.Stat
}

// ask makes a call that may be repeated, until it is answered.
func ask[T any](ctx context.Context, v via, f func(*zk.Conn) (T, error)) (T, error) {
	for {
		if err := v.ready(ctx); err != nil {
			return *new(T), err
		}
		value, err := call(ctx, v.l, f)
		if ctx.Err() != nil && err != nil {
			return value, ctx.Err()
		}
		if err == nil || !unanswered(err) {
			return value, err
		}
		if err := pause(ctx, 2*time.Millisecond); err != nil { // the link learns a moment later that the connection is gone
			return value, err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// get reads a znode.
func (v via) get(ctx context.Context, path string) (znode, error) {
	z, err := ask(ctx, v, func(c *zk.Conn) (znode, error) {
		data, stat, err := c.Get(path)
		if err != nil {
			return znode{}, err
		}
		return znode{true, data, *stat}, nil
	})
	if errors.Is(err, zk.ErrNoNode) {
		return znode{}, nil
	}
	return z, err
}

// stat reads a znode without its data.
func (v via) stat(ctx context.Context, path string) (znode, error) {
	return ask(ctx, v, func(c *zk.Conn) (znode, error) {
		there, stat, err := c.Exists(path)
		if err != nil || !there {
			return znode{}, err
		}
		return znode{there: true, stat: *stat}, nil
	})
}

// children lists the names below a znode; none when it is not there.
func (v via) children(ctx context.Context, path string) ([]string, error) {
	names, err := ask(ctx, v, func(c *zk.Conn) ([]string, error) {
		names, _, err := c.Children(path)
		return names, err
	})
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	return names, err
}

// set writes a znode that is there, whatever its version.
func (v via) set(ctx context.Context, path string, data []byte) (zk.Stat, error) {
	return ask(ctx, v, func(c *zk.Conn) (zk.Stat, error) {
		stat, err := c.Set(path, data, -1)
		if err != nil {
			return zk.Stat{}, err
		}
		return *stat, nil
	})
}

// make makes a znode, and those above it below the root, unless they are there.
func (v via) make(ctx context.Context, p string) error {
	_, err := ask(ctx, v, func(c *zk.Conn) (string, error) { return c.Create(p, nil, 0, v.l.s.cfg.acl) })
	switch {
	case errors.Is(err, zk.ErrNodeExists):
		return nil
	case errors.Is(err, zk.ErrNoNode) && p != v.l.s.cfg.root && p != "/":
		if err := v.make(ctx, path.Dir(p)); err != nil {
			return err
		}
		return v.make(ctx, p)
	}
	return err
}

// sync lets what is read after it be as new as what was acknowledged before it, to whomever.
func (v via) sync(ctx context.Context) error {
	_, err := ask(ctx, v, func(c *zk.Conn) (string, error) { return c.Sync(v.l.s.cfg.root) })
	return err
}

// each runs f for 0 to n−1, many at a time, until one fails.
func each(n int, f func(i int) error) error {
	if n == 1 {
		return f(0)
	}
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var wg sync.WaitGroup
	for range min(n, pipeline) {
		wg.Go(func() {
			for failed.Load() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := f(i); err != nil {
					failed.CompareAndSwap(nil, &err)
				}
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// getAll reads znodes.
func (v via) getAll(ctx context.Context, paths []string) ([]znode, error) {
	out := make([]znode, len(paths))
	return out, each(len(paths), func(i int) (err error) {
		out[i], err = v.get(ctx, paths[i])
		return err
	})
}

// statAll reads znodes without their data.
func (v via) statAll(ctx context.Context, paths []string) ([]znode, error) {
	out := make([]znode, len(paths))
	return out, each(len(paths), func(i int) (err error) {
		out[i], err = v.stat(ctx, paths[i])
		return err
	})
}

// listAll gives the paths of all that is directly below some znodes.
func (v via) listAll(ctx context.Context, dirs []string) ([]string, error) {
	names := make([][]string, len(dirs))
	err := each(len(dirs), func(i int) (err error) {
		names[i], err = v.children(ctx, dirs[i])
		return err
	})
	var paths []string
	for i, dir := range dirs {
		for _, name := range names[i] {
			paths = append(paths, dir+"/"+name)
		}
	}
	return paths, err
}

// op names an operation of a multi and what it is there for.
type op struct {
	request any
	guard   error // the result when it fails; nil: look again
}

// multi carries out all operations, or none and gives an error: with the first operation that failed, or with -1 when it was not answered,
// or refused as a whole. It is sent at most once. stat is of the last SetDataRequest.
func (v via) multi(ctx context.Context, ops []op) (stat *zk.Stat, failed int, err error) {
	requests := make([]any, len(ops))
	for i := range ops {
		requests[i] = ops[i].request
	}
	type answer struct {
		stat   *zk.Stat
		failed int
		why    error
	}
	a, err := call(ctx, v.l, func(c *zk.Conn) (answer, error) {
		responses, err := c.Multi(requests...)
		if err == nil {
			a := answer{failed: -1}
			for _, r := range responses {
				if r.Stat != nil {
					a.stat = r.Stat
				}
			}
			return a, nil
		}
		if unanswered(err) {
			return answer{}, err
		}
		for i, r := range responses {
			if r.Error != nil {
				return answer{failed: i, why: r.Error}, nil
			}
		}
		return answer{}, err
	})
	if err != nil {
		return nil, -1, err
	}
	return a.stat, a.failed, a.why
}

func check(path string, version int32) *zk.CheckVersionRequest {
	return &zk.CheckVersionRequest{Path: path, Version: version}
}

// guards are checked before all else in each transaction of a session, and in this order, since it decides what the node is told.
func (h *session) guards(incarnation string, bound bool) []op {
	ops := []op{{check(h.dir.alive(h.id), -1), backends.ErrSessionLost}}
	if bound {
		ops = append(ops, op{check(h.dir.allowed(h.id), -1), backends.ErrSuperseded})
	}
	return append(ops, op{check(h.s.incarnationPath(incarnation), -1), backends.ErrIncarnation})
}
