package sqlite

import (
	"context"
	"crypto/rand"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/sqlstore"
)

const (
	shortestTTL = time.Second
	// longestWait bounds the wait for a lock of another program when the context does not.
	longestWait = 30 * time.Second
	// openWait bounds Open, which has no context.
	openWait = 10 * time.Second
	// leastOpenWait is by how much a call may outlast its context when it finds the file replaced.
	leastOpenWait = 500 * time.Millisecond
)

// Store is an open file. Make it with Open. It is safe for concurrent use.
type Store struct {
	path   string
	origin string // who wrote a hint
	wall   func() int64
	tune   []string // statements for each new connection; for tests

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup // the goroutine that looks for hints
	ears   ears
	proofs *proofs

	reopening chan struct{} // held by who opens the file again
	mu        sync.Mutex    // held for moments only
	file      *file
	closed    bool
}

var _ backends.Store = (*Store)(nil)

// Option changes how a file is opened.
type Option func(*Store)

// Open opens the file, and makes it when it is not there; its folder must exist. Errors that no retry can heal (not a
// database, read-only, a network file system) wrap backends.ErrFatal.
func Open(path string, opts ...Option) (*Store, error) {
	abs, err := resolve(path)
	if err != nil {
		return nil, fmt.Errorf("sqlite store %s: %w", path, err)
	}
	s := &Store{
		path:      abs,
		origin:    rand.Text(),
		wall:      func() int64 { return time.Now().UnixMicro() },
		reopening: make(chan struct{}, 1),
	}
	for _, o := range opts {
		o(s)
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	ctx, cancel := context.WithTimeout(s.ctx, openWait)
	defer cancel()
	if err := checkPlace(s.path); err != nil {
		s.cancel()
		return nil, s.wrap(err)
	}
	if s.file, err = s.open(ctx, true); err != nil {
		s.cancel()
		return nil, s.wrap(err)
	}
	s.proofs = openProofs(s.path)
	s.work.Go(s.watch)
	return s, nil
}

// resolve follows symbolic links, so that one file has one path. The file itself may be missing.
func resolve(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		return real, nil
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(abs))
	if err != nil {
		return "", fmt.Errorf("the folder must exist: %w", err)
	}
	return filepath.Join(dir, filepath.Base(abs)), nil
}

// Open opens a session.
func (s *Store) Open(ctx context.Context, o backends.SessionOptions) (backends.Session, error) {
	return sqlstore.Open(ctx, s.base(), o)
}

// Groups lists the groups that have an entry which is not bound to a session.
func (s *Store) Groups(ctx context.Context) ([]string, error) {
	return sqlstore.Groups(ctx, s.base())
}

// Close closes the file. Sessions that were not closed end by their TTL, and until then are not taken for those of a dead process.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	f := s.file
	s.file = nil
	s.mu.Unlock()
	s.cancel()
	s.work.Wait()
	s.ears.clear()
	s.proofs.close()
	if f == nil {
		return nil
	}
	s.release(f) // the reference that the store itself has
	select {
	case <-f.done:
	case <-time.After(openWait): // a call hangs in the kernel: it closes the file when it returns
	}
	return nil
}

// acquire gives the open file, after it was compared with what the path names. Give it back with release.
func (s *Store) acquire(ctx context.Context) (*file, error) {
	if f, err := s.current(); f != nil || err != nil {
		return f, err
	}
	select {
	case s.reopening <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-s.ctx.Done():
		return nil, backends.ErrClosed
	}
	defer func() { <-s.reopening }()
	if f, err := s.current(); f != nil || err != nil {
		return f, err // somebody else did it
	}
	patience, cancel := s.patience(ctx)
	defer cancel()
	opened, err := s.open(patience, false) // while the old file is open, so its lock on the folder is held
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		s.release(opened)
		return nil, backends.ErrClosed
	}
	old := s.file
	s.file = opened
	opened.users++
	s.mu.Unlock()
	if old != nil {
		s.release(old)
	}
	return opened, nil
}

// patience ends with the deadline of ctx, but leaves enough time to open a file: else a caller of short deadlines never would.
func (s *Store) patience(ctx context.Context) (context.Context, context.CancelFunc) {
	left := openWait
	if deadline, ok := ctx.Deadline(); ok {
		left = min(openWait, max(time.Until(deadline), leastOpenWait))
	}
	return context.WithTimeout(s.ctx, left)
}

// current is the open file if it is still the one at the path, else nil. A file that has shrunk lost data that the next calls
// may not need: SQLite would notice at one call, and not at another.
func (s *Store) current() (*file, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, backends.ErrClosed
	}
	f := s.file
	if f == nil || f.stale {
		return nil, nil
	}
	id, size, err := measure(s.path)
	if err != nil || id != f.id {
		f.stale = true
		return nil, nil
	}
	if size < f.size {
		return nil, fmt.Errorf("%w: the file was cut short under the store, from %d bytes or more to %d; stop the nodes, "+
			"and restore it or delete it with the -wal and -shm files", backends.ErrFatal, f.size, size)
	}
	f.size = size
	f.users++
	return f, nil
}

func (s *Store) release(f *file) {
	s.mu.Lock()
	f.users--
	last := f.users == 0
	s.mu.Unlock()
	if last {
		f.close()
	}
}

// forget makes the next call open the file again.
func (s *Store) forget(f *file) {
	s.mu.Lock()
	f.stale = true
	s.mu.Unlock()
}
