// Package zookeeper is a store in a ZooKeeper ensemble, from version 3.8.
//
//	store, err := zookeeper.Open("zk://user:password@zk1,zk2,zk3/chroot")
//
// Each session has a connection of its own, and the store one more. Session.TTL is four fifths of the timeout that the servers grant, which
// they keep between 2 and 20 ticks (tickTime, 2 s unless it is configured) if they are not told otherwise. Wish for a TTL of five ticks or
// more: below that the grant does not cover a server that loses its leader, and only the node's margin does.
//
// # The layout
//
// Below the chroot, names are escaped; a session is named by a random text and a mark of its node:
//
//	/clock                      written for the server's time
//	/i/i<incarnation>           the record of the data; one
//	/g/<group>/s/<session>      ephemeral: the session is alive; a renewal writes it
//	/g/<group>/u/<session>      ephemeral: it may renew and bind; a supersede deletes it
//	/g/<group>/h/a<address>     a hint is a write of it
//	/g/<group>/e/<folder>/<bucket>/<key>    an entry
//
// Entries are not ephemeral, also those that are bound: they name their session, and are there while it is. So the end of a session is one
// change, however much it held. And the data version, which a multi compares, must not begin again when a key is deleted
// and put again, as that of an ephemeral does: a late release would free what somebody else has taken by then. The znode of a deleted
// key stays, empty, for ten minutes, which is longer than any request can be under way; the sweep removes it then.
// A session that is not there has ended for good, because its name is random.
//
// Each transaction is one multi. It checks first that the session is there, that it may bind, and that the incarnation is the
// one that the node has accepted; then the data versions of what it checks, and the sessions behind that; then it writes. It also
// writes the bucket, so that a digest reads only the buckets that were written since the last one.
//
// # The packet limit
//
// A server refuses requests of more than jute.maxbuffer, 1 MB unless it is configured. A transaction that is larger is refused with
// ErrInvalid. Listings are of a sixteenth of a folder. The values of a key have at most 256 KB.
//
// A read of many entries takes a request for each, 128 under way at a time. The digest that a renewal asks for is read from what changed, in the
// background, and is left out of the reply when that takes more than half of the time that the renewal has.
//
// # Renewals and the TTL
//
// A renewal is a write, which needs a majority. The client library pings by itself, which would keep a session alive whose node is stuck: the
// driver closes the session when it was not renewed for a little more than the TTL. Its node is then told that it is lost; where no server can be
// reached, what it holds stays until they end it, a timeout after they heard of it last. The leader hears of the clients of another server only with
// that server's answers to pings; so a session may end up to half a tick, and the time between two renewals, before its timeout
// after the last renewal was acknowledged. That is what the fifth is for. A renewal that nothing was sent before for longer than that is sent a
// second time after a tenth of the timeout. So renew at intervals of at least a tenth and at most a fifth of the timeout: a sixth of the TTL is.
//
// After a session has expired, the client library would begin another one, and send it what was meant for the old one. It gets
// no connection for that.
//
// # Versions and incarnations
//
// The version of an entry is its mzxid, moved by a constant: the time in ns at which the incarnation began, less the
// zxid of that. So versions grow also across an ensemble that was wiped and counts from the beginning.
//
// The store takes the data for lost when the record is absent, and when an answer to a write is not newer than what was seen
// before: an earlier copy was restored. The latter only who has seen what was lost can notice; where nobody was connected, it cannot be noticed. A
// session that knows more than the servers is refused by them, and lost.
//
// # Rights
//
// With a user, or WithDigest, what the store makes is open to that user alone (scheme auth). The chroot must exist; the user needs the rights to
// read, create and delete below it. ZooKeeper sends the password as it is: use WithTLS where others may listen.
//
// # Failure model
//
// A write is on the disks of a majority before it is acknowledged (do not set forceSync=no). Reads ask the leader first (sync), so they are as new as
// what was acknowledged before them. A call that is not answered in time leaves nothing behind; a renewal that is not answered closes its
// connection, so that the next one goes to another server. Stamps of reads are the server's time at the last write, and what has passed since.
package zookeeper
