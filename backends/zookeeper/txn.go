package zookeeper

import (
	"context"

	"github.com/go-zookeeper/zk"
	"github.com/rebalancer-go/rebalancer/backends"
)

// states is what the keys of one transaction held when they were read.
type states struct {
	entries map[string]*entry
	alive   live
	buckets map[string]bool // of what it writes
	hints   []string        // znodes to change so that who listens wakes
}

// read reads what the keys of a transaction hold. It need not be the newest: the multi fails when it is not.
func (c *commit) read(ctx context.Context, t *backends.Txn) (*states, error) {
	st := &states{entries: map[string]*entry{}, buckets: map[string]bool{}, alive: func(string) bool { return true }}
	var keys []string
	add := func(key string, write bool) {
		if write {
			bucket, _ := c.h.dir.where(key)
			st.buckets[bucket] = true
		}
		if st.entries[key] == nil {
			st.entries[key] = &entry{}
			keys = append(keys, key)
		}
	}
	for _, k := range t.Checks {
		add(k.Key, false)
	}
	for _, p := range t.Puts {
		add(p.Key, true)
	}
	for _, key := range t.Deletes {
		add(key, true)
	}
	v := c.h.via()
	if err := c.fetch(ctx, v, st, keys, t.Wake); err != nil {
		return nil, err
	}
	var asked []entry // the sessions of what is checked matter, but for this one's own
	for _, k := range t.Checks {
		if e := st.entries[k.Key]; e.session != "" && e.session != c.h.id {
			asked = append(asked, *e)
		}
	}
	if len(asked) > 0 {
		alive, err := v.alive(ctx, c.h.dir, asked)
		if err != nil {
			return nil, err
		}
		st.alive = func(s string) bool { return s == c.h.id || alive(s) }
	}
	return st, nil
}

// fetch reads keys, and whether there are znodes for some addresses: where nobody ever listened there are none.
func (c *commit) fetch(ctx context.Context, v via, st *states, keys, addresses []string) error {
	paths := make([]string, 0, len(keys)+len(addresses))
	for _, key := range keys {
		_, path := c.h.dir.where(key)
		paths = append(paths, path)
	}
	for _, a := range addresses {
		paths = append(paths, c.h.dir.hint(a))
	}
	nodes, err := v.getAll(ctx, paths)
	if err != nil {
		return err
	}
	for i, key := range keys {
		e, err := decode(key, nodes[i])
		if err != nil {
			return err
		}
		st.entries[key] = &e
	}
	for i := len(keys); i < len(nodes); i++ {
		if nodes[i].there {
			st.hints = append(st.hints, paths[i])
		}
	}
	return nil
}

// compare gives the versions of the checked keys, and whether all checks hold.
func (st *states) compare(rec *record, t *backends.Txn) (current map[string]int64, holds bool) {
	current, holds = make(map[string]int64, len(t.Checks)), true
	for _, k := range t.Checks {
		current[k.Key] = 0
		if e := st.entries[k.Key]; e.present(st.alive) {
			current[k.Key] = rec.version(e.stat.Mzxid)
		}
		holds = holds && current[k.Key] == k.Version
	}
	return current, holds
}

// writer makes the operations of a transaction whose checks hold in st, so that they fail if they do not hold any more.
type writer struct {
	st      *states
	h       *session
	ops     []op
	checked map[string]bool
	created map[string]bool // keys whose znode is made on the way, to prove that there was none
}

func (w *writer) add(request any) { w.ops = append(w.ops, op{request: request}) }

// write adds the operations of a transaction to ops.
func (st *states) write(ops []op, h *session, t *backends.Txn) []op {
	w := &writer{st, h, ops, map[string]bool{}, map[string]bool{}}
	w.checks(t.Checks)
	for _, p := range t.Puts {
		w.put(p)
	}
	for _, key := range t.Deletes {
		w.remove(key)
	}
	for key := range w.created { // absent, and nobody else is to see that it was asked for
		_, path := h.dir.where(key)
		w.add(&zk.DeleteRequest{Path: path, Version: -1})
	}
	for _, path := range st.hints {
		w.add(&zk.SetDataRequest{Path: path, Version: -1})
	}
	for bucket := range st.buckets {
		w.add(&zk.SetDataRequest{Path: bucket, Version: -1})
	}
	return w.ops
}

// absent adds what fails when there is a znode for a key.
func (w *writer) absent(key, path string) {
	w.created[key] = true
	w.add(&zk.CreateRequest{Path: path, Acl: w.h.s.cfg.acl})
}

// checks: each key has the data version that it had, and the session that it is bound to is still there; or not there, which is for good.
func (w *writer) checks(checks []backends.Check) {
	sessions := map[string]bool{w.h.id: true}
	for _, k := range checks {
		if w.checked[k.Key] {
			continue
		}
		w.checked[k.Key] = true
		e := w.st.entries[k.Key]
		_, path := w.h.dir.where(k.Key)
		if !e.there {
			w.absent(k.Key, path)
			continue
		}
		w.add(check(path, e.stat.Version))
		if k.Version != 0 && e.session != "" && !sessions[e.session] {
			sessions[e.session] = true
			w.add(check(w.h.dir.alive(e.session), -1))
		}
	}
}

func (w *writer) put(p backends.Put) {
	_, path := w.h.dir.where(p.Key)
	session := ""
	if p.Bound {
		session = w.h.id
	}
	data := encode(session, p.Value)
	if w.st.entries[p.Key].there || w.created[p.Key] {
		delete(w.created, p.Key)
		w.add(&zk.SetDataRequest{Path: path, Data: data, Version: -1})
	} else {
		w.add(&zk.CreateRequest{Path: path, Data: data, Acl: w.h.s.cfg.acl})
	}
}

func (w *writer) remove(key string) {
	e := w.st.entries[key]
	_, path := w.h.dir.where(key)
	switch {
	case !e.deleted():
		w.add(&zk.SetDataRequest{Path: path, Version: -1})
	case w.checked[key]: // and absent
	case e.there: // it is not to be there, not only to have been missing at a server that is behind
		w.add(check(path, e.stat.Version))
	default:
		w.absent(key, path)
	}
}

// makeBuckets makes the places of what a transaction writes or checks.
func (st *states) makeBuckets(ctx context.Context, v via, d groupDir) error {
	for key := range st.entries {
		bucket, _ := d.where(key)
		if err := v.make(ctx, bucket); err != nil {
			return err
		}
	}
	return nil
}
