package sqlstore

import (
	"context"
	"database/sql"
	"maps"
	"slices"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/storereq"
)

const (
	keysPerQuery = 100
	live         = ` FROM entries e LEFT JOIN sessions s ON s.id = e.session WHERE e.grp = ? AND e.gone = 0 AND (e.session = ? OR s.expires > ?)`
	columns      = `SELECT e.name, e.version, e.session, s.expires, e.value` + live
	namesOnly    = `SELECT e.name, e.version, e.session, s.expires, NULL` + live
)

func (s *session) Read(ctx context.Context, r backends.ReadRequest) (backends.ReadReply, error) {
	if err := storereq.Keys(r.Keys); err != nil {
		return backends.ReadReply{}, err
	}
	var reply backends.ReadReply
	err := s.base.Read(ctx, func(t *Tx) error {
		reply = backends.ReadReply{Stamp: t.stamp(), Digests: make(map[string]backends.Digest, len(r.Prefixes))}
		found := map[string]backends.Entry{}
		for _, prefix := range r.Prefixes {
			d := backends.Digest{Left: -1}
			err := readPrefix(t, s.group, prefix, r.NamesOnly, func(e backends.Entry) {
				d.Add(e.Key, e.Version, e.Left)
				found[e.Key] = e
			})
			if err != nil {
				return err
			}
			reply.Digests[prefix] = d
		}
		if err := readKeys(t, s.group, r.Keys, r.NamesOnly, func(e backends.Entry) { found[e.Key] = e }); err != nil {
			return err
		}
		for _, key := range slices.Sorted(maps.Keys(found)) {
			reply.Entries = append(reply.Entries, found[key])
		}
		return nil
	})
	if err != nil {
		return backends.ReadReply{}, err
	}
	return reply, nil
}

func pick(names bool) string {
	if names {
		return namesOnly
	}
	return columns
}

// readPrefix gives the live entries below a prefix, in order.
func readPrefix(t *Tx, group, prefix string, names bool, f func(backends.Entry)) error {
	query := pick(names) + ` AND e.name >= ?`
	args := []any{[]byte(group), nobody(), t.Now, []byte(prefix)}
	if end := after(prefix); end != nil {
		query += ` AND e.name < ?`
		args = append(args, end)
	}
	return t.query(scan(t, f), query+` ORDER BY e.name`, args...)
}

// after is the least name that is greater than all with the prefix; nil when there is none.
func after(prefix string) []byte {
	end := []byte(prefix)
	for len(end) > 0 && end[len(end)-1] == 0xff {
		end = end[:len(end)-1]
	}
	if len(end) == 0 {
		return nil
	}
	end[len(end)-1]++
	return end
}

// readKeys gives the live entries of these keys, in any order.
func readKeys(t *Tx, group string, keys []string, names bool, f func(backends.Entry)) error {
	for chunk := range slices.Chunk(keys, keysPerQuery) {
		args := []any{[]byte(group), nobody(), t.Now}
		for _, key := range chunk {
			args = append(args, []byte(key))
		}
		if err := t.query(scan(t, f), pick(names)+` AND e.name IN (`+marks(len(chunk))+`)`, args...); err != nil {
			return err
		}
	}
	return nil
}

func scan(t *Tx, f func(backends.Entry)) func(*sql.Rows) error {
	return func(r *sql.Rows) error {
		var name, session, value []byte
		var expires sql.NullInt64
		e := backends.Entry{Left: -1}
		if err := r.Scan(&name, &e.Version, &session, &expires, &value); err != nil {
			return err
		}
		e.Key, e.Session, e.Value = string(name), string(session), value
		if e.Session != "" {
			e.Left = time.Duration(expires.Int64-t.Now) * time.Microsecond
		}
		f(e)
		return nil
	}
}

// sweep removes the ended sessions of a group with what was bound to them, and what was deleted long ago.
func sweep(t *Tx, group string) error {
	var ended [][]byte
	err := t.query(func(r *sql.Rows) error {
		var id []byte
		err := r.Scan(&id)
		ended = append(ended, id)
		return err
	}, `SELECT id FROM sessions WHERE grp = ? AND expires <= ?`, []byte(group), t.Now)
	if err != nil {
		return err
	}
	for _, id := range ended {
		if err := remove(t, id); err != nil {
			return err
		}
	}
	_, err = t.exec(`DELETE FROM entries WHERE grp = ? AND gone = 1 AND version < ?`, []byte(group), t.Wall-tombstones)
	return err
}
