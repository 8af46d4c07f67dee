// Package backends is the contract of a group's store: a small transactional key space with sessions. All logic of the
// protocol is in package coord; a backend gives only what is written here, and package storetest checks every
// sentence of it. Not covered by compatibility before v1.
//
// # Keys and values
//
// A key is a string of 1 to MaxKey bytes, in a key space of its own for each group. Keys are bytes: no collation, trimming
// or case folding decides identity or order. A value has at most MaxValue bytes.
//
// # Versions
//
// Every put gives its key a new version, greater than every version that the key had before: also across deletion, across
// writers that waited for each other, and across a store that lost its data. It is max(previous + 1, the server's wall
// time in µs), drawn after the lock that orders the writers (a store with a total order of its own may use that).
//
// # Sessions
//
// A session lives until its TTL after its last renewal, by the store's own clock. An entry that a session bound to itself
// vanishes with it: from the moment at which the session ends, every read, check and digest sees the entry as absent,
// whether or not its row has been removed. An ended session never comes back, and its identifier is random.
//
// A commit or renewal may read the clock when it begins, and so count a session as living, or renew it, that would have ended before it is done: what
// is bound to the session was absent for reads meanwhile. Who acts on an absence does so with a check, which then fails; and a node whose
// renewal takes so long has stopped trusting its session.
//
// # Superseded sessions
//
// Two processes with one node name must not work at one time. The newer one calls Supersede, which tells the sessions of
// that name in the group that were opened before the caller's own, in the order in which the store opened them. So of any
// number of sessions that supersede each other, in any order, the newest wins.
//
// A renewal and a supersede are ordered: no renewal of an older session succeeds after the supersede was acknowledged. Nothing is
// extended, and nothing is freed but what the old process releases: with the transactions that it may still commit, or with
// Close, which frees at once. All else stays until the end that its session has at the store, exactly.
//
// A proof of death is the driver's own; without one the entries stay until the session's end. It counts only if it covers the
// child processes that may still work for the dead one. That nothing was heard of a process proves nothing: it may be frozen.
//
// What a supersede did is part of the data: after a loss or rollback it may be undone, and is repeated in the new incarnation.
//
// # Data that is lost
//
// A store keeps a record {incarnation, since} with its data. Where the record is absent, or the server is not the one that
// it names, the data may have been lost or rolled back: whoever notices writes a new record, with a random incarnation and the
// store's time. Requests name the incarnation that their node has accepted, and are refused in another.
//
// # Outcomes
//
// A write is durable before it is acknowledged. Every write says how it ended: applied, conflict, or unknown; unknown is resolved
// by reading. Every call returns soon after its context ends, also when the server hangs.
package backends
