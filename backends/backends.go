package backends

import (
	"context"
	"errors"
	"time"
)

const (
	// MaxKey is the greatest length of a key, in bytes.
	MaxKey = 1024
	// MaxValue is the greatest length of a value, in bytes.
	MaxValue = 256 << 10
)

// Store opens sessions. It is safe for concurrent use by many groups.
type Store interface {
	// Open opens a session of a group. Its errors wrap ErrFatal when no retry can heal them (wrong password, missing
	// schema, a TTL that the store cannot do).
	Open(ctx context.Context, o SessionOptions) (Session, error)
	// Groups lists the groups that have an entry which is not bound to a session, in order of their bytes.
	Groups(ctx context.Context) ([]string, error)
	// Close ends only what the store itself opened. Calls fail with ErrClosed afterwards.
	Close() error
}

// SessionOptions say what to open.
type SessionOptions struct {
	Group string        // required
	Node  string        // who opens it, for people who look into the store and for Supersede; may be empty
	TTL   time.Duration // wanted; Session.TTL is what the server granted
}

// Session is one node's life in the store. It is safe for concurrent use. Requests and replies are structs so that
// fields can be added without breaking drivers.
type Session interface {
	// ID is random and unique; entries bound to the session carry it.
	ID() string
	// TTL is what the server granted.
	TTL() time.Duration
	// Opened is the stamp of the reply that opened the session.
	Opened() Stamp
	// Renew extends the session by its TTL if r.Incarnation is the live one, and reports the state of the named keys.
	// It fails with ErrSessionLost, for good, when the session has ended, with ErrSuperseded when a newer one took over (see Supersede),
	// and with ErrIncarnation, when the store's data is of another incarnation. It then extends nothing, and the reply's Stamp is valid.
	Renew(ctx context.Context, r RenewRequest) (RenewReply, error)
	// Read returns the entries with the named keys and those below the prefixes, sorted by key, without those of ended
	// sessions. It is not a snapshot: two entries need not have been there at one time. It works after the
	// session ended too.
	Read(ctx context.Context, r ReadRequest) (ReadReply, error)
	// Commit carries out each transaction on its own, in any order: all its checks hold, then all its puts and deletes happen, else
	// nothing does. An error says that nothing was applied, for certain; otherwise there is one Result per transaction.
	Commit(ctx context.Context, r CommitRequest) (CommitReply, error)
	// Listen calls hint after commits that name the address in Wake, until ctx or the session ends; it returns once it
	// listens. A hint may be late, doubled or lost. hint does not block. It fails with ErrNoHints where the store has none.
	Listen(ctx context.Context, address string, hint func()) error
	// Supersede tells the older sessions of a node's name (SessionOptions.Node, in the same group) that this one takes over: from
	// then on they can neither renew nor put bound entries, which fails with ErrSuperseded. What they hold stays until
	// their last end at the store, and they may still delete, put what is not bound, and close. Newer sessions of the name are
	// not affected. A store that has a proof that the process behind an older session is dead ends that session at once.
	// It fails with ErrSessionLost or ErrSuperseded, doing nothing, when this session has ended or was superseded itself;
	// after any other error the outcome is unknown, and it may be repeated.
	Supersede(ctx context.Context, node string) (Superseded, error)
	// Close ends the session at once with all that is bound to it. Idempotent; closing a session that has ended is no error.
	Close(ctx context.Context) error
}

// Stamp is carried by every reply.
type Stamp struct {
	// Time is the store's clock when it handled the call.
	Time time.Time
	// Incarnation identifies the data: another one means that acknowledged writes may have been lost.
	Incarnation string
	// Since is the store's time at which the incarnation began. Zero: it is proved that nobody works under an earlier one.
	Since time.Time
}

// RenewRequest extends a session and asks for what a waiting node needs to know, so that it needs no second call.
type RenewRequest struct {
	Incarnation string   // the one that the node has accepted
	Keys        []string // report their state
	Digests     []string // prefixes: report the digest of what is below them
	Sweep       bool     // also remove what ended sessions of the group left behind
}

// RenewReply answers a renewal. Keys that are absent are not in Keys. A digest that the store could not read in time is not in Digests: a
// later renewal has it.
type RenewReply struct {
	Stamp
	Keys    map[string]KeyState
	Digests map[string]Digest
}

// KeyState is what a renewal tells of a key.
type KeyState struct {
	Version int64
	Session string        // "" when the entry is not bound
	Left    time.Duration // of the session that it is bound to; negative when it is not bound or the store cannot say
}

// Digest sums up the live entries below a prefix.
type Digest struct {
	Sum   uint64        // over their keys and versions; see DigestOf
	Count int           // how many they are
	Left  time.Duration // the least time left of a session behind one of them; negative when there is none
}

// ReadRequest names what to read.
type ReadRequest struct {
	Prefixes  []string // every entry whose key begins with one of them; "" is the whole group
	Keys      []string
	NamesOnly bool // leave values empty
}

// ReadReply answers a read. Digests has one for each prefix asked for, of the very entries returned.
type ReadReply struct {
	Stamp
	Entries []Entry
	Digests map[string]Digest
}

// Entry is one key and what it holds.
type Entry struct {
	Key     string
	Value   []byte
	Version int64
	Session string        // that it is bound to, "" for none
	Left    time.Duration // of that session; negative when it is not bound or the store cannot say
}

// Superseded answers Supersede.
type Superseded struct {
	Stamp
	// Older is how many sessions were superseded, now or before, and still live; Ended how many this call ended because
	// their process is dead.
	Older, Ended int
	// Left is the longest time left of those that still live; 0 when there are none, negative when the store cannot say (at
	// most their TTL).
	Left time.Duration
}

// Check holds when the key has that version.
type Check struct {
	Key     string
	Version int64 // 0: the key is absent
}

// Put writes a value.
type Put struct {
	Key   string
	Value []byte
	Bound bool // the entry vanishes with this session
}

// Txn is one transaction. A key stands at most once among its puts and deletes.
type Txn struct {
	Checks  []Check
	Puts    []Put
	Deletes []string
	// Grace: the data must have been of the live incarnation for at least this long, by the store's clock (or Stamp.Since
	// be zero), else the transaction fails with ErrGrace.
	Grace time.Duration
	// Wake names the addresses to hint at after the transaction was applied.
	Wake []string
}

// CommitRequest is a batch of transactions under one session and one accepted incarnation.
type CommitRequest struct {
	Incarnation string
	Txns        []Txn
}

// CommitReply has one Result for each transaction, in their order.
type CommitReply struct {
	Stamp
	Results []Result
}

// Result says how a transaction ended: Err is nil when it was applied, or ErrConflict, ErrGrace, ErrSessionLost, ErrSuperseded or
// ErrIncarnation when it was not, or wraps ErrUnknown.
type Result struct {
	Err error
	// Versions are, when it was applied, those of its puts; when it was a conflict, the current ones of its checked keys (0: absent).
	Versions map[string]int64
}

var (
	// ErrSessionLost is returned when the session has ended, for good.
	ErrSessionLost = errors.New("session lost")
	// ErrSuperseded is returned when a newer session of the node's name has taken over, until the session's end: to Renew,
	// and as the result of transactions that put a bound entry. It comes before ErrIncarnation.
	ErrSuperseded = errors.New("a newer session of this node's name has taken over")
	// ErrIncarnation is returned when the store's data is not of the incarnation that the request names.
	ErrIncarnation = errors.New("the store lost data: its incarnation is another one")
	// ErrConflict is a transaction's result when one of its checks did not hold.
	ErrConflict = errors.New("conflict: a check did not hold")
	// ErrGrace is a transaction's result when the incarnation is younger than the transaction's Grace.
	ErrGrace = errors.New("the store's data is too young: nodes may still work under data that was lost")
	// ErrUnknown is a transaction's result when it was sent and no answer came; read to learn what became of it.
	ErrUnknown = errors.New("sent, outcome unknown")
	// ErrNoHints is returned by Listen of a store that has no hints: poll.
	ErrNoHints = errors.New("store has no hints")
	// ErrClosed is returned by calls on a closed store.
	ErrClosed = errors.New("store is closed")
	// ErrFatal is wrapped by errors that no retry can heal.
	ErrFatal = errors.New("cannot be healed by a retry")
	// ErrInvalid is wrapped by errors of a request that breaks the contract: a key or value too long, a key put twice.
	ErrInvalid = errors.New("invalid request")
)
