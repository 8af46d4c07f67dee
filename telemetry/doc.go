// Package telemetry continues the traces of producers: it wraps a handler so that its context carries the trace whose W3C
// headers (traceparent, tracestate) came with the message, in a span that follows the semantic conventions for messaging.
//
//	err := g.Consume(ctx, telemetry.Handler(telemetry.Config{System: "rabbitmq", Group: "orders"}, handle))
//
// The sources put the headers of a message into [rebalancer.Message.Headers] unchanged, so that nothing else is needed.
// Only the API of OpenTelemetry is used: without an SDK that the program installs, spans cost next to nothing and go nowhere.
package telemetry
