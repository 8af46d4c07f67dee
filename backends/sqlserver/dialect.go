package sqlserver

import (
	"fmt"

	"github.com/rebalancer-go/rebalancer/internal/sqlstore"
)

// clock is the server's wall time in UTC, in µs since 1970.
const clock = `DATEDIFF_BIG(MICROSECOND, '19700101', SYSUTCDATETIME())`

// mostKeys are in one list: it is as many arguments as it has, and a call takes 2100.
const mostKeys = 500

// newDialect is what the shared statements are said in. behind is subtracted from the server's clock, for tests.
func (s *Store) newDialect(behind int64) sqlstore.Dialect {
	t := quote(s.schema) + "."
	return sqlstore.Dialect{
		Tables: t,
		Now:    "@now", // declared at the head of each batch, before any lock is waited for
		Wall:   clockBehind(behind),
		// Read again where it is used: another process may have written a new one meanwhile.
		Incarnation: "(SELECT incarnation FROM " + t + "record WHERE one = 1)",
		MostKeys:    mostKeys,
		Lock:        s.lock,
		KeysHold:    true,
		Order:       s.order,
	}
}

func clockBehind(behind int64) string {
	if behind == 0 {
		return clock
	}
	return fmt.Sprintf("(%s - %d)", clock, behind)
}

// buckets is how many locks the keys of a group share: a commit of very many keys must not take as many locks.
const buckets = 1024

// lock takes an application lock for each key, shared for those that are only checked, in one order everywhere. They end with the transaction.
// Locks on rows would do neither: an absent key has no row, and a reader sees row versions, or waits for what does not concern it.
func (s *Store) lock(group string, keys []sqlstore.Key) []sqlstore.Statement {
	var taken [buckets]struct{ read, write bool }
	for _, k := range keys {
		n := sqlstore.Number("key", k.Name) % buckets
		taken[n].read = true
		taken[n].write = taken[n].write || k.Write
	}
	place := sqlstore.Number("keys", s.schema, group)
	var ss []sqlstore.Statement
	for n, t := range taken {
		if !t.read {
			continue
		}
		mode := "Shared"
		if t.write {
			mode = "Exclusive"
		}
		ss = append(ss, applock(fmt.Sprintf("rebalancer %016x %03x", place, n), mode))
	}
	return ss
}

// order lets those who open or supersede sessions of a node pass one after the other.
func (s *Store) order(group, node string) []sqlstore.Statement {
	return []sqlstore.Statement{applock(fmt.Sprintf("rebalancer %016x", sqlstore.Number("node", s.schema, group, node)), "Exclusive")}
}

// applock takes a lock, or undoes the transaction. The server tells it in a result: every negative one means that the lock is not held.
func applock(name, mode string) sqlstore.Statement {
	return sqlstore.Statement{
		SQL: `EXEC @lock = sp_getapplock @Resource = ?, @LockMode = '` + mode + `', @LockOwner = 'Transaction', @LockTimeout = @patience;` +
			fmt.Sprintf(` IF @lock < 0 THROW %d, 'rebalancer: a lock was not granted', 1`, notGranted),
		Args: []any{name},
	}
}
