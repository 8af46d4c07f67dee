package sqlstore

import (
	"slices"

	"github.com/rebalancer-go/rebalancer/backends"
)

// cell is what stands for a key, and what is to stand there.
type cell struct {
	stored  bool  // there is a row
	was     int64 // its version
	version int64
	value   []byte
	session string
	gone    bool // deleted, or bound to a session that is dead for certain
	changed bool
}

// current is the version that a check compares.
func (c *cell) current() int64 {
	if c.gone {
		return 0
	}
	return c.version
}

// barred keeps a session from transactions; nil is no obstacle.
type barred struct{ bound, all error }

func (b barred) from(t *backends.Txn) error {
	if b.bound != nil && slices.ContainsFunc(t.Puts, func(p backends.Put) bool { return p.Bound }) {
		return b.bound
	}
	return b.all
}

// board is what a commit decides on: everything that it depends on, locked.
type board struct {
	tx      *Tx
	session string
	barred  barred
	wall    int64
	cells   map[string]*cell
}

// decide carries out the transactions on the cells, one after the other, and gives the addresses to wake.
func (b *board) decide(r backends.CommitRequest) (results []backends.Result, wake []string) {
	for i := range r.Txns {
		res := b.one(r.Incarnation, &r.Txns[i])
		if res.Err == nil {
			wake = append(wake, r.Txns[i].Wake...)
		}
		results = append(results, res)
	}
	slices.Sort(wake)
	return results, slices.Compact(wake)
}

func (b *board) one(incarnation string, txn *backends.Txn) backends.Result {
	t := b.tx
	if err := b.barred.from(txn); err != nil {
		return backends.Result{Err: err}
	}
	switch {
	case incarnation != t.Incarnation:
		return backends.Result{Err: backends.ErrIncarnation}
	case txn.Grace > 0 && t.Since != 0 && t.Now < t.Since+txn.Grace.Microseconds():
		return backends.Result{Err: backends.ErrGrace}
	}
	current := make(map[string]int64, len(txn.Checks))
	holds := true
	for _, c := range txn.Checks {
		current[c.Key] = b.cells[c.Key].current()
		holds = holds && current[c.Key] == c.Version
	}
	if !holds {
		return backends.Result{Err: backends.ErrConflict, Versions: current}
	}
	for _, key := range txn.Deletes {
		if c := b.cells[key]; !c.gone || c.session != "" {
			c.gone, c.value, c.session, c.changed = true, nil, "", true
		}
	}
	versions := make(map[string]int64, len(txn.Puts))
	for _, p := range txn.Puts {
		c := b.cells[p.Key]
		c.version = max(c.version+1, b.wall)
		c.gone, c.value, c.session, c.changed = false, p.Value, "", true
		if p.Bound {
			c.session = b.session
		}
		versions[p.Key] = c.version
	}
	return backends.Result{Versions: versions}
}
