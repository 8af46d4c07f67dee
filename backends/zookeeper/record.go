package zookeeper

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/rebalancer-go/rebalancer/backends"
)

// format is the version of the layout.
const format = 1

// record is the incarnation of the data: the one znode below /i, whose name is random. Each transaction checks that it is there.
type record struct {
	id    string
	since time.Time
	era
	earlier []era // of the incarnations before it, oldest first
}

// era says which versions belong to the transactions from one on: Base + zxid − From. The base is the server's time in ns at which the
// incarnation began, so versions grow also when zxids begin again: a new election of a leader, which adds 2^32 to the zxid, costs 4.3 s
// of it, and a transaction 1 ns, so that versions are always behind the clock.
type era struct {
	ID   string `json:"id"`
	From int64  `json:"from"`
	Base int64  `json:"base"`
}

func (e era) version(zxid int64) int64 { return e.Base + zxid - e.From }

// version is that of an entry last written by a transaction.
func (r *record) version(zxid int64) int64 {
	if zxid >= r.From {
		return r.era.version(zxid)
	}
	for _, e := range slices.Backward(r.earlier) {
		if zxid >= e.From {
			return e.version(zxid)
		}
	}
	return r.era.version(zxid)
}

// descends tells whether id was an incarnation of this data before.
func (r *record) descends(id string) bool {
	return slices.ContainsFunc(r.earlier, func(e era) bool { return e.ID == id })
}

// stored is the data of a record's znode.
type stored struct {
	Format  int   `json:"format"`
	Floor   int64 `json:"floor"` // no version may be smaller
	Earlier []era `json:"earlier,omitempty"`
}

func (s *Store) recordDir() string { return s.cfg.root + "/i" }

func (s *Store) incarnationPath(id string) string { return s.recordDir() + "/i" + escape(id) }

// readRecord gives nil when there is none.
func (s *Store) readRecord(ctx context.Context, v via) (*record, error) {
	for {
		names, err := v.children(ctx, s.recordDir())
		if err != nil || len(names) == 0 {
			return nil, err
		}
		z, err := v.get(ctx, s.recordDir()+"/"+names[0])
		if err != nil {
			return nil, err
		}
		if !z.there {
			continue // it was just replaced
		}
		var d stored
		if err := json.Unmarshal(z.data, &d); err != nil || d.Format != format {
			return nil, fmt.Errorf("%w: what is at %s has format %d, this program knows format %d", backends.ErrFatal, s.recordDir(), d.Format, format)
		}
		id, _ := unescape(names[0][1:])
		began := time.UnixMilli(z.stat.Ctime)
		return &record{id: id, since: began, earlier: d.Earlier,
			era: era{ID: id, From: z.stat.Czxid, Base: max(began.UnixNano(), d.Floor)}}, nil
	}
}

// mark is what was known of the data at one moment.
type mark struct {
	rec        *record
	generation int64
	high       int64
}

func (s *Store) mark() mark {
	s.mu.Lock()
	defer s.mu.Unlock()
	return mark{s.rec, s.generation, s.high}
}

// sawZxid notes how far the data has come.
func (s *Store) sawZxid(generation, zxid int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if generation == s.generation {
		s.high = max(s.high, zxid)
	}
}

// undone tells whether a transaction that came after m proves that the data went back: it is not newer than what was seen before.
func (m mark) undone(zxid int64) bool { return zxid <= m.high }

// adopt takes a record for the one in force.
func (s *Store) adopt(r *record) *record {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.rec == nil:
		s.rec = r
	case s.rec.id != r.id && !s.rec.descends(r.id):
		s.rec, s.high = r, r.From
		s.generation++
	}
	return s.rec
}

// look reads the record of the data after a write, which no server can answer that is behind. Where the record is absent, or the data
// has gone back, acknowledged writes were lost: it begins a new incarnation.
func (s *Store) look(ctx context.Context, v via) (*record, error) {
	for {
		m := s.mark()
		stat, err := s.touchClock(ctx, v)
		if err != nil {
			return nil, err
		}
		r, err := s.readRecord(ctx, v)
		if err != nil {
			return nil, err
		}
		known := m.rec
		switch {
		case r == nil:
		case known != nil && r.id == known.id && m.undone(stat.Mzxid):
		case known != nil && known.descends(r.id):
		default:
			if got := s.adopt(r); got.id == r.id {
				v.l.joins(s)
				return got, nil
			}
			continue // it was replaced meanwhile
		}
		if err := s.begin(ctx, v, r, m); err != nil {
			return nil, err
		}
	}
}

// joins lets what a link sees count for the incarnation in force, in which it has just written.
func (l *link) joins(s *Store) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.seen.Store(s.generation)
}

// touchClock writes, which tells the server's time and how far the data has come. It makes what the store needs when it is not there.
func (s *Store) touchClock(ctx context.Context, v via) (zk.Stat, error) {
	for {
		stat, err := v.set(ctx, s.cfg.root+"/clock", nil)
		if err == nil {
			s.clock.set(stat.Mtime)
			return stat, nil
		}
		if !errors.Is(err, zk.ErrNoNode) {
			return stat, err
		}
		if s.cfg.chroot {
			if root, err := v.stat(ctx, s.cfg.root); err != nil {
				return stat, err
			} else if !root.there {
				return stat, fmt.Errorf("%w: the chroot %s does not exist: make it (zkCli.sh create %s), or correct the connect string",
					backends.ErrFatal, s.cfg.root, s.cfg.root)
			}
		}
		for _, p := range []string{s.cfg.root + "/g", s.recordDir(), s.cfg.root + "/clock"} {
			if err := v.make(ctx, p); err != nil {
				return stat, err
			}
		}
	}
}

// begin writes a new record in place of old, which may be nil, unless somebody else does it first.
func (s *Store) begin(ctx context.Context, v via, old *record, m mark) error {
	dir, err := v.stat(ctx, s.recordDir())
	if err != nil || !dir.there {
		return err
	}
	names, err := v.children(ctx, s.recordDir())
	if err != nil {
		return err
	}
	d := stored{Format: format}
	if m.rec != nil {
		d.Floor = m.rec.version(m.high) + 1
	}
	ops := []op{{request: &zk.SetDataRequest{Path: s.recordDir(), Version: dir.stat.Version}}}
	if old != nil {
		if len(names) != 1 || names[0] != "i"+escape(old.id) {
			return nil
		}
		d.Earlier = append(slices.Clone(old.earlier), old.era)
		ops = append(ops, op{request: &zk.DeleteRequest{Path: s.incarnationPath(old.id), Version: -1}})
	} else if len(names) != 0 {
		return nil
	}
	data, err := json.Marshal(d)
	if err != nil {
		return err
	}
	ops = append(ops, op{request: &zk.CreateRequest{Path: s.incarnationPath(rand.Text()), Data: data, Acl: s.cfg.acl}})
	_, failed, err := v.multi(ctx, ops)
	if err == nil || unanswered(err) || failed >= 0 && !errors.Is(err, zk.ErrNoAuth) {
		return ctx.Err() // done, by somebody; or not answered: the next look tells
	}
	return err
}
