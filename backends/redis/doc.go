// Package redis is a store in Redis (7.0 or newer) or Valkey: one server, Sentinel or Cluster.
//
//	store, err := redis.Open("rediss://user:password@host:6379/0")
//	store, err := redis.New(client) // the redis.UniversalClient that the program has
//
// Every call is one script on the server, by the server's clock; a call that concerns more than 500 entries is several. All keys of a
// group have one hash tag, so that a group is on one node of a Cluster, and begin with a prefix; see [WithPrefix]. Hints come by
// publish and subscribe, over one connection for each store. A client's RESP version, pool and TLS are its own affair; its pool must
// have a connection to spare for renewals: blocking commands of the program need a pool of their own. A redis.Ring is refused.
//
// # Rights
//
// [ACL] gives the command that makes a user with no more rights than the store needs. Without INFO the store cannot see restarts and
// failovers, and without CONFIG some of what [Store.Warnings] tells: it works, and Warnings says so.
//
// # Data that is lost
//
// Each group has a record {incarnation, since} that names the server's run id and replication id. A record that is absent (FLUSHALL, a
// restart without data) or names another server (a restart, a failover) begins a new incarnation: nodes look again at what they hold,
// and nothing is claimed before the group's grace is over. So it does when a server gets its first replica, or had none for
// an hour (repl-backlog-ttl): its replication id changes. The clocks of a master and its replicas must differ by less than the grace.
// A snapshot that is loaded by hand into a running server is not noticed.
//
// # Replicas
//
// Redis acknowledges a write before its replicas have it, and a master that is cut off goes on acknowledging for as long as it likes
// while Sentinel or the Cluster has promoted another. Two things make that safe; without one Warnings says "unsafe under failover":
//
//   - [WithReplicas]: renewals and commits count only when so many replicas confirmed them (WAIT), at one more wait per call; or
//   - min-replicas-to-write on every server: a new incarnation then begins later by min-replicas-max-lag, so that the old master
//     has stopped.
//
// Their number is half of the replicas, rounded up: a majority of the copies, that two masters cannot have at one time.
//
// # Memory
//
// A server with an eviction policy and a limit of memory is refused: it may drop claims. Sessions, and what is bound to them, have
// an expiry of a week as a backstop; what is not bound (settings, registered resources, checkpoints) stays until it is deleted.
//
// # Failure model
//
// What was acknowledged and is lost by a server (appendfsync other than always, a failover) does not break the first promise: claims are
// made again after the grace. But a checkpoint that was saved may be lost, and work done after it is then done again.
// A client that repeats commands by itself (MaxRetries) is safe: a commit that arrives twice is applied once.
package redis
