// Package sim proves the protocol of package coord by driving the very code that runs in production through worlds that
// cannot be had on real machines: thousands of seeded groups in virtual time (World), and every interleaving of small ones
// (Search). Nothing here reads a clock or draws a random number, so one seed is one history, byte for byte.
//
// # Worlds
//
// A seed gives a group (nodes, resources, mode, origin, times) and a schedule of faults. Everything else that is left to chance
// (the delay of a message, how long a drain takes) is drawn from the seed and the name of the very thing, never from a
// shared stream: taking one fault out of the schedule does not reshuffle the rest, which is what makes shrinking work.
// The invariants are looked at after every event; when the faults have stopped the group must come to rest within a
// bounded time, with everything owned once, in balance, and at the price of one write per node and renewal.
//
// # Placement
//
// Some nodes have static names: a process that crashed or left comes back under its name, or a second one starts while the first
// runs. Half of the groups have weights, loads, labels, limits, a number of active nodes, and operators who pause, drain, pin and
// move, in schedules as acts beside the faults; what stands when the faults are over is part of what is demanded at rest. balance.go
// and rest.go say what that is, limits.go what may never be exceeded under way, without the code that assigns.
//
// # Guards
//
// GUARDS.md lists each guard of the protocol, of the machine ([coord.Guards]) and of the store ([StoreGuards]), with the property
// that breaks without it and the engine that shows it: the worlds, the search, or a Schedule, which is an order of messages that
// somebody wrote because chance does not find it. TestGuards runs the table.
//
// # What is not covered
//
// A worker counts as working from the opening of its source until Stopped, Lose, or the end of its node's trust, whichever comes first: what
// a handler does that ignores its context is left to the fence. A store whose clock was stepped forward by more than the
// margin ends sessions that are still trusted; only nodes that saw the step can wait it out, so a node whose first answer came
// after the step is not held to the exclusion against it. Of two processes of one static name the newer is the one that joined
// last, which need not be the one that was started last. A global barrier does not wait for a process that was superseded by one that
// has left since.
package sim
