package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/rebalancer-go/rebalancer/backends"
)

var errClosed = backends.ErrClosed

const (
	// controlTTL is the timeout of the store's own session, which binds nothing.
	controlTTL = 10 * time.Second
	// closeWait bounds what Close waits for goroutines of the client library.
	closeWait = 10 * time.Second
)

// Store is a place in a ZooKeeper ensemble. Make it with Open. It is safe for concurrent use.
type Store struct {
	cfg    config
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup // background work; Add with the lock held

	mu         sync.Mutex // held for moments only
	closed     bool
	links      map[*link]bool
	sessions   map[*session]bool
	control    *link   // for what is asked without a session, or after its end
	rec        *record // nil: not read yet
	generation int64   // grows with each incarnation that is noticed
	high       int64   // the newest transaction that was seen in it
	clock      clock

	counted atomic.Pointer[func(opcode int32)] // for tests: called for each request
}

var _ backends.Store = (*Store)(nil)

// Open reads a connect string of the form zk://[user:password@]host[:port],…[/chroot], and options; see them for what is left out. It does no
// I/O. All that is wrong is told at once, and wraps backends.ErrFatal.
func Open(connect string, opts ...Option) (*Store, error) {
	cfg, err := parse(connect, opts)
	if err != nil {
		return nil, err
	}
	s := &Store{cfg: cfg, links: map[*link]bool{}, sessions: map[*session]bool{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// Close gives all connections up. Sessions that were not closed end by their timeout.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	var links []*link
	for l := range s.links {
		links = append(links, l)
	}
	var sessions []*session
	for h := range s.sessions {
		sessions = append(sessions, h)
	}
	s.mu.Unlock()
	for _, h := range sessions {
		h.detach()
	}
	s.cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		var all sync.WaitGroup
		for _, l := range links {
			all.Go(l.abandon)
		}
		all.Wait()
		s.work.Wait()
	}()
	select {
	case <-done:
	case <-time.After(closeWait): // a hint that does not return, or a dialer
	}
	return nil
}

// background runs f unless the store is closed, which then waits for it.
func (s *Store) background(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.work.Go(f)
	}
}

// open is nil unless the store is closed.
func (s *Store) open() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return backends.ErrClosed
	}
	return nil
}

// Groups lists the groups that have an entry which is not bound to a session.
func (s *Store) Groups(ctx context.Context) ([]string, error) {
	v, err := s.controlled(ctx)
	if err != nil {
		return nil, s.wrap(err)
	}
	if _, err := s.look(ctx, v); err != nil {
		return nil, s.wrap(err)
	}
	names, err := v.children(ctx, s.cfg.root+"/g")
	if err != nil {
		return nil, s.wrap(err)
	}
	var groups []string
	for _, name := range names {
		group, ok := unescape(name)
		if !ok {
			continue
		}
		free, err := v.hasUnbound(ctx, s.group(group))
		if err != nil {
			return nil, s.wrap(err)
		}
		if free {
			groups = append(groups, group)
		}
	}
	slices.Sort(groups)
	return groups, nil
}

func (s *Store) group(name string) groupDir { return groupDir(s.cfg.root + "/g/" + escape(name)) }

// controlled gives the store's own connection. One whose session has ended, or which the servers refuse because they have seen less,
// is replaced.
func (s *Store) controlled(ctx context.Context) (via, error) {
	for {
		if err := ctx.Err(); err != nil {
			return via{}, err
		}
		if err := s.open(); err != nil {
			return via{}, err
		}
		s.mu.Lock()
		l := s.control
		s.mu.Unlock()
		if l == nil {
			fresh, err := s.newLink(controlTTL)
			if err != nil {
				return via{}, err
			}
			s.mu.Lock()
			if s.control == nil {
				s.control = fresh
				l = fresh
			} else {
				l = s.control
			}
			s.mu.Unlock()
			if l != fresh {
				s.background(fresh.abandon)
			}
		}
		err := l.ready(ctx)
		if err == nil {
			return via{l, l.ready}, nil
		}
		if !errors.Is(err, errOver) && !errors.Is(err, errBehind) {
			return via{}, err
		}
		s.mu.Lock()
		if s.control == l {
			s.control = nil
		}
		s.mu.Unlock()
		s.background(l.abandon)
	}
}

// wrap says which place an error is about and what to do; errors that no retry heals get ErrFatal.
func (s *Store) wrap(err error) error {
	switch {
	case err == nil, errors.Is(err, backends.ErrClosed), errors.Is(err, backends.ErrSessionLost), errors.Is(err, backends.ErrInvalid):
		return err
	case s.open() != nil:
		return backends.ErrClosed
	case errors.Is(err, backends.ErrFatal):
	case errors.Is(err, zk.ErrNoAuth), errors.Is(err, zk.ErrAuthFailed):
		who := "without a digest"
		if s.cfg.user != "" {
			who = fmt.Sprintf("as digest user %q", s.cfg.user)
		}
		err = fmt.Errorf("%w: ZooKeeper gives no right to this %s; look at the user, the password and the ACL of what is there: %w", backends.ErrFatal, who, err)
	case errors.Is(err, zk.ErrInvalidACL):
		err = fmt.Errorf("%w: ZooKeeper does not take the ACL, or this user: %w", backends.ErrFatal, err)
	}
	return fmt.Errorf("zookeeper store %s: %w", &s.cfg, err)
}
