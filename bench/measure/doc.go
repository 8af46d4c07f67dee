// Package measure holds the measurements of the module: what the runtime adds to a message, how long a hand-over takes, what a
// step of the protocol's machine costs, and how long a plan takes. Command table prints them; the benchmarks beside it
// are the same code for profiles.
//
// The cost per message is given as a ratio to one hop over an unbuffered Go channel, measured in turns in the same run, because
// the time itself says more of the machine than of the code.
package measure
