// Package linear checks that the stores' contract is linearizable: that every call takes effect at one moment between its start and its answer, in one order
// that all clients agree on, whatever happens to the server, the network and the clients.
//
// Clients run random calls against a store while faults happen, and write down what they asked, what they were told, and when. A sequential model of the
// contract then either explains that history, or the store has broken its word. The search for an explanation is that of the library porcupine.
//
// # The model
//
// Its state is the entries of some keys, with their versions and the sessions that they are bound to, which sessions have ended or were superseded, and the
// incarnation of the data. Each transaction of a commit is an operation of its own, and so is each key of a read, since a read is no snapshot. A session's
// end is an operation too: it may happen when its TTL has passed since the start of its last acknowledged renewal and, where the store is exact, must have
// happened a TTL after the last one ended. What was answered with backends.ErrUnknown is an operation without an end: it may happen at any time from then
// on, or never. What was seen to have happened must have happened as a whole.
//
// ZooKeeper's driver calls a session lost when it was not renewed for its TTL, although no server could be told: the model lets what is bound to it stay, and
// nothing more happen under it.
//
// Stores over SQL read the clock when a transaction begins: one that began before a session's end counts the session as living, or renews it, and may be done
// after a read has seen the end. The model lets such a read see an absence too early.
//
// Linearizability holds for a set of keys if it holds for every part of it that no transaction joins. So keys that are never in one transaction are checked
// apart, each part with the sessions that matter to it; the incarnation alone is one more part. Where the search ends within a second, all keys are checked at
// once as well: a session ends in one moment for all that it holds.
//
// # What is left out
//
// Losses that the contract allows: a store that was emptied or rolled back, and acknowledged writes that a server without durable settings lost. Servers run
// with settings under which what was acknowledged is on disk (Redis and Valkey: appendonly yes, appendfsync always). Grace, hints, digests and the time left
// of sessions are package storetest's.
//
// The package has tests only.
package linear
