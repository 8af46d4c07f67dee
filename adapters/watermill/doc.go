// Package watermill lets handlers that were written for Watermill (github.com/ThreeDotsLabs/watermill) work the resources of a group.
//
//	h, err := watermill.Handler(watermill.Config{Middleware: []message.HandlerMiddleware{middleware.Recoverer}}, handle)
//	…
//	err = g.Consume(ctx, h)
//
// # What is the same
//
// A handler that returns nil has handled its message, and one that returns an error is given it again. Middleware wraps handlers as in Watermill's
// router, the first outermost. What a HandlerFunc returns is published before its message counts as handled.
//
// # What is different
//
//   - A Router does not give its middleware away: name it in Config.Middleware. What a Router puts into the context (message.HandlerNameFromCtx and the like) is empty.
//   - The group settles messages, in batches, when the handler has returned. Message.Ack and Message.Nack decide as in Watermill, the first of them counts, but
//     nothing is sent to the broker by them. A message that was acked before the handler returned an error is handled; the error goes to
//     Config.Logger; so it is where what it made could not be published. After a panic it comes again, acked or not.
//   - Retries, their pauses and what becomes of a message that fails for good are the group's (group.Config.Retry) and the source's (its DeadLetter); errors that wrap
//     rebalancer.ErrPermanent are not retried. Watermill's own Retry and PoisonQueue may be used too: they see the message first.
//   - Order: messages of one resource come one after the other, or by key with Concurrency above 1 (group.Config.Concurrency, Key), in place of one goroutine for each subscription.
//   - Fencing: the claim's fence is in the metadata ([MetadataFence]). The message's context ends when the claim is lost, or the drain is over.
//
// There is no message.Subscriber here. A Subscriber hands out a channel of messages that somebody acknowledges later, and nothing tells it that a claim
// has ended and that what was handed out is not to be worked any more: the promise that one node works a resource at a time would end at that channel. Handlers,
// which return, keep it.
//
// It is a module of its own: who does not use Watermill does not pay for it.
package watermill
