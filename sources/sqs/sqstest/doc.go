// Package sqstest is a small SQS in memory, for tests: of package sqs, and of programs whose handlers read queues. It is no emulator: it has
// the calls that package sqs makes, those that make queues and messages, and the rules that AWS documents for them, among them those of FIFO queues that
// the servers that can be had for tests do not keep. It takes the time from package time, so that it works in a testing/synctest bubble, where a
// visibility of 30 seconds and a handler of 90 take no time at all.
//
// # The rules it keeps
//
//   - A received message is invisible until its visibility ends, is changed, or the message is deleted; its receive count grows with
//     each receive, and the receipt handle is new each time. At most 12 hours from the receive can be asked for.
//   - A queue with a redrive policy moves a message that was received maxReceiveCount times to the dead-letter queue instead of giving it
//     once more. There it keeps its id and group, in a standard queue its send time; in a FIFO queue it is sent at that moment, and its id is its deduplication id.
//   - FIFO: the messages of a group are given in the order in which they were sent. While one of a group is in flight, no receive gives any
//     of that group; the one receive that took it has taken as many of it as it could, in order, and others only then. When the first becomes visible again, it is given before those behind
//     it. Messages with a deduplication id that was seen within 5 minutes are accepted and not delivered. A receive with the attempt
//     id of an earlier one within 5 minutes gives the same messages again, under the same receipts, while they are in flight, and begins their visibility
//     anew. A receipt whose visibility has ended deletes nothing and is refused.
//   - Standard: messages are given in the order in which they were sent, which AWS does not promise; a message in flight is not given
//     twice, which AWS does not promise either (see Server.Twice). A receipt that is too old deletes nothing, without an error.
//   - A receive beyond the limit of messages in flight gives nothing, without an error; one of a standard queue that does not wait is refused with OverLimit.
//   - Batches have 1 to 10 entries with different ids, and each entry has an outcome of its own.
//
// It has no rights, no encryption, no delays of single messages, no retention and no throttles but those that a test makes (Server.Intercept).
package sqstest
