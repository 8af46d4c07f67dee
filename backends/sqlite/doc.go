// Package sqlite is a store in one SQLite file, for the processes of one machine. No server, no cgo.
//
//	store, err := sqlite.Open("/var/lib/app/group.db")
//
// The file and its folder must be on a local file system: network file systems are refused. Give the file a folder of its
// own (see below). The shortest TTL is one second. Only Linux is supported.
//
// # Clocks
//
// Sessions end by the kernel's clock since boot, which counts the time that the machine was suspended and is never
// stepped. When the machine has booted again, every process of the earlier boot is gone: its sessions are ended, and
// nobody has to wait. Versions, and so fences, are drawn from wall time and grow also when that is set back; where an entry was
// deleted more than a day before, only if it was set back by less than a day.
//
// # A file that is deleted or replaced
//
// Every call compares the open file with what the path names. When the file was deleted, replaced or restored from a backup,
// the store opens what is there now, or makes a new file, as a new incarnation: sessions and claims of the old file are lost,
// and no claim is granted before the grace is over, since others may still work under the old file.
//
// A file that nobody works under needs no grace. Each open store holds a shared lock (flock) on the folder of its file; whoever
// makes a file and gets the folder's exclusive lock first has the proof. The lock is inherited by the child processes of
// the program, so a child that outlives its parent counts as somebody who works. Several store files in one folder share
// the lock: while one is in use, another made there waits the grace at its first start. Deleting and making again the whole folder while
// nodes work defeats the proof, and so does copying an older state over the content of the open file: do neither.
// To restore a backup, stop the nodes or rename the copy over the file, and remove the -wal and -shm files beside it.
//
// # Proof of death
//
// A session that is superseded ends at once when its process is dead. The proof is a lock that each session has on one byte of
// the folder, through a descriptor that the store opens once and the kernel closes. Child processes inherit it as they do the lock
// above, those of an earlier session too: a handler's command that outlives its parent withholds the proof for as long as it
// runs, and the session then ends by its TTL. So it does when a process is frozen, and when a store was closed
// without its sessions. After a reboot the sessions have ended by themselves. A command that must not withhold the proof is
// to be started without the program's descriptors.
//
// # Failure model
//
// A file that is cut short while it is open gives an error at every call that no retry heals, before any more is written. Do not VACUUM it
// while nodes work: it shrinks too.
//
// A write is on the disk (fsync) before it is acknowledged. A full disk and a file that another program has locked are errors
// that pass: calls wait for the lock until their context ends, at most half a minute. A process that is frozen (SIGSTOP)
// in the middle of a commit stops the others until it goes on, because it holds the file's lock. A call that the kernel does not
// return from (a dead disk) cannot be ended by its context. A reverted snapshot of the whole machine cannot be noticed.
package sqlite
