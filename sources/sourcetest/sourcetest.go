// Package sourcetest checks that a source keeps the contract of package sources. Each sentence of the contract is one
// check. A driver's test makes a Harness and calls Run; what the driver says about itself in the Fixture is checked too,
// and nothing is skipped.
package sourcetest

import (
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources"
)

// Harness makes fresh sources.
type Harness struct {
	// New makes a source with its resources, empty and independent of those that other calls made. It registers its
	// clean-up with tb.
	New func(tb testing.TB) *Fixture
	// Patience is how long a check waits for what must happen. Defaults to 20 s.
	Patience time.Duration
	// Quiet is how long a check waits to see that something does not happen. Defaults to 100 ms; it should be several
	// times the interval at which the source polls.
	Quiet time.Duration
}

// Fixture is one source and the ways around it.
type Fixture struct {
	Source sources.Source
	// Resources are the canonical names of four resources at least, which exist and are empty.
	Resources []string
	// Missing is a canonical name of a resource that does not exist.
	Missing string
	// Send puts one message into a resource. Keys ascend in the order of the calls; a source whose messages have no name
	// may ignore them.
	Send func(resource, key string, body []byte) error
	// Left returns how many messages are in the resource, in hand or not.
	Left func(resource string) int
	// Rejected returns the bodies in the resource's dead-letter place. It is unused when the source has none.
	Rejected func(resource string) []string
	// Remove deletes a resource. nil says that a resource of this kind cannot cease to exist; the suite then checks that
	// Missing opens.
	Remove func(resource string) error
	// Same are lists that Names must refuse, because two of their names are one resource or one is inside another.
	Same [][]string
	// Wrong are names that are no resource at all.
	Wrong []string
	// Spellings are other ways to write a name, each with what Names must make of it.
	Spellings map[string]string
	// Checkpoint makes the checkpoint of a new claim of a resource, for sources that remember something there. nil: claims
	// have one that keeps nothing.
	Checkpoint func(resource string) rebalancer.Checkpoint
	// MaxBody is the greatest body that the suite sends. Defaults to 4 MiB.
	MaxBody int
	// Text says that a body must be text and not empty. The suite then sends such bodies only.
	Text bool
	// ReordersOnClose says that what Close gives back comes in any order, and perhaps after later messages.
	ReordersOnClose bool
	// BurnsOnClose says that the source cannot give back without counting an attempt.
	BurnsOnClose bool
}

type check struct {
	name string
	run  func(testing.TB, *world)
}

// checks is the suite, in the order of the contract.
func checks() []check {
	return []check{
		{"Names keeps the order and is idempotent", namesCanonical},
		{"Names refuses two spellings of one resource", namesRefused},
		{"Open is bounded by its context, the Reader is not", openContext},
		{"Open and Fetch say ErrGone", gone},
		{"Fetch gives 1 to max, in order, under the claim's fence", order},
		{"Fetch refuses a max below 1", fetchMax},
		{"Fetch waits for a message", fetchWaits},
		{"Fetch ends with its context and loses nothing", fetchContext},
		{"the slice is the caller's until the next Fetch, messages for good", ownership},
		{"payloads open from their start, as often as asked", payload},
		{"Done is for good", done},
		{"Release comes again and burns no attempt", release},
		{"Retry comes again, not before its delay, one attempt later", retry},
		{"Reject goes to the dead-letter place", reject},
		{"Reject fails alone where there is no dead-letter place", noDeadLetter},
		{"Settle ignores what it does not know", settleUnknown},
		{"Settle does not wait for a Fetch", settleBesideFetch},
		{"Close gives back in order, before later messages", closeGivesBack},
		{"Close ends a Fetch, and again is no error", closeEndsFetch},
		{"nothing is delivered after Close", nothingAfterClose},
		{"a late Settle of a closed Reader changes nothing", lateSettle},
		{"resources do not disturb each other", concurrent},
		{"Lag counts what waits", lag},
		{"Discover lists what matches", discover},
	}
}

// Run checks the source that h makes.
func Run(t *testing.T, h Harness) {
	t.Helper()
	for _, c := range checks() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, newWorld(t, h))
		})
	}
}
