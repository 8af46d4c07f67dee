package seen

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"time"
)

// Outcome is what became of a file.
type Outcome uint8

const (
	// Waiting is a file that was tried and is to be tried again.
	Waiting Outcome = iota
	// Done is a file whose handler succeeded.
	Done
	// Failed is a file that was given up.
	Failed
)

// Record is what is known of a name.
type Record struct {
	// ID is the Identity of the file that it is known of.
	ID      uint64
	Outcome Outcome
	// Attempts are those that failed, and Next is when the next one may be made, in ms of Unix time, 0 for at once; both are
	// of Waiting alone.
	Attempts uint32
	Next     int64
}

// Settlement is what became of one file.
type Settlement struct {
	Name string
	Record
}

// ErrFull is returned when a resource has as many names as can be remembered.
var ErrFull = errors.New("no further file can be remembered; move, delete or tag files after success instead of keeping them, " +
	"or take worked files away, which makes room after 24 h")

// ErrDamaged is returned when the state in the store cannot be what this package wrote.
var ErrDamaged = errors.New("the state in the store is damaged")

// Identity is the hash of what tells a file from another one under its name. It is the same on all machines and in all versions.
func Identity(size int64, mod time.Time, tag string) uint64 {
	b := make([]byte, 0, 64)
	b = binary.BigEndian.AppendUint64(b, uint64(size))
	if mod.IsZero() {
		b = append(b, 0)
	} else {
		b = append(b, 1)
		b = binary.BigEndian.AppendUint64(b, uint64(mod.Unix()))
		b = binary.BigEndian.AppendUint32(b, uint32(mod.Nanosecond()))
	}
	sum := sha256.Sum256(append(b, tag...))
	return binary.BigEndian.Uint64(sum[:])
}

// entry is a name in memory.
type entry struct {
	name string
	Record
	gone   uint32 // since when it is missing, in s of Unix time; 0: it is not
	saved  uint32 // gone as the store has it
	seen   uint32 // the last listing that had it
	missed uint8  // complete listings that did not have it, up to prunedAfter
}

// presence takes over what is known of a file's presence.
func (e *entry) presence(of *entry) {
	e.gone, e.seen, e.missed = of.gone, of.seen, of.missed
}
