// Package postgres is a store in a schema of a PostgreSQL database, 15 or newer. Any number of groups and of programs share one schema.
//
//	store, err := postgres.New(pool, postgres.CreateSchema())                      // a *pgxpool.Pool that the program has
//	store, err := postgres.Open("postgres://app@db.example.com/app?sslmode=verify-full")  // a pool of its own
//
// Versions, and so fences, are drawn from the server's wall time after the locks, and grow also when it is set back.
//
// # Schema and rights
//
// The tables are made by Create, by a store that was opened with CreateSchema, or by a DBA with what DDL gives. A role needs no more than the
// rights that Grants gives, on the three tables of the schema. Nothing is made outside the schema; channels of NOTIFY and application locks
// carry its name in their hashes.
//
// # Connections
//
// A renewal is one round trip, a commit of any number of claims two; both are durable before they are acknowledged whatever the server's
// synchronous_commit is (a stricter remote_apply stays). Besides the pool a store has one connection of its own, made with the pool's settings and
// hooks (BeforeConnect, AfterConnect), for renewals and LISTEN together: a pool that the program has emptied stops no renewal. Where that
// connection cannot be had, renewals go through the pool.
//
// On connections that lead straight to the server the statements are prepared, about thirty in each, which halves what a renewal or a small commit costs the
// server. A store finds out by itself where a pooler stands between, and prepares nothing there, nor where the pool's settings are those that
// pgx has for that (default_query_exec_mode other than cache_statement, or statement_cache_capacity 0). No other state is kept in a connection but LISTEN.
//
// # Hints
//
// Hints are sent by NOTIFY after the commits, gathered into one transaction that waits for no disk. A store finds out whether they arrive
// (behind PgBouncer in transaction mode they do not) and else polls, as it does while more than 50 processes work on the schema: more
// listeners would slow down every NOTIFY of the database.
//
// # Failure model
//
// An incarnation is bound to the timeline of the server's log, the start of the server, the database, the table of the record and the
// transaction that wrote it. So a failover, a restart, a restored base backup, and a dump that is loaded (also into a server that runs on) each begin a
// new one, and no claim is granted before the grace is over. A restart costs a grace too, although nothing is lost: a server cannot tell a
// restart from a restored backup. A snapshot of the whole machine that is reverted cannot be noticed. With asynchronous replication the lag of the
// promoted standby must stay below the grace, and the old primary must be stopped within it; give ttl more than 1.5 times of what a failover takes.
//
// Sessions end by the server's wall clock. A process that falls silent in the middle of a commit (frozen, or cut off) is ended by the server
// after 5 s, so it holds up others for no longer; nothing of its commit is applied. Serialization failures, deadlocks and lost connections are tried again where nothing
// was applied for certain; a commit whose answer is lost ends with backends.ErrUnknown. A standby is refused with an error that
// passes: after a promotion, or when the address leads to the primary, all goes on.
package postgres
