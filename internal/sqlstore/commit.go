package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/storereq"
)

var (
	// errRaced undoes a commit when an entry was changed under it in spite of the locks.
	errRaced = errors.New("an entry changed under the transaction")
	// errNothing undoes a commit that changes nothing.
	errNothing = errors.New("nothing to commit")
)

// Commit loads what the transactions depend on, locked, in one round trip, decides on it here, and writes the
// outcome with the commit in another.
func (s *session) Commit(ctx context.Context, r backends.CommitRequest) (backends.CommitReply, error) {
	if err := storereq.Commit(r); err != nil {
		return backends.CommitReply{}, err
	}
	var reply backends.CommitReply
	var wake []string
	var err error
	for range 5 {
		err = s.base.Write(ctx, func(t *Tx) (err error) {
			reply, wake, err = s.commit(t, r)
			return err
		})
		if !errors.Is(err, errRaced) || errors.Is(err, backends.ErrUnknown) {
			break
		}
	}
	switch {
	case errors.Is(err, errNothing):
		return reply, nil
	case errors.Is(err, backends.ErrUnknown):
		return unknown(len(r.Txns), err), nil
	case err != nil:
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

func (s *session) commit(t *Tx, r backends.CommitRequest) (backends.CommitReply, []string, error) {
	keys := keysOf(r.Txns)
	b := &board{tx: t, session: s.id, cells: make(map[string]*cell, len(keys))}
	if t.Dialect.Lock != nil && len(keys) > 0 {
		t.Add(t.Dialect.Lock(s.group, keys)...)
	}
	s.load(t, b, keys)
	if err := t.Flush(); err != nil {
		return backends.CommitReply{}, nil, err
	}
	for _, k := range keys {
		if b.cells[k.Name] == nil && k.Absent && t.Dialect.Placeholders {
			return backends.CommitReply{}, nil, fmt.Errorf("%w: a row was removed", errRaced)
		}
		if b.cells[k.Name] == nil {
			b.cells[k.Name] = &cell{gone: true}
		}
	}
	reply := backends.CommitReply{Stamp: t.stamp()}
	var wake []string
	reply.Results, wake = b.decide(r)
	if s.store(t, b) == 0 && len(wake) == 0 {
		return reply, nil, errNothing
	}
	return reply, wake, s.base.Wake(t, s.group, wake)
}

// keysOf are the keys of all transactions, sorted.
func keysOf(txns []backends.Txn) []Key {
	found := map[string]Key{}
	note := func(name string, write, absent bool) {
		k := found[name]
		found[name] = Key{Name: name, Write: k.Write || write, Absent: k.Absent || absent}
	}
	for i := range txns {
		for _, c := range txns[i].Checks {
			note(c.Key, false, c.Version == 0)
		}
		for _, p := range txns[i].Puts {
			note(p.Key, true, true)
		}
		for _, key := range txns[i].Deletes {
			note(key, true, false)
		}
	}
	keys := make([]Key, 0, len(found))
	for _, name := range slices.Sorted(maps.Keys(found)) {
		keys = append(keys, found[name])
	}
	return keys
}

// load settles which of the sessions behind the keys, and whether the own one, live, so that nothing can change it before
// the transaction ends; then it reads.
func (s *session) load(t *Tx, b *board, keys []Key) {
	const (
		sessions     = `SELECT session FROM {t}entries WHERE grp = ? AND name IN (??) AND session <> ?`
		behind       = `id IN (` + sessions + `)`
		behindAndOwn = `id IN (` + sessions + ` UNION ALL SELECT ?)`
	)
	var lists [][]any
	for chunk := range slices.Chunk(keys, t.Dialect.mostKeys()) {
		names := make([][]byte, len(chunk))
		for i, k := range chunk {
			names[i] = []byte(k.Name)
		}
		lists = append(lists, []any{[]byte(s.group), names, nobody()})
	}
	for _, list := range lists {
		t.endDead(behind, list...)
	}
	for _, list := range lists {
		if t.Dialect.KeysHold {
			continue
		}
		t.hold(behindAndOwn, append(slices.Clone(list), []byte(s.id))...)
	}
	if len(lists) == 0 || t.Dialect.KeysHold {
		t.hold(`id = ?`, []byte(s.id))
	}
	b.barred = barred{bound: backends.ErrSessionLost, all: backends.ErrSessionLost}
	t.Add(s.own(func(alive, superseded bool) { b.barred = standing(alive && !s.over(), superseded) }))
	for _, list := range lists {
		t.Add(Statement{
			SQL: `SELECT e.name, e.version, e.session, e.gone, CASE WHEN e.session = ? OR s.expires > {now} THEN 1 ELSE 0 END` +
				` FROM {named} e LEFT JOIN {t}sessions s ON s.id = e.session`,
			Args: []any{nobody(), list[0], list[1]},
			Row:  b.read,
		})
	}
	t.Add(Statement{SQL: `SELECT {wall}`, Row: func(scan Scan) error { return scan(&b.wall) }})
}

func (b *board) read(scan Scan) error {
	var name, session []byte
	var version, gone, alive int64
	if err := scan(&name, &version, &session, &gone, &alive); err != nil {
		return err
	}
	b.cells[string(name)] = &cell{stored: true, was: version, version: version, session: string(session), gone: gone != 0 || alive == 0}
	return nil
}

// store writes the cells that changed, and removes the rows that only held a place. It gives the number that changed.
func (s *session) store(t *Tx, b *board) (changed int) {
	var idle [][]byte
	var updates []Row
	for _, name := range slices.Sorted(maps.Keys(b.cells)) {
		c := b.cells[name]
		if !c.changed {
			if c.stored && c.was == 0 {
				idle = append(idle, []byte(name))
			}
			continue
		}
		changed++
		r := Row{Name: []byte(name), Value: c.value, Session: []byte(c.session), Was: c.was, Version: c.version}
		if c.gone {
			r.Gone = 1
		}
		if r.Value == nil {
			r.Value = []byte{}
		}
		if c.stored {
			updates = append(updates, r)
		} else {
			t.Add(Statement{SQL: `INSERT INTO {t}entries (value, version, session, gone, grp, name) VALUES (?, ?, ?, ?, ?, ?)`,
				Args: []any{r.Value, r.Version, r.Session, r.Gone, []byte(s.group), r.Name}})
		}
	}
	t.update(s.group, updates)
	for chunk := range slices.Chunk(idle, t.Dialect.mostKeys()) {
		t.Add(Statement{SQL: `DELETE FROM {t}entries WHERE grp = ? AND name IN (??) AND version = 0`, Args: []any{[]byte(s.group), chunk}})
	}
	return changed
}

// update changes rows that are there.
func (t *Tx) update(group string, rows []Row) {
	if t.Dialect.UpdateRows != nil {
		for chunk := range slices.Chunk(rows, t.Dialect.mostKeys()) {
			t.Add(t.Dialect.UpdateRows(group, chunk))
		}
		return
	}
	for _, r := range rows {
		t.Add(Statement{
			SQL:  `UPDATE {t}entries SET value = ?, version = ?, session = ?, gone = ? WHERE grp = ? AND name = ? AND version = ?`,
			Args: []any{r.Value, r.Version, r.Session, r.Gone, []byte(group), r.Name, r.Was}, Done: AllChanged(1),
		})
	}
}

// AllChanged is a Done that fails, which undoes and repeats the commit, unless so many rows were changed.
func AllChanged(want int) func(int64) error {
	return func(n int64) error {
		if n != int64(want) {
			return fmt.Errorf("%w: %d rows of %d", errRaced, n, want)
		}
		return nil
	}
}
