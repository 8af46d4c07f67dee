package sqs

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/rebalancer-go/rebalancer"
)

// entry is one message in hand, from its receipt until it is settled, given back or lost.
type entry struct {
	lane    *lane
	raw     types.Message
	id      string
	receipt string
	seq     string    // of a FIFO queue: longer is later, then by its digits
	count   int       // receives, as SQS counts them
	retries int       // failures reported here that cost no receive
	until   time.Time // the end of its visibility, or before it
	since   time.Time // of its receipt, or before it: the end of 12 hours counts from here
	dealt   time.Time // when it was last handed out
	payload *payload  // nil: the body is in the message

	message *rebalancer.Message // while it is handed out
	opening bool                // its payload is being opened
	resting bool                // it waits for a retry
	settled bool                // its outcome was reported, and is being carried out
	done    bool                // and the outcome is Done: the next of its lane may start
	leaving bool                // it is not extended any more
	stale   bool                // it was handed out, and is not ours any more
	sent    bool                // it is in the dead-letter queue, and only its deletion is missing
	used    string              // the receipt under which its deletion was asked for last
	deleted bool                // that deletion has certainly deleted it
}

// lane is what is kept invisible together: the messages in hand of one message group of a FIFO queue, in order, or one message of a
// standard queue.
type lane struct {
	group   string
	place   int // in the order of arrival
	entries []*entry
	due     time.Time     // when to extend it
	calling chan struct{} // closed when the extension that runs has ended; nil: none runs
	lost    bool
	queued  bool // among the reader's ready lanes

	finishing int // messages that came again after they were worked, and are being deleted: nothing is handed out before
}

// before orders sequence numbers, which are decimal numbers of up to 20 digits and more.
func before(a, b string) bool {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	if len(a) != len(b) {
		return len(a) < len(b)
	}
	return a < b
}

// insert puts an entry where it belongs in the order.
func (la *lane) insert(e *entry) {
	i := len(la.entries)
	for i > 0 && before(e.seq, la.entries[i-1].seq) {
		i--
	}
	la.entries = slices.Insert(la.entries, i, e)
}

func (la *lane) remove(e *entry) {
	if i := slices.Index(la.entries, e); i >= 0 {
		la.entries = slices.Delete(la.entries, i, i+1)
	}
}

// next is the entry that may be handed out now, nil when there is none: all before it are handed out, at most ahead of them are
// still worked.
func (la *lane) next(ahead int) *entry {
	if la.lost || la.finishing > 0 {
		return nil
	}
	working := 0
	for _, e := range la.entries {
		switch {
		case e.message == nil && !e.settled:
			if e.opening || e.resting || working >= ahead {
				return nil
			}
			return e
		case !e.done:
			working++
		}
	}
	return nil
}

// kept tells whether an entry is to be kept invisible.
func (e *entry) kept() bool { return !e.leaving && !e.stale }

// end is the earliest end of the visibility of what is to be kept invisible; false when there is nothing.
func (la *lane) end() (at time.Time, some bool) {
	for _, e := range la.entries {
		if e.kept() && (!some || e.until.Before(at)) {
			at, some = e.until, true
		}
	}
	return at, some
}

// extendable is how many messages an extension is for.
func (la *lane) extendable() int {
	n := 0
	for _, e := range la.entries {
		if e.kept() {
			n++
		}
	}
	return n
}

// attempt is the number of the attempt that an entry is for.
func (e *entry) attempt() int { return max(e.count, 1) + e.retries }

func attribute(m *types.Message, name types.MessageSystemAttributeName) string {
	return m.Attributes[string(name)]
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}
