package coord

// Time is a moment on the node's own clock, in nanoseconds from an arbitrary start.
type Time int64

// Duration is a length of time in nanoseconds.
type Duration int64

// The longest time, for "never".
const never = Time(1<<63 - 1)

const (
	microsecond Duration = 1000
	millisecond          = 1000 * microsecond
	second               = 1000 * millisecond
	minute               = 60 * second
)

// The types below mirror those of package backends, which coord does not import.

// Stamp is carried by every reply of the store. Times are the store's, in microseconds.
type Stamp struct {
	Time        int64
	Incarnation string
	Since       int64 // 0: proved that nobody works under an earlier incarnation
}

// KeyState is what a renewal tells of a key that is present.
type KeyState struct {
	Version int64
	Session string
	Left    Duration // negative: not bound, or unknown
}

// Digest sums up the entries below a prefix.
type Digest struct {
	Sum   uint64
	Count int
	Left  Duration // least time left of a session behind them; negative: none
}

// Entry is one key and what it holds.
type Entry struct {
	Key     string
	Value   []byte
	Version int64
	Session string
	Left    Duration
}

// Check holds when the key has that version; 0 means absent.
type Check struct {
	Key     string
	Version int64
}

// Put writes a value; Bound entries vanish with the session.
type Put struct {
	Key   string
	Value []byte
	Bound bool
}

// Txn is one transaction.
type Txn struct {
	Checks  []Check
	Puts    []Put
	Deletes []string
	Grace   Duration
	Wake    []string
}

// Result says how a transaction ended. For OK, Versions are those of its puts; for Conflict, the current ones of
// its checked keys.
type Result struct {
	Code     Code
	Versions map[string]int64
}

// Code says how a request to the store, or one transaction of it, ended.
type Code uint8

// How requests end. OK: it was carried out.
const (
	OK           Code = iota // it was carried out
	Failed                   // nothing was applied; worth a retry
	Conflict                 // a check did not hold
	TooYoung                 // the grace is not over
	Unknown                  // sent, and no answer came
	SessionLost              // the session has ended, for good
	Reincarnated             // the store's data is of another incarnation
	Fatal                    // no retry can heal it
	Taken                    // a newer session of this node's name superseded this one
)

var codeNames = [...]string{"ok", "failed", "conflict", "too young", "unknown", "session lost", "reincarnated", "fatal", "superseded"}

// String is the code in words.
func (c Code) String() string { return codeNames[c] }
