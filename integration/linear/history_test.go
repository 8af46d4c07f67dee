//go:build linux

package linear

import (
	"encoding/json"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rebalancer-go/rebalancer/backends"
)

// event is one call of a client: what it asked and, if it was answered, what it was told.
type event struct {
	Client       int   // who asked
	Number       int   // of the client's calls
	Call, Return int64 // ns of the clock since boot, which all processes share; Return is 0 where no answer came

	Kind        what
	Node        string   // of opens and supersedes
	Session     string   // under which it was asked; of opens: which was opened
	Incarnation string   // that the request names
	Keys        []string // of renewals and reads, those below the prefixes too
	NamesOnly   bool     // of reads
	Txns        []backends.Txn

	Outcome outcome
	Why     string `json:",omitempty"` // the error of a commit of which nothing was applied
	Stamp   backends.Stamp
	TTL     int64 // ns; of an open
	Results []result
	Entries []backends.Entry             // of reads
	States  map[string]backends.KeyState // of renewals
	Ended   int                          // of a supersede: sessions that it ended, because their process is dead
}

// what is the kind of a call.
type what string

const (
	opened     what = "open"
	renewed    what = "renew"
	read       what = "read"
	committed  what = "commit"
	superseded what = "supersede"
	closed     what = "close"
	killed     what = "killed" // no call: the client's process was killed, at Call
)

// outcome is how a call or a transaction ended.
type outcome string

const (
	done        outcome = ""
	lost        outcome = "session lost"
	overtook    outcome = "superseded"
	another     outcome = "another incarnation"
	conflict    outcome = "conflict"
	unknown     outcome = "unknown"
	nothingDone outcome = "error" // of a commit: nothing was applied, for certain
)

// result is that of one transaction.
type result struct {
	Outcome  outcome
	Versions map[string]int64
}

// outcomeOf names an error; other is for those that the contract does not name.
func outcomeOf(err error, other outcome) outcome {
	switch {
	case err == nil:
		return done
	case errors.Is(err, backends.ErrUnknown): // whatever the cause
		return unknown
	case errors.Is(err, backends.ErrSessionLost):
		return lost
	case errors.Is(err, backends.ErrSuperseded):
		return overtook
	case errors.Is(err, backends.ErrIncarnation):
		return another
	case errors.Is(err, backends.ErrConflict):
		return conflict
	}
	return other
}

// recorder writes down what clients do.
type recorder interface {
	// note is told an event when it begins, and once more when it was answered.
	note(event)
}

// history is a recorder in memory.
type history struct {
	mu      sync.Mutex
	at      map[[2]int]int // of an event, by client and number
	events  []event
	applied int // transactions that were acknowledged
}

func newHistory() *history { return &history{at: map[[2]int]int{}} }

func (h *history) note(e event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range e.Results {
		if r.Outcome == done {
			h.applied++
		}
	}
	id := [2]int{e.Client, e.Number}
	if i, known := h.at[id]; known {
		h.events[i] = e
		return
	}
	h.at[id] = len(h.events)
	h.events = append(h.events, e)
}

// progress waits until so many more transactions were applied.
func (h *history) progress(t *testing.T, more int) {
	t.Helper()
	count := func() int {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.applied
	}
	from := count()
	for end := time.Now().Add(3 * time.Minute); count() < from+more; <-time.After(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("in 3 minutes only %d of %d transactions were applied", count()-from, more)
		}
	}
}

// lines is a recorder of a process whose events another one reads, as lines of JSON.
type lines struct{ to *json.Encoder }

func newLines(w io.Writer) lines { return lines{json.NewEncoder(w)} }

func (l lines) note(e event) { _ = l.to.Encode(e) } // a reader that is gone has killed this process

// now is the clock since boot.
func now() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) // every Linux has it
	return t.Nano()
}
