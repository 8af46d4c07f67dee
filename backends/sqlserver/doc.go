// Package sqlserver is a store in a schema of a SQL Server database, 2016 or newer, or of Azure SQL. It is experimental: the README says on what
// server its suite was last run.
//
// # What it asks of the server
//
// Plain statements that are conditional in themselves, transactions at READ COMMITTED, and application locks (sp_getapplock). It is correct with
// READ_COMMITTED_SNAPSHOT on and off, and needs no lock hint; with it on readers do not wait for writers, so on is better. No
// commit asks for DELAYED_DURABILITY, and a database that forces it on is refused.
//
// The login needs the rights that Grants prints. CreateSchema, or Create, also CREATE TABLE and CREATE SCHEMA in the database.
//
// # Names
//
// The server takes binary values for equal that differ in zero bytes at their end only, so that "k" and "k\x00" would be one key. Names and values are
// therefore stored without zero bytes: 00 becomes 01 01, and 01 becomes 01 02, which keeps their order. The names of a group and a
// key may have 1700 bytes together, as they are stored.
//
// # Round trips
//
// A renewal is one call. A commit, or the opening or closing of a session, is four: begin, load and lock, write, commit. A read is one. There are no
// hints: Listen fails with backends.ErrNoHints, and nodes poll.
//
// Renewals have a connection of their own: Open makes one beside its pool, New keeps one of the pool that it was given. Where it is held up they take
// one of the pool.
//
// # Data that was lost
//
// The record names the server and its start, the database and its making, the table, a stamp that only the server can give, which rows that
// were copied do not have, and the recovery fork of the database, which changes when a backup is restored or a failover was forced. A login that
// may not see the fork compares the rest, and Warnings says so. A snapshot of the machine that is put back cannot be noticed.
//
// # Limits
//
// The server has no end for a transaction whose client fell silent. A process that is frozen in the middle of a commit (it takes a few ms) keeps its locks
// until it thaws or its connection ends: its own session cannot be renewed, which does no harm, and commits on the keys that it locked fail, with an
// error that says so. Nobody else's renewals wait for it, but that of a dead session that it was about to replace. KILL ends it.
//
// A call that is broken off may still be carried out by the server: its outcome is then unknown.
package sqlserver
