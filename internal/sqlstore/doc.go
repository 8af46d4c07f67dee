// Package sqlstore is the store contract over SQL, shared by all stores on SQL databases. A database's own package is a
// Base: it begins transactions, knows the clocks and the incarnation, and carries hints. The statements here are plain
// and the same everywhere.
//
// # Tables
//
//	sessions(id, grp, node, expires, ttl, touched, opened, superseded, proof)   expires and opened in µs of the store's clock
//	entries(grp, name, value, version, session, gone)   session is empty for an entry that is not bound
//
// Names, groups and values are binary, so the database compares bytes. A deleted entry stays as a row with gone = 1 that
// remembers its version, for a day: a clock that is set back does not make versions smaller.
//
// # Why a commit writes to sessions
//
// A statement that merely reads that a session is dead proves nothing: a renewal may be under way in an open transaction.
// A commit that relies on a session being dead first ends its row (WHERE expires <= now), and one that relies on it being
// alive first touches it, in the same transaction: the row orders them. No row is shared by all commits of a group.
//
// Every write of an entry is one conditional statement that names the version it replaces, so two writers never both
// succeed, also where the database has no lock to offer.
package sqlstore
