// Package trace writes down what machines of package coord do, in the words of the specification in spec/, and judges it.
//
// A trace is lines of JSON, one for each step of a machine that did anything: the event that it was given, the actions that it asked
// for, under the names that package coord and the specification give them, and what the machine believes afterwards. A simulation adds
// lines for what the store did and for what happened to the world; a trace of real nodes has none, since nobody sees a server's own order.
//
// [Recorder] makes lines of the steps of one machine, [Decode] reads them. [Explain] puts what the store must have done between them: when
// each request was carried out, which sessions ended. It only proposes. Whether the outcome is a behaviour of the protocol is judged by
// the specification's trace module, which [Module] writes the outcome for, and by [Check], which states the same in Go.
//
// The package is as pure as coord: it opens no file and reads no clock.
package trace
