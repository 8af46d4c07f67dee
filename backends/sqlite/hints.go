package sqlite

import (
	"context"
	"sync"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/sqlstore"
)

const (
	lookEvery = 25 * time.Millisecond
	keepHints = 60 * 1_000_000 // µs
)

// ears are the listeners by group and address.
type ears struct {
	mu   sync.Mutex
	at   map[[2]string]map[*listener]bool
	quit bool
}

type listener struct {
	ctx   context.Context
	ended <-chan struct{}
	hint  func()
	stop  func() bool
}

// Listen keeps a listener until ctx or the session ends.
func (b base) Listen(ctx context.Context, ended <-chan struct{}, group, address string, hint func()) error {
	l, at := &listener{ctx: ctx, ended: ended, hint: hint}, [2]string{group, address}
	e := &b.s.ears
	e.mu.Lock()
	defer e.mu.Unlock()
	if b.s.ctx.Err() != nil || e.quit {
		return backends.ErrClosed
	}
	if e.at == nil {
		e.at = map[[2]string]map[*listener]bool{}
	}
	if e.at[at] == nil {
		e.at[at] = map[*listener]bool{}
	}
	e.at[at][l] = true
	l.stop = context.AfterFunc(ctx, func() { e.drop(at, l) })
	return nil
}

func (e *ears) drop(at [2]string, l *listener) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.at[at], l)
	if len(e.at[at]) == 0 {
		delete(e.at, at)
	}
}

func (e *ears) clear() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.quit = true
	for _, ls := range e.at {
		for l := range ls {
			l.stop()
		}
	}
	e.at = nil
}

func (e *ears) none() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.at) == 0
}

// wake calls the listeners at one place, without the lock.
func (e *ears) wake(at [2]string) {
	e.mu.Lock()
	var due []*listener
	for l := range e.at[at] {
		select {
		case <-l.ended:
			l.stop()
			delete(e.at[at], l)
		default:
			due = append(due, l)
		}
	}
	e.mu.Unlock()
	for _, l := range due {
		if l.ctx.Err() == nil {
			l.hint()
		}
	}
}

// Wake writes the hints for other processes, and removes old ones.
func (b base) Wake(t *sqlstore.Tx, group string, addresses []string) error {
	for _, a := range addresses {
		t.Add(sqlstore.Statement{SQL: `INSERT INTO hints (grp, address, origin, at) VALUES (?, ?, ?, ?)`,
			Args: []any{[]byte(group), []byte(a), b.s.origin, t.Now}})
	}
	if len(addresses) > 0 {
		t.Add(sqlstore.Statement{SQL: `DELETE FROM hints WHERE seq IN (SELECT seq FROM hints ORDER BY seq LIMIT ?) AND at < ?`,
			Args: []any{int64(2*len(addresses) + 16), t.Now - keepHints}})
	}
	return nil
}

// Woken hints at once to listeners of this process.
func (b base) Woken(group string, addresses []string) {
	for _, a := range addresses {
		b.s.ears.wake([2]string{group, a})
	}
}

// watch looks for hints of other processes until the store is closed: cheaply, whether the file changed, and only then
// what was added. What goes wrong is tried again at the next look.
func (s *Store) watch() {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var last mark
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
		}
		if s.ears.none() {
			last.file = nil // begin anew with the first listener
			continue
		}
		f, err := s.current()
		if f == nil || err != nil {
			continue // the next call opens it
		}
		s.look(f, &last)
		s.release(f)
	}
}

// mark is how far the hints of a file were read.
type mark struct {
	file    *file
	version int64
	seq     int64
}

func (s *Store) look(f *file, last *mark) {
	var version int64
	if err := f.watch.QueryRowContext(s.ctx, `PRAGMA data_version`).Scan(&version); err != nil {
		return
	}
	if f == last.file && version == last.version {
		return
	}
	if f != last.file {
		next := mark{file: f, version: version}
		// A little of what came before: a listener may have come between two looks.
		err := f.watch.QueryRowContext(s.ctx, `SELECT coalesce(max(seq), 0) - 16 FROM hints`).Scan(&next.seq)
		if err != nil {
			return
		}
		*last = next
	}
	rows, err := f.watch.QueryContext(s.ctx, `SELECT seq, grp, address, origin FROM hints WHERE seq > ? ORDER BY seq`, last.seq)
	if err != nil {
		return
	}
	var due [][2]string
	for rows.Next() {
		var group, address []byte
		var origin string
		if err := rows.Scan(&last.seq, &group, &address, &origin); err != nil {
			break
		}
		if origin != s.origin {
			due = append(due, [2]string{string(group), string(address)})
		}
	}
	if rows.Close() == nil && rows.Err() == nil {
		last.version = version
	}
	for _, at := range due {
		s.ears.wake(at)
	}
}
