// Package rebalancer holds what handlers and drivers share: messages, claims, checkpoints and the errors that
// steer settlement. A program starts at package group, which shares named resources among the nodes of a group
// and runs a [Handler] on those that this node holds.
//
// # Guarantees
//
// At most one node works a resource at a time, as far as a library can ensure it; where it cannot (a handler that
// ignores its context, a process frozen in the middle of a write) each message carries a fence, a number that grows
// with every new claim of its resource, by which others can refuse the stale one. No resource stays idle longer than
// it must. Delivery is at least once: a message is settled by its handler's return and by nothing else.
package rebalancer
