package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/storereq"
)

// errRaced undoes one transaction whose entry was changed under it.
var errRaced = errors.New("an entry changed under the transaction")

func (s *session) Commit(ctx context.Context, r backends.CommitRequest) (backends.CommitReply, error) {
	if err := storereq.Commit(r); err != nil {
		return backends.CommitReply{}, err
	}
	var reply backends.CommitReply
	var wake []string
	err := s.base.Write(ctx, func(t *Tx) (err error) {
		reply, wake = backends.CommitReply{Stamp: t.stamp()}, nil
		alive, err := s.touch(t)
		if err != nil {
			return err
		}
		refused, err := s.why(t)
		if err != nil {
			return err
		}
		for i := range r.Txns {
			res := backends.Result{Err: backends.ErrSessionLost}
			if alive && refused != nil && claims(&r.Txns[i]) {
				res.Err = refused
			} else if alive {
				if res, err = s.one(t, r.Incarnation, &r.Txns[i]); err != nil {
					return err
				}
			}
			if res.Err == nil {
				wake = append(wake, r.Txns[i].Wake...)
			}
			reply.Results = append(reply.Results, res)
		}
		slices.Sort(wake)
		wake = slices.Compact(wake)
		return s.base.Wake(t, s.group, wake)
	})
	if errors.Is(err, backends.ErrUnknown) {
		return unknown(len(r.Txns), err), nil
	}
	if err != nil {
		return backends.CommitReply{}, err
	}
	s.base.Woken(s.group, wake)
	return reply, nil
}

func unknown(txns int, cause error) backends.CommitReply {
	results := make([]backends.Result, txns)
	for i := range results {
		results[i].Err = cause
	}
	return backends.CommitReply{Results: results}
}

// one carries out one transaction within a savepoint.
func (s *session) one(t *Tx, incarnation string, txn *backends.Txn) (backends.Result, error) {
	switch {
	case incarnation != t.Incarnation:
		return backends.Result{Err: backends.ErrIncarnation}, nil
	case txn.Grace > 0 && t.Since != 0 && t.Now < t.Since+txn.Grace.Microseconds():
		return backends.Result{Err: backends.ErrGrace}, nil
	}
	if _, err := t.exec(`SAVEPOINT one`); err != nil {
		return backends.Result{}, err
	}
	res, err := s.apply(t, txn)
	if err == nil && res.Err == nil {
		_, err = t.exec(`RELEASE SAVEPOINT one`)
		return res, err
	}
	if err != nil && !errors.Is(err, errRaced) {
		return res, err
	}
	if err != nil {
		res = backends.Result{Err: backends.ErrConflict}
	}
	if _, err := t.exec(`ROLLBACK TO SAVEPOINT one`); err != nil {
		return res, err
	}
	_, err = t.exec(`RELEASE SAVEPOINT one`)
	return res, err
}

// row is what stands in the table for a key, alive or not.
type row struct {
	version int64
	session string
	gone    bool // deleted, or bound to a session that is dead for certain
}

func (s *session) apply(t *Tx, txn *backends.Txn) (backends.Result, error) {
	rows, err := s.rows(t, txn)
	if err != nil {
		return backends.Result{}, err
	}
	current := make(map[string]int64, len(txn.Checks))
	holds := true
	for _, c := range txn.Checks {
		current[c.Key] = 0
		if r, ok := rows[c.Key]; ok && !r.gone {
			current[c.Key] = r.version
		}
		holds = holds && current[c.Key] == c.Version
	}
	if !holds {
		return backends.Result{Err: backends.ErrConflict, Versions: current}, nil
	}
	for _, key := range txn.Deletes {
		if r, ok := rows[key]; ok {
			if err := s.bury(t, key, r); err != nil {
				return backends.Result{}, err
			}
		}
	}
	versions := make(map[string]int64, len(txn.Puts))
	for _, p := range txn.Puts {
		r, there := rows[p.Key]
		if versions[p.Key], err = s.put(t, p, r, there); err != nil {
			return backends.Result{}, err
		}
	}
	return backends.Result{Versions: versions}, nil
}

// rows reads what stands for the keys of a transaction, after it has ordered itself with those that write them and with
// the renewals of the sessions behind them.
func (s *session) rows(t *Tx, txn *backends.Txn) (map[string]row, error) {
	wanted := map[string]bool{}
	for _, c := range txn.Checks {
		wanted[c.Key] = true
	}
	for _, p := range txn.Puts {
		wanted[p.Key] = true
	}
	for _, key := range txn.Deletes {
		wanted[key] = true
	}
	keys := slices.Sorted(maps.Keys(wanted))
	if t.Lock != nil {
		if err := t.Lock(s.group, keys); err != nil {
			return nil, err
		}
	}
	rows := make(map[string]row, len(keys))
	sessions := map[string]bool{} // dead
	for chunk := range slices.Chunk(keys, keysPerQuery) {
		args := []any{[]byte(s.group)}
		for _, key := range chunk {
			args = append(args, []byte(key))
		}
		err := t.query(func(r *sql.Rows) error {
			var name, session []byte
			var out row
			var gone int
			if err := r.Scan(&name, &out.version, &session, &gone); err != nil {
				return err
			}
			out.session, out.gone = string(session), gone != 0
			rows[string(name)] = out
			if out.session != "" && out.session != s.id {
				sessions[out.session] = false
			}
			return nil
		}, `SELECT name, version, session, gone FROM entries WHERE grp = ? AND name IN (`+marks(len(chunk))+`)`, args...)
		if err != nil {
			return nil, err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(sessions)) {
		dead, err := settle(t, id)
		if err != nil {
			return nil, err
		}
		sessions[id] = dead
	}
	for key, r := range rows {
		r.gone = r.gone || sessions[r.session]
		rows[key] = r
	}
	return rows, nil
}

// settle finds out whether a session is dead so that nothing can change it before the transaction ends.
func settle(t *Tx, id string) (dead bool, err error) {
	alive, err := touch(t, []byte(id))
	if alive || err != nil {
		return false, err
	}
	_, err = t.exec(`UPDATE sessions SET expires = -1 WHERE id = ? AND expires <= ?`, []byte(id), t.Now)
	return true, err // it is ended now, or was removed
}

func (s *session) bury(t *Tx, key string, r row) error {
	n, err := t.exec(`UPDATE entries SET gone = 1, value = ?, session = ? WHERE grp = ? AND name = ? AND version = ?`,
		nobody(), nobody(), []byte(s.group), []byte(key), r.version)
	return raced(n, err)
}

func (s *session) put(t *Tx, p backends.Put, r row, there bool) (int64, error) {
	bound, value := nobody(), p.Value
	if p.Bound {
		bound = []byte(s.id)
	}
	if value == nil {
		value = []byte{}
	}
	if !there {
		_, err := t.exec(`INSERT INTO entries (grp, name, value, version, session, gone) VALUES (?, ?, ?, ?, ?, 0)`,
			[]byte(s.group), []byte(p.Key), value, t.Wall, bound)
		return t.Wall, err
	}
	version := max(r.version+1, t.Wall)
	n, err := t.exec(`UPDATE entries SET value = ?, version = ?, session = ?, gone = 0 WHERE grp = ? AND name = ? AND version = ?`,
		value, version, bound, []byte(s.group), []byte(p.Key), r.version)
	return version, raced(n, err)
}

func raced(n int64, err error) error {
	if err == nil && n != 1 {
		return fmt.Errorf("%w: %d rows", errRaced, n)
	}
	return err
}
