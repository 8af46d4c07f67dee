// Package seen remembers which files of a resource were worked, for sources that leave them where they are. It knows nothing
// of places: names and identities come in, and what it keeps is in the checkpoint of the resource's claim, so that it moves
// with the resource and only the owner can change it.
//
// # Guarantees
//
// Settle returns nil only after the store has it. What was not written when a process dies is worked again, nothing else: each
// write is one transaction that leaves either the old state or the new one, and what a crash leaves behind beside them is
// removed by the next Open. Every write checks the claim, so that an old owner who wakes up is refused (rebalancer.ErrLost),
// and the version of the head, which each Open changes, so that the late write of an earlier State under the same claim is
// refused too (rebalancer.ErrStale).
//
// A name is known together with an 8-byte hash of its file's identity: another file under an old name is unknown. A name is
// forgotten only when it was missing in 3 complete and plausible listings and for 24 h. Nothing else is ever forgotten: a
// resource with 200,000 names takes no more (ErrFull).
//
// # What is stored
//
// All keys begin with Prefix. The head, at most 32 KB, has the format, the fence, the last plausible listing, and the chunks
// in the order of their names: number, count and checksum. A chunk, at most 64 KB, has names in the order of their bytes, each without what it
// shares with the one before, with identity and outcome. The journal, at most 64 KB, has what was settled since the chunks
// were written, 256 names at most, in the same form.
//
// A settlement rewrites the journal. When it is full, the chunks that its names belong to are written anew under new numbers,
// and then one transaction replaces the head, empties the journal and deletes the old chunks.
//
// # Costs
//
// One write of at most 64 KB for each call of Settle, and a call waits until 200 ms after the last write unless it brings 100
// settlements. For each 256 settlements one rewrite of the chunks that they touch: one or two where names ascend, all of them
// where names are random. All names are in memory, in about 60 bytes and the name itself;
// 200,000 are read in a fraction of a second.
//
// The chunks of one head have at least 80 MB of names together: 200,000 of 400 bytes that share nothing with the ones beside them, or
// 75,000 of the longest; what names share with the one before, as those of one folder do, is not counted. A resource whose names are
// longer is full (ErrFull) before it has 200,000. Room counts each name that is to come as one of the longest.
package seen
