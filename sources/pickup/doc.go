// Package pickup says which files are messages and what becomes of them, for all sources whose messages are files or
// objects: their Config embeds a [Policy].
//
//	file.Config{Root: "/data", Policy: pickup.Policy{OnSuccess: pickup.Delete()}}
//
// # What is known of an upload
//
// A file is delivered when it is whole, as far as that can be known. From outside, an upload that pauses looks like one
// that has ended: StableFor and MinAge tell the two apart only while the pause is shorter. An upload that may pause for
// longer needs a sign by the sender: a rename when it is complete (from a name that Ignore has), a done-file or a
// checksum file; TriggerFile says so of all files at once.
// A done-file that is older than its file counts for nothing: it was written for what had the name before, and is left when a
// process dies between the file and its done-file, or when a file that stays is written anew. So a sender that gives
// its files times of the past must not use a name again, or take the old done-file away before.
// What is read is held against what was listed: a body ends without an error only if the file has the length it
// was listed with and has not changed; with a checksum file, only if it has that checksum too, else with ErrChecksum.
//
// # Files that belong together
//
// Set makes a message of several files: Message.Open reads the one that leads, Message.Members has the others. Nothing of a set
// is deleted or moved if one of its files has changed meanwhile: it comes again as what it is now. The files leave one after
// the other, the leader last, so what a crash in between leaves is a leader without its members, which waits: a new member
// of that name would make it a message again. Names that are not used again avoid that.
//
// A trigger file is removed when all that it released is settled. A process that dies before finds it again, and with it
// whatever is there by then; so a sender begins the next round when it is gone. A file is out of a round when it was settled
// or a look has shown that it is gone, not because a listing lacks it.
//
// # Names
//
// A name is used as the server gives it, control characters and invalid UTF-8 included. One that would lead out of its folder
// ("..", a slash, a zero byte) is reported to the Logger and left alone. Where a folder cannot take a name, its odd bytes are
// written as % and two digits. Nothing is overwritten, also not by names that differ in case alone. Names that begin with
// .rebalancer- are ours and never messages.
//
// # Failures
//
// What failed is tried again; what is given up goes where OnFailure says, with the reason in a file beside it. Without
// OnFailure it stays and is tried again, more and more slowly. To stop a resource at the first file that is given up is the
// group's choice (group.Retry, Exhausted: group.Stop); with StrictOrder a file that is not ready holds up those after it.
//
// A listing that lacks what was there proves nothing: attempts and pauses of its files are remembered for an hour.
//
// # Files that stay
//
// With Keep and Tag the group's store remembers what was worked, in the checkpoint of the resource, so that it moves with the
// resource. Best is Delete or MoveTo, which need no memory; Keep is for places where nothing may be changed.
//
// A file is known by its name and identity: size and time, or version or ETag of an object. Another file under an old name is
// another message. Where a listing tells the identity (S3, SFTP, FTP servers with MLSD) that is noticed by the next listing, and
// files that were worked cost nothing else. Where it tells names alone (directories, FTP servers with LIST) it is noticed at
// once when a listing lacked the name in between; otherwise when the file has its turn: after each listing some of those that
// were worked are looked at again, as many as a twentieth of the time between two listings allows, at most 2,048. So 100,000
// files have their turn in about 50 listings where a look costs next to nothing, and in about an hour where it takes 2 ms.
// A file that is written over with one of the same size and time is the same file.
//
// A settlement is done when the store has it: one write for each batch, and no sooner than 200 ms after the last one unless the
// batch has 100. What was not written when a process dies comes again. Outcomes of failures and numbers of attempts are kept too,
// until the file succeeds or another one takes its name.
//
// A resource can have 200,000 such files; then no new ones are delivered and Fetch says so. A name is forgotten when three
// listings lacked it and 24 hours have passed. An empty listing proves nothing, and one that is smaller by 3 in 10 only if some
// of the missing files are looked for and not found. So room comes a day after worked files were taken away. Names that are long and
// share little with each other take more room: those of one resource have 80 MB in all, in which what a name shares with the one before
// is not counted. A file whose name is longer than 1,024 bytes cannot be remembered; it is left alone, and a warning tells its name.
//
// The memory does not know which device a directory is on. When a share is not mounted and its mount point has files of its own, these
// are delivered, and after a day the names of the share are forgotten: its files come again when it is back. Leave mount points
// empty, or name a directory in the share as root, so that it is not there when the share is not.
//
// The keys of the checkpoint that begin with "files.seen/" are the source's, those of handlers must not.
package pickup
