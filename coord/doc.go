// Package coord is the protocol of a group as a pure, deterministic state machine: events in, actions out. It does no I/O and
// has no clock, goroutine or randomness of its own, so that simulations, exhaustive searches and traces can drive the very
// code that runs in production. No compatibility is promised.
//
// # Use
//
// The owner of a [Machine] calls [Machine.Step] with the time on the node's own clock and one event, carries out the
// actions that it returns in their order, and calls Step with [Tick] no later than [Machine.Wake] says. One
// goroutine does all this; Step never blocks. Every request action (those with a Req) is answered by exactly one event with
// the same Req, however late; an answer to a request of an earlier life of the machine is ignored. Time never goes back between
// steps; where the node has several clocks, the owner takes the one that advanced the most.
//
// # Guarantee
//
// Work on a resource (from StartWork until Stopped, or until [Machine.TrustedUntil] if that comes first) happens only
// behind a claim in the store that was obtained by this machine's own commit. The worker must look at TrustedUntil before
// each step of its work: a machine that is not called cannot fence.
package coord
