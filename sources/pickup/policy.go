package pickup

import (
	"log/slog"
	"time"
)

// Policy says which files are messages, when, in which order, and what becomes of them. OnSuccess is required; the zero
// value of every other field is a working default.
type Policy struct {
	// OnSuccess is what becomes of a file whose handler succeeded: Delete(), MoveTo(folder), or what else the source
	// can do.
	OnSuccess Action
	// OnFailure is what becomes of a file that is given up: MoveTo(folder), with the reason in a file beside it, or
	// what else the source can do. Defaults to none: such a file stays and is tried again.
	OnFailure Action

	// StableFor is how long a file must not change, seen by two observations, before it is delivered. Defaults to 1 s; a
	// negative value turns the check off, for places into which files are only renamed.
	StableFor time.Duration
	// MinAge is how old a file must be, by its modification time. Defaults to 0.
	MinAge time.Duration
	// Ignore are patterns (path.Match) of names that are no messages. Defaults to hidden files and usual names of uploads
	// in progress: .* *.tmp *.part *.partial *.filepart *.crdownload. An empty list that is not nil ignores nothing.
	Ignore []string
	// DoneFile is the name of a second file that says that the first is complete, with * for the name of the first
	// ("*.done"). A file is then delivered only when its done-file is there, is not older than the file by its modification time,
	// and does not change either for StableFor; a file that is written anew needs a new done-file. In a tree it is in the folder of
	// its file, and the pattern is about the last part of the name, as those of ChecksumFile and Set. The done-file leaves with its
	// file. Defaults to none.
	DoneFile string
	// ChecksumFile is the name of a second file with a checksum of the first, with * for the name of the first ("*.md5",
	// "*.sha256"). A file is then delivered only when its checksum file is there and does not change either for StableFor, and its
	// body is held against it while it is read: at its end a body that does not match fails with ErrChecksum instead of io.EOF. What a handler does not
	// read to the end is not checked. The checksum file leaves with its file: deleted with it, or moved with it.
	//
	// It holds a checksum in hexadecimal: MD5, SHA-1, SHA-256, SHA-384 or SHA-512, by its length; alone, as md5sum and
	// sha256sum write it ("… name", "… *name"), or as "SHA256 (name) = …". Of several lines the one with the file's name
	// counts. Defaults to none.
	ChecksumFile string
	// TriggerFile is the name of a file whose presence releases the other files: those that are there when it is found
	// are delivered, later ones wait for the next. When all of them are settled, the trigger file is removed, if it is
	// still the one that was found; so a sender that finds it gone may begin the next round. After a crash or a move of
	// the resource the trigger file is still there and releases what is there then. Defaults to none.
	TriggerFile string
	// Set makes several files one message: patterns with one * each, which stands for what the files of a set have in
	// common ({"*.xml", "*.pdf"}). A set is delivered when a file for each pattern is there and all are stable. The first
	// pattern's file leads: the message has its name, time, size and done-file, and Open reads it; the others are in
	// Message.Members. All are settled together, the first pattern's file last. Files have no transactions: a crash in between leaves
	// the first pattern's file, and a set that lacks files for 10 minutes is told to Logger. It should be taken away before the
	// next set of the name comes, or names should not be used again: the two would be delivered as one set. Files that no pattern matches are no
	// messages; a file that several match belongs to the one that leaves least to the *. Defaults to none: each file is a
	// message.
	Set []string
	// Empty is what becomes of files without content. Defaults to EmptyDeliver.
	Empty Empty
	// ClaimByRename renames a file before it is handed out, to .rebalancer-claimed-(a hash of the group's name)-(a number of the
	// owner)-(its name), so that programs that know nothing of the group do not take it. What is not worked gets its name back when
	// the resource is given back; after a crash the next node of the group knows it by its name and claims it for itself.
	// Message.Key stays. A file whose name has more than 212 bytes is not delivered, with a warning to Logger: it has no room for the
	// rest. Defaults to false.
	ClaimByRename bool
	// Order is the order of deliveries. Defaults to ByName.
	Order Order
	// StrictOrder lets a file that is not ready yet (unstable, or waiting for a retry) hold up those after it. Defaults to
	// false: it is passed over and comes when it is ready.
	StrictOrder bool
	// Interval is the time between two listings of a resource while files come. It grows while a listing takes long, so
	// that listings use at most a twentieth of the time. Defaults to 1 s.
	Interval time.Duration
	// IdleInterval is what Interval grows to while no files come. Defaults to 3 s, or Interval if that is longer.
	IdleInterval time.Duration
	// Logger is told what nobody else learns: a file that changed or vanished under its handler, a name that cannot be
	// worked, a resource that another group works too. Defaults to none.
	Logger *slog.Logger
}

// Order is the order in which the files of a resource are delivered.
type Order int

const (
	// ByName delivers by the bytes of the names.
	ByName Order = iota
	// ByTime delivers by modification time, then by name. Each file must be looked at before the first is delivered.
	ByTime
)

// Empty is what becomes of files without content.
type Empty int

const (
	// EmptyDeliver delivers them like others.
	EmptyDeliver Empty = iota
	// EmptyWait leaves them until they have content.
	EmptyWait
	// EmptyReject gives them up without a call of the handler, as OnFailure says, which must be set.
	EmptyReject
)
