// Package sqlstore is the store contract over SQL, shared by all stores on SQL databases. A database's own package is a
// Base: it begins transactions, knows the clocks and the incarnation, and carries hints. The statements here are plain
// and the same everywhere; what differs is a Dialect.
//
// # Tables
//
//	sessions(id, grp, node, expires, ttl, touched, opened, superseded, proof)   expires in µs of the store's clock, opened in the order of opening
//	entries(grp, name, value, version, session, gone)   session is empty for an entry that is not bound
//
// Names, groups and values are binary, so the database compares bytes. A deleted entry stays as a row with gone = 1 that
// remembers its version, for a day: a clock that is set back does not make versions smaller. A session that was ended has expires = -1.
//
// # Round trips
//
// Statements are queued in a Tx and sent together. A renewal is one conditional UPDATE with its questions behind it, all sent with the
// commit. A commit of any number of transactions loads and locks what they depend on, is decided in memory, and writes the outcome with
// the commit. A Base that can send statements in one batch makes that one round trip and two; others run them one after the other.
//
// # Why a commit writes to sessions
//
// A statement that merely reads that a session is dead proves nothing: a renewal may be under way in an open transaction.
// A commit that relies on a session being dead first ends its row (WHERE expires <= now), and one that relies on it being
// alive first locks or touches it, in the same transaction: the row orders them. No row is changed by all commits of a group.
//
// Locks are taken in one order by everybody, so nobody waits in a circle: the keys of entries, sorted; then the sessions that have run out, by
// id; then those that live, by id. A sweep waits for nobody.
//
// # What a new database needs
//
//   - A Base: Write, which runs the queued statements and then COMMIT, says ErrUnknown only where the COMMIT was sent and not answered, and
//     repeats what a deadlock or a lost connection has undone; Urgent, the same on a connection that nothing else holds up; Read; and Listen, Wake
//     and Woken (ErrNoHints, nothing and nothing where it polls). Over database/sql, Run is all that Tx.Run needs.
//   - A record {incarnation, since} that each transaction reads and compares with the server's own identity (see package
//     postgres: guard and establish). Where the commit is sent in the same trip, a record that differs must fail the whole batch.
//   - {now} as it was before the transaction waited for any lock, {wall} as it is when the statement runs, {incarnation} in the transaction: SQL, or
//     literals where the Base reads them first and the clock is not drawn before the locks matter (SQLite).
//   - Lock, unless one transaction writes at a time: it orders the writers of the same keys until the end of their transactions, taking
//     the keys in their order. Locks on rows need rows for keys that are absent (Placeholders); application locks do not.
//   - Order, unless one transaction writes at a time: an application lock on the node's name.
//   - Update, Share and Skip only where SELECT can lock rows. Without them sessions are held by an UPDATE of their counter, which serves as well.
//   - Each statement must see what was committed before it began (READ COMMITTED, also with row versions), and a conditional UPDATE that waited
//     must look at the row again.
//   - An UPDATE of an entry names the version that it replaces, and Done tells when it changed no row: the commit is then undone and tried again, so two
//     writers never both succeed also where Lock fails. Run does this before the COMMIT.
package sqlstore
