package postgres

import (
	"fmt"

	"github.com/rebalancer-go/rebalancer/internal/sqlstore"
)

const micros = `(extract(epoch FROM %s) * 1000000)::bigint`

// dialect is what the shared statements are said in. behind is subtracted from the server's clock, for tests.
func (s *Store) newDialect(behind int64) sqlstore.Dialect {
	back := ""
	if behind != 0 {
		back = fmt.Sprintf(" - %d", behind)
	}
	t := quote(s.schema) + "."
	return sqlstore.Dialect{
		Tables: t,
		// The time at which the transaction began is before every lock that it waits for: what has run out by then had run out.
		Now:          "(" + fmt.Sprintf(micros, "now()") + back + ")",
		Wall:         "(" + fmt.Sprintf(micros, "clock_timestamp()") + back + ")",
		Incarnation:  "(SELECT incarnation FROM " + t + "record)",
		Update:       "FOR UPDATE",
		Share:        "FOR SHARE",
		Skip:         "SKIP LOCKED",
		Arrays:       true,
		MostKeys:     5000,
		Named:        named(""),
		Lock:         lock,
		Placeholders: true,
		UpdateRows:   updateRows,
		Order:        s.order,
	}
}

// named is the entries of a group with some names, in the order of the names. The database looks up each by itself, whatever it believes about the size of
// the table: a plan that it made while there were few, and keeps, would read the whole group each time. It does not see the length of the list either: one plan for all lengths, and none is made again. clause may
// lock them.
func named(clause string) string {
	return `(SELECT e.* FROM (SELECT ? AS grp, unnest((SELECT ?)) AS name) k` +
		` CROSS JOIN LATERAL (SELECT * FROM {t}entries x WHERE x.grp = k.grp AND x.name = k.name OFFSET 0 ` + clause + `) e)`
}

// lock locks the rows of the keys in the order of the keys: those that are written against everybody, those that are only checked
// against who writes. A key whose absence matters and that has no row gets one, which holds its place until the transaction ends.
func lock(group string, keys []sqlstore.Key) []sqlstore.Statement {
	var absent [][]byte
	for _, k := range keys {
		if k.Absent {
			absent = append(absent, []byte(k.Name))
		}
	}
	var ss []sqlstore.Statement
	if len(absent) > 0 {
		ss = append(ss, sqlstore.Statement{
			SQL: `INSERT INTO {t}entries (grp, name, value, version, session, gone)` +
				` SELECT ?, k, ''::bytea, 0, ''::bytea, 1 FROM unnest(?) AS k ORDER BY k ON CONFLICT DO NOTHING`,
			Args: []any{[]byte(group), absent},
		})
	}
	for len(keys) > 0 {
		n := 1
		for n < len(keys) && keys[n].Write == keys[0].Write {
			n++
		}
		names := make([][]byte, n)
		for i := range names {
			names[i] = []byte(keys[i].Name)
		}
		clause := "{share}"
		if keys[0].Write {
			clause = "{update}"
		}
		ss = append(ss, sqlstore.Statement{
			SQL:  `SELECT count(*) FROM ` + named(clause) + ` l`,
			Args: []any{[]byte(group), names},
		})
		keys = keys[n:]
	}
	return ss
}

func updateRows(group string, rows []sqlstore.Row) sqlstore.Statement {
	n := len(rows)
	names, values, sessions := make([][]byte, n), make([][]byte, n), make([][]byte, n)
	was, versions, gone := make([]int64, n), make([]int64, n), make([]int64, n)
	for i, r := range rows {
		names[i], values[i], sessions[i], was[i], versions[i], gone[i] = r.Name, r.Value, r.Session, r.Was, r.Version, r.Gone
	}
	return sqlstore.Statement{
		SQL: `UPDATE {t}entries e SET value = n.value, version = n.version, session = n.session, gone = n.gone` +
			` FROM unnest(?, ?, ?, ?, ?, ?) AS n (name, value, session, was, version, gone) WHERE e.grp = ? AND e.name = n.name AND e.version = n.was`,
		Args: []any{names, values, sessions, was, versions, gone, []byte(group)}, Done: sqlstore.AllChanged(n), Growing: true,
	}
}

// order lets those who open or supersede sessions of a node pass one after the other.
func (s *Store) order(group, node string) []sqlstore.Statement {
	return []sqlstore.Statement{{SQL: `SELECT pg_advisory_xact_lock(?)`, Args: []any{number("node", s.schema, group, node)}}}
}

// number is one for the names, as the database names locks.
func number(names ...string) int64 { return int64(sqlstore.Number(names...)) }
