// Package telemetry measures a group with OpenTelemetry. One line gives it metrics and traces:
//
//	g, err := group.New(telemetry.Instrument(cfg, telemetry.Config{System: "rabbitmq"}))
//
// Only the API of OpenTelemetry is used. Without an SDK that the program installs it costs little and goes nowhere, and without
// this package the group costs nothing more. [Handler] and [BatchHandler] are for programs that want nothing but the traces of messages continued.
//
// examples/metrics shows it with the Prometheus exporter, and has a dashboard for Grafana.
//
// # What it costs
//
// bench/measure has the figures. A message costs two readings of the clock, a histogram and a counter, and a span where a provider of traces is
// installed; who samples traces pays for the samples. Calls of sources are measured once for each batch.
//
// # Cardinality
//
// Every series has messaging.consumer.group.name, and messaging.system when it is known. Further attributes have few values each, but for these:
//
//   - messaging.destination.name, a resource, only up to Config.Resources; the others are "_other". Without it (the default) no metric names a resource.
//   - messaging.client.id, a node, of metrics of the node itself alone. Nodes without a name of their own get a new one with each process.
//   - error.type: the type of a handler's error in Go, or one of panic, lost, permanent, gone, timeout, canceled.
//   - rebalancer.cause: a set of the causes join, return, leave, gone, coordinator, change, rejoin, unknown, with "+" between them.
//
// What follows from metrics: messages failed are attempts, so one message can count several times; handled means that a handler returned nil, also where the
// settlement came too late and the message comes again. An attempt that is cut short by a drain or a loss counts as failed and is not retried. The idle time of a resource whose node crashed begins when the group noticed: add
// the ttl. Metrics of the group itself (rebalancer.group.*) come from its coordinator, those of other nodes are absent: take the greatest.
//
// # Metrics
//
//   - messaging.process.duration (histogram, s): Duration of a handler's call. By messaging.operation.name, messaging.destination.name, error.type.
//   - messaging.client.consumed.messages (counter, {message}): Messages that the source delivered. By messaging.operation.name, messaging.destination.name.
//   - messaging.client.operation.duration (histogram, s): Duration of fetching (the wait for messages included) and settling. By messaging.operation.name, messaging.destination.name, error.type.
//   - rebalancer.messages.handled (counter, {message}): Messages that handlers handled. By messaging.destination.name.
//   - rebalancer.messages.failed (counter, {message}): Messages that handlers failed, each attempt. By messaging.destination.name, error.type.
//   - rebalancer.messages.retried (counter, {message}): Failures after which the message is tried again. By messaging.destination.name.
//   - rebalancer.messages.dead_lettered (counter, {message}): Messages that went to the dead-letter place. By messaging.destination.name.
//   - rebalancer.messages.given_up (counter, {message}): Messages that were given up without a dead-letter place: kept, skipped, or halted their resource. By messaging.destination.name, rebalancer.outcome.
//   - rebalancer.message.age (histogram, s): Age of messages when the source delivered them. By messaging.destination.name.
//   - rebalancer.lag (gauge, {message}): Messages that wait in the resources of this node, if asked for. By messaging.client.id, messaging.destination.name.
//   - rebalancer.group.members (gauge, {node}): Nodes of the group; the coordinator tells.
//   - rebalancer.group.unplaced (gauge, {resource}): Resources that no live node may take; the coordinator tells.
//   - rebalancer.group.pending (gauge, {resource}): Moves that wait until others have ended; the coordinator tells.
//   - rebalancer.node.resources (gauge, {resource}): Resources that the node holds, by phase. By messaging.client.id, rebalancer.phase.
//   - rebalancer.node.stuck (gauge, {resource}): Resources whose handlers outlived drain and grace. By messaging.client.id.
//   - rebalancer.node.trust (gauge, s): Time for which the node trusts its claims unless it renews; 0 when it does not. By messaging.client.id.
//   - rebalancer.node.ready (gauge, {node}): 1 when the node is ready, else 0. By messaging.client.id.
//   - rebalancer.node.leading (gauge, {node}): 1 when the node coordinates the group, else 0. By messaging.client.id.
//   - rebalancer.rebalances (counter, {rebalance}): Plans that the coordinator published. By rebalancer.cause.
//   - rebalancer.rebalance.moves (counter, {resource}): Resources that plans moved; of one plan the reasons of the first 100 are told. By rebalancer.move.reason.
//   - rebalancer.rebalance.duration (histogram, s): Time from when a node learns of a new share until it holds all of it, and has given back the rest. By rebalancer.cause.
//   - rebalancer.resource.idle (histogram, s): Time from when a resource was seen to be free until its source was open on its new node. By rebalancer.cause.
//   - rebalancer.resource.drain (histogram, s): Time from a revoke until the resource was given back.
//   - rebalancer.claims (counter, {claim}): Claims that the node asked for.
//   - rebalancer.claims.refused (counter, {claim}): Claims that were refused, because another node still holds the resource or the assignment had changed.
//   - rebalancer.resources.lost (counter, {resource}): Claims that were lost rather than given back.
//   - rebalancer.resources.declined (counter, {resource}): Resources that the node could not open, and left to others for a while.
//   - rebalancer.self_fences (counter, {fence}): Times that the node gave up all that it held, because it could not renew in time.
//   - rebalancer.handlers.stuck (counter, {resource}): Times that handlers of a resource outlived drain and grace.
//   - rebalancer.store.call.duration (histogram, s): Duration of a call of the store. By rebalancer.store.call, rebalancer.outcome.
//
// # Spans
//
//   - receive (client): A Fetch that brought messages or failed, with a link to the producer of each message (128 at most).
//   - process (consumer): A handler's call: continues the producer's trace, and has a link to it; of a batch it has a link to each.
//   - settle (client): A Settle, with a link to the producer of each message (128 at most).
//   - plan (internal): The coordinator's plan, from its making to its last entry in the store, with its reason and moves (100 at most).
//   - rebalance (internal): A node's part: from when it learns of a new share until it holds all of it, with what it gains and loses (100 each).
//
// Names and attributes of spans follow the semantic conventions for messaging (1.41): the name of the operation and the resource ("process orders"). Each plan and
// each node's part in it tell rebalancer.epoch and rebalancer.generation, by which they can be put together.
package telemetry
