package coord

import (
	"errors"
	"fmt"
)

// Mode is how a group rebalances.
type Mode string

const (
	// ResourceBarrier stops only what moves.
	ResourceBarrier Mode = "resource"
	// GlobalBarrier stops everybody for every change.
	GlobalBarrier Mode = "global"
)

// Origin is where the list of resources comes from.
type Origin string

const (
	// OriginStatic is the union of what live nodes list.
	OriginStatic Origin = "static"
	// OriginRegistered is a list kept in the store.
	OriginRegistered Origin = "registered"
	// OriginDiscovered is asked for by the coordinator.
	OriginDiscovered Origin = "discovered"
)

// Config describes one node. Zero durations get their defaults from TTL by WithDefaults.
type Config struct {
	Group    string
	Node     string
	Instance string // random identity of this process, to tell it from another process under the same name
	Mode     Mode
	Origin   Origin
	Static   []string // canonical names, for OriginStatic
	TTL      Duration
	Renew    Duration // between renewals; default TTL/6
	Margin   Duration // trust ends this long before the session can; default TTL/5
	Debounce Duration // of joins; default 1 s
	// DebounceMax bounds how long joins that keep coming may put off a plan; default 10 s.
	DebounceMax Duration
	ListEvery   Duration // for OriginDiscovered; default 30 s

	Priority     int
	Weight       int // default 1
	MaxResources int // 0: no limit
	Labels       map[string]string
	// StaticID: the name outlives the process. A new process of the name takes over from an older one.
	StaticID bool
	// MaxActive, FailBack, MaxMoving and MaxMovingNode are settings of the group; see Settings.
	MaxActive     int
	FailBack      bool
	MaxMoving     int
	MaxMovingNode int
	Version       string // of the library, shown to operators
	History       bool   // a coordinator records in the store what it planned, and why
	Measure       bool   // notices and assignments tell what metrics, traces and logs are made of: causes, moves, waiting times
	// FormatMin and FormatMax are the formats that this node reads and writes. Only tests of an upgrade set them; 0: those of the library.
	FormatMin, FormatMax int

	// Seed feeds the jitter of this node; give every machine another one.
	Seed uint64
	// Without removes guards of the protocol. Only tests of the protocol set it, to show what each guard is for.
	Without Guards
	// Observe, when not nil, is called with each step. Used for traces.
	Observe func(Trace)
}

// WithDefaults returns c with its zero fields filled in.
func (c Config) WithDefaults() Config {
	set := func(d *Duration, v Duration) {
		if *d == 0 {
			*d = v
		}
	}
	set(&c.TTL, 30*second)
	set(&c.Renew, c.TTL/6)
	set(&c.Margin, c.TTL/5)
	set(&c.Debounce, second)
	set(&c.DebounceMax, 10*second)
	set(&c.ListEvery, 30*second)
	if c.Weight == 0 {
		c.Weight = 1
	}
	if c.FormatMin == 0 {
		c.FormatMin = FormatMin
	}
	if c.FormatMax == 0 {
		c.FormatMax = FormatMax
	}
	if c.Mode == "" {
		c.Mode = ResourceBarrier
	}
	if c.Origin == "" {
		c.Origin = OriginStatic
	}
	return c
}

var (
	// ErrMismatch is in Finish when the node does not fit its group.
	ErrMismatch = errors.New("node does not fit its group")
	// ErrDeleted is in Finish when the group was deleted.
	ErrDeleted = errors.New("the group was deleted")
	// ErrStuck is in Finish when handlers outlived the drain of a leaving node.
	ErrStuck = errors.New("handlers still running after drain")
	// ErrSuperseded is in Finish when a newer process took this node's static name, or an operator evicted the node.
	ErrSuperseded = errors.New("a newer process took the name of this node, or an operator evicted it")
)

// Guards is a set of names of guards.
type Guards uint64

// The guards of the protocol that live in the machine. Each comment says what it does while it is in place.
const (
	GuardTrust             Guards = 1 << iota // work ends when the node's own trust does
	GuardMargin                               // trust ends a margin before the session
	GuardSent                                 // trust counts from the moment the renewal was sent, not from its answer
	GuardStopFirst                            // a claim is released only after its worker stopped
	GuardReleaseVersion                       // a release names the version of the claim
	GuardReleaseAnswered                      // no restart of a resource while its own release is unanswered
	GuardClaimFree                            // a claim requires that the resource is free
	GuardEpoch                                // a coordinator's writes check its term
	GuardBarrierAcks                          // global: a generation opens only after all have stopped
	GuardBarrierLatch                         // global: who stopped for a generation never restarts on an older barrier
	GuardFenceRejoin                          // everything is lost before a new session is opened
	GuardRenewIncarnation                     // F3: renewals name the accepted incarnation
	GuardReread                               // F4: a new incarnation is accepted only after the own claims were read again
	GuardSameVersion                          // F4: kept claims must have the same version
	GuardReplyIncarnation                     // F5: a claim counts only if its answer is of the accepted incarnation
	GuardOwnCommit                            // F5: a claim that was merely read is never worked
	GuardGrace                                // F2: claims wait for the grace
	GuardLeadReset                            // F8: a new incarnation ends the coordinator's term and caches
	GuardDiffers                              // F8: followers compare for difference, not for greater
	GuardRenewAssignment                      // H1: a renewal names the assignment entry
	GuardRenewWaiting                         // H1: a renewal names the claims waited for
	GuardSeenOnApply                          // H2: "seen" advances only when a read has been applied
	GuardDigest                               // H3: the coordinator compares digests of the very list it planned from
	GuardClaimAssignment                      // H4: claims check the node's assignment entry
	GuardReleaseAssignment                    // H4: releases check the node's assignment entry
	GuardNextRewrite                          // H5: an entry is rewritten when the next owner of something held changes
	GuardStoreStep                            // a stepped store clock delays the opening of sources
	GuardSupersede                            // S1: a new process of a static name closes the session of the older one
	GuardOwnSession                           // S2: a claim that carries the own name is not the own claim
	GuardSupersededEnds                       // S4: a process that was superseded does not rejoin
	GuardOwnEntry                             // S4: a process of a static name looks whether another one overwrote its member entry
	GuardReservedEnds                         // S6: the coordinator is woken when a reserved share ends
	GuardElders                               // global: a process has stopped only when the older ones of its static name have
	guardEnd
)

// Errorf-like helper for mismatches.
func mismatch(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMismatch, fmt.Sprintf(format, args...))
}
