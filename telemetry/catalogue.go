package telemetry

// Metric describes one of the metrics, for documents, dashboards and tests.
type Metric struct {
	Name string
	// Kind is "counter", "gauge" or "histogram".
	Kind string
	// Unit is that of UCUM: "s", "{message}".
	Unit        string
	Description string
	// Attributes that it can have, but for messaging.consumer.group.name and messaging.system, which all have.
	Attributes []string
}

const (
	counter   = "counter"
	gauge     = "gauge"
	histogram = "histogram"
)

// The attributes.
const (
	attrSystem      = "messaging.system"
	attrGroup       = "messaging.consumer.group.name"
	attrDestination = "messaging.destination.name"
	attrOperation   = "messaging.operation.name"
	attrType        = "messaging.operation.type"
	attrClient      = "messaging.client.id"
	attrError       = "error.type"
	attrOutcome     = "rebalancer.outcome"
	attrCause       = "rebalancer.cause"
	attrReason      = "rebalancer.move.reason"
	attrPhase       = "rebalancer.phase"
	attrCall        = "rebalancer.store.call"
)

// The names of the metrics. Those of the semantic conventions for messaging are called as there.
const (
	processDuration   = "messaging.process.duration"
	consumedMessages  = "messaging.client.consumed.messages"
	operationDuration = "messaging.client.operation.duration"
	messagesHandled   = "rebalancer.messages.handled"
	messagesFailed    = "rebalancer.messages.failed"
	messagesRetried   = "rebalancer.messages.retried"
	messagesDead      = "rebalancer.messages.dead_lettered"
	messagesGivenUp   = "rebalancer.messages.given_up"
	messageAge        = "rebalancer.message.age"
	lagMessages       = "rebalancer.lag"
	groupMembers      = "rebalancer.group.members"
	groupUnplaced     = "rebalancer.group.unplaced"
	groupPending      = "rebalancer.group.pending"
	nodeResources     = "rebalancer.node.resources"
	nodeStuck         = "rebalancer.node.stuck"
	nodeTrust         = "rebalancer.node.trust"
	nodeReady         = "rebalancer.node.ready"
	nodeLeading       = "rebalancer.node.leading"
	rebalances        = "rebalancer.rebalances"
	rebalanceMoves    = "rebalancer.rebalance.moves"
	rebalanceDuration = "rebalancer.rebalance.duration"
	resourceIdle      = "rebalancer.resource.idle"
	resourceDrain     = "rebalancer.resource.drain"
	claimsAsked       = "rebalancer.claims"
	claimsRefused     = "rebalancer.claims.refused"
	resourcesLost     = "rebalancer.resources.lost"
	resourcesDeclined = "rebalancer.resources.declined"
	selfFences        = "rebalancer.self_fences"
	handlersStuck     = "rebalancer.handlers.stuck"
	storeCallDuration = "rebalancer.store.call.duration"
)

// Metrics are all metrics, in the order of the table in the package's comment.
func Metrics() []Metric {
	return []Metric{
		{processDuration, histogram, "s", "Duration of a handler's call.", []string{attrOperation, attrDestination, attrError}},
		{consumedMessages, counter, "{message}", "Messages that the source delivered.", []string{attrOperation, attrDestination}},
		{operationDuration, histogram, "s", "Duration of fetching (the wait for messages included) and settling.", []string{attrOperation, attrDestination, attrError}},
		{messagesHandled, counter, "{message}", "Messages that handlers handled.", []string{attrDestination}},
		{messagesFailed, counter, "{message}", "Messages that handlers failed, each attempt.", []string{attrDestination, attrError}},
		{messagesRetried, counter, "{message}", "Failures after which the message is tried again.", []string{attrDestination}},
		{messagesDead, counter, "{message}", "Messages that went to the dead-letter place.", []string{attrDestination}},
		{messagesGivenUp, counter, "{message}", "Messages that were given up without a dead-letter place: kept, skipped, or halted their resource.", []string{attrDestination, attrOutcome}},
		{messageAge, histogram, "s", "Age of messages when the source delivered them.", []string{attrDestination}},
		{lagMessages, gauge, "{message}", "Messages that wait in the resources of this node, if asked for.", []string{attrClient, attrDestination}},
		{groupMembers, gauge, "{node}", "Nodes of the group; the coordinator tells.", nil},
		{groupUnplaced, gauge, "{resource}", "Resources that no live node may take; the coordinator tells.", nil},
		{groupPending, gauge, "{resource}", "Moves that wait until others have ended; the coordinator tells.", nil},
		{nodeResources, gauge, "{resource}", "Resources that the node holds, by phase.", []string{attrClient, attrPhase}},
		{nodeStuck, gauge, "{resource}", "Resources whose handlers outlived drain and grace.", []string{attrClient}},
		{nodeTrust, gauge, "s", "Time for which the node trusts its claims unless it renews; 0 when it does not.", []string{attrClient}},
		{nodeReady, gauge, "{node}", "1 when the node is ready, else 0.", []string{attrClient}},
		{nodeLeading, gauge, "{node}", "1 when the node coordinates the group, else 0.", []string{attrClient}},
		{rebalances, counter, "{rebalance}", "Plans that the coordinator published.", []string{attrCause}},
		{rebalanceMoves, counter, "{resource}", "Resources that plans moved; of one plan the reasons of the first 100 are told.", []string{attrReason}},
		{rebalanceDuration, histogram, "s", "Time from when a node learns of a new share until it holds all of it, and has given back the rest.", []string{attrCause}},
		{resourceIdle, histogram, "s", "Time from when a resource was seen to be free until its source was open on its new node.", []string{attrCause}},
		{resourceDrain, histogram, "s", "Time from a revoke until the resource was given back.", nil},
		{claimsAsked, counter, "{claim}", "Claims that the node asked for.", nil},
		{claimsRefused, counter, "{claim}", "Claims that were refused, because another node still holds the resource or the assignment had changed.", nil},
		{resourcesLost, counter, "{resource}", "Claims that were lost rather than given back.", nil},
		{resourcesDeclined, counter, "{resource}", "Resources that the node could not open, and left to others for a while.", nil},
		{selfFences, counter, "{fence}", "Times that the node gave up all that it held, because it could not renew in time.", nil},
		{handlersStuck, counter, "{resource}", "Times that handlers of a resource outlived drain and grace.", nil},
		{storeCallDuration, histogram, "s", "Duration of a call of the store.", []string{attrCall, attrOutcome}},
	}
}

// Span describes one of the spans.
type Span struct {
	// Name without the resource or group that follows it.
	Name string
	// Kind is "consumer", "client" or "internal".
	Kind        string
	Description string
}

// Spans are all spans, in the order of the table in the package's comment.
func Spans() []Span {
	return []Span{
		{"receive", "client", "A Fetch that brought messages or failed, with a link to the producer of each message (128 at most)."},
		{"process", "consumer", "A handler's call: continues the producer's trace, and has a link to it; of a batch it has a link to each."},
		{"settle", "client", "A Settle, with a link to the producer of each message (128 at most)."},
		{"plan", "internal", "The coordinator's plan, from its making to its last entry in the store, with its reason and moves (100 at most)."},
		{"rebalance", "internal", "A node's part: from when it learns of a new share until it holds all of it, with what it gains and loses (100 each)."},
	}
}
