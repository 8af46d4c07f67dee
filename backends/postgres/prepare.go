package postgres

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/rebalancer-go/rebalancer/internal/sqlstore"
)

// A statement that a connection has once prepared is not parsed and planned again, which is most of what a small commit costs the server. It is prepared
// in the trip in which it is first used. This is done on connections that lead straight to the server: a pooler lends the connections behind it to
// others, so the next transaction may run where nothing is prepared.

// mostPrepared bounds what a connection keeps: the statements of a store are some forty.
const mostPrepared = 100

// known is what is known of a connection. Who uses the connection guards it.
type known struct {
	asked    bool // whether it leads straight to the server
	direct   bool
	prepared map[string]bool // names
}

// knows gives what is known of the connection; nil: nothing is to be prepared on it.
func (s *Store) knows(c *pgconn.PgConn) *known {
	if !s.prepares.Load() {
		return nil
	}
	const key = "rebalancer" // stores that share a pool share this too
	k, ok := c.CustomData()[key].(*known)
	if !ok {
		k = &known{prepared: map[string]bool{}}
		c.CustomData()[key] = k
	}
	return k
}

// ask is the question whether the connection leads straight to the server, which has an answer in the next transaction on it.
func (k *known) ask(c *pgconn.PgConn) []sqlstore.Statement {
	if k == nil || k.asked {
		return nil
	}
	return []sqlstore.Statement{{SQL: `SELECT pg_backend_pid()`, Row: func(scan sqlstore.Scan) error {
		var pid int64
		err := scan(&pid)
		k.asked, k.direct = true, pid == int64(c.PID())
		return err
	}}}
}

// name is what a statement is prepared as, "" where it is not. It is made of the text: whatever has this name anywhere is this statement.
func (k *known) name(s *sqlstore.Statement, text string) string {
	if k == nil || !k.direct || s.Growing {
		return ""
	}
	word, _, _ := strings.Cut(text, " ")
	if word != "SELECT" && word != "INSERT" && word != "UPDATE" && word != "DELETE" {
		return ""
	}
	sum := sha256.Sum256([]byte(text))
	name := "rebalancer_" + hex.EncodeToString(sum[:16])
	if len(k.prepared) >= mostPrepared && !k.prepared[name] {
		return ""
	}
	return name
}

// prepare is the statement that prepares another.
func prepare(name, text string, oids []uint32) string {
	types := make([]string, len(oids))
	for i, oid := range oids {
		types[i] = typeName(oid)
	}
	list := ""
	if len(types) > 0 {
		list = "(" + strings.Join(types, ", ") + ")"
	}
	return fmt.Sprintf(`PREPARE %s%s AS %s`, name, list, text)
}

// typeName is the type of an argument in SQL.
func typeName(oid uint32) string {
	switch oid {
	case oidBytea:
		return "bytea"
	case oidInt8:
		return "int8"
	case oidByteaArray:
		return "bytea[]"
	case oidInt8Array:
		return "int8[]"
	}
	return "text"
}

// mayPrepare tells whether the pool's settings leave it open: pgx is told by them not to use prepared statements where those do harm.
func mayPrepare(c *pgx.ConnConfig) bool {
	return c.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement && c.StatementCacheCapacity > 0
}

// unprepared tells whether a call failed since its connection does not have the prepared statements that it should have, or has them twice: somebody
// between lends out connections after all, or a hook of the pool discards them. Nothing was applied.
func unprepared(err error) bool { return isState(err, noStatement, statementExists) }
