package sqlstore

import "github.com/rebalancer-go/rebalancer/backends"

// endDead ends the sessions that have run out, of those that the condition names, for good: who relies on a session being dead must
// do so in its own transaction, or a renewal under way could prove it wrong. One that has been ended already is not waited for.
func (t *Tx) endDead(condition string, args ...any) {
	const out = ` AND expires <= {now} AND expires >= 0`
	if t.Dialect.Update != "" { // all in one order
		t.Add(Statement{SQL: `SELECT id FROM {t}sessions WHERE ` + condition + out + ` ORDER BY id {update}`, Args: args, Row: ignore, Growing: true})
	}
	t.Add(Statement{SQL: `UPDATE {t}sessions SET expires = -1 WHERE ` + condition + out, Args: args, Growing: true})
}

// hold keeps the sessions that live, of those that the condition names, as they are until the transaction ends.
func (t *Tx) hold(condition string, args ...any) {
	if t.Dialect.Share != "" {
		t.Add(Statement{SQL: `SELECT id FROM {t}sessions WHERE ` + condition + ` AND expires > {now} ORDER BY id {share}`, Args: args, Row: ignore, Growing: true})
		return
	}
	t.Add(Statement{SQL: `UPDATE {t}sessions SET touched = touched + 1 WHERE ` + condition + ` AND expires > {now}`, Args: args})
}

func ignore(Scan) error { return nil }

// own reads the state of the session; f is not called when it has no row any more.
func (s *session) own(f func(alive, superseded bool)) Statement {
	return Statement{
		SQL:  `SELECT CASE WHEN expires > {now} THEN 1 ELSE 0 END, superseded FROM {t}sessions WHERE id = ?`,
		Args: []any{[]byte(s.id)},
		Row: func(scan Scan) error {
			var alive, superseded int64
			if err := scan(&alive, &superseded); err != nil {
				return err
			}
			f(alive != 0, superseded != 0)
			return nil
		},
	}
}

// standing is what a session may commit.
func standing(alive, superseded bool) barred {
	switch {
	case !alive:
		return barred{bound: backends.ErrSessionLost, all: backends.ErrSessionLost}
	case superseded:
		return barred{bound: backends.ErrSuperseded}
	}
	return barred{}
}

// remove takes out a session with all that is bound to it. What one of its own commits binds at the same time is left, with the
// row of the session, to be swept.
func (t *Tx) remove(id []byte) {
	if t.Dialect.Update != "" {
		t.Add(Statement{SQL: `SELECT grp, name FROM {t}entries WHERE session = ? ORDER BY grp, name {update}`, Args: []any{id}, Row: ignore})
	}
	t.Add(
		Statement{SQL: `UPDATE {t}entries SET gone = 1, value = ?, session = ? WHERE session = ?`, Args: []any{nobody(), nobody(), id}},
		Statement{SQL: `UPDATE {t}sessions SET expires = -1 WHERE id = ?`, Args: []any{id}},
		Statement{SQL: `DELETE FROM {t}sessions WHERE id = ? AND NOT EXISTS (SELECT 1 FROM {t}entries WHERE session = ?)`, Args: []any{id, id}},
	)
}

// sweep removes the ended sessions of a group with what was bound to them, and what was deleted long ago. It waits for nobody where
// rows that are locked can be passed over. Without that the condition is on the very rows that are changed, and not in a subquery: that would
// be answered from row versions, so that a renewal under way would be overlooked.
func (t *Tx) sweep(group string) {
	g := []byte(group)
	free := func(table, column, condition string) string {
		if t.Dialect.Update == "" {
			return ` WHERE ` + condition
		}
		return ` WHERE ` + column + ` IN (SELECT ` + column + ` FROM {t}` + table + ` WHERE ` + condition + ` {update} {skip})`
	}
	const ended = `session IN (SELECT id FROM {t}sessions WHERE grp = ? AND expires = -1)`
	t.Add(
		Statement{SQL: `UPDATE {t}sessions SET expires = -1` + free("sessions", "id", `grp = ? AND expires <= {now} AND expires >= 0`),
			Args: []any{g}},
		Statement{SQL: `UPDATE {t}entries SET gone = 1, value = ?, session = ?` + free("entries", "name", `grp = ? AND `+ended) + ` AND grp = ?`,
			Args: []any{nobody(), nobody(), g, g, g}},
		Statement{SQL: `DELETE FROM {t}sessions` + free("sessions", "id", `grp = ? AND expires = -1`) +
			` AND NOT EXISTS (SELECT 1 FROM {t}entries e WHERE e.session = {t}sessions.id)`, Args: []any{g}},
		Statement{SQL: `DELETE FROM {t}entries` + free("entries", "name", `grp = ? AND gone = 1 AND version < {wall} - ?`) + ` AND grp = ?`,
			Args: []any{g, int64(tombstones), g}},
	)
}
