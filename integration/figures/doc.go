// Package figures holds the tests of the figures that the design promises: how long a hand-over takes, counted in round
// trips to the store; how soon a crash is over; what an idle group costs. They run several groups in virtual time over a
// store that takes a known time for each call, so that a measured time is a count of calls in sequence.
//
//	go test ./integration/figures -v
//
// prints what was measured.
package figures
