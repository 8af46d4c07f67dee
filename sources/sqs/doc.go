// Package sqs is the source of Amazon SQS: each queue is a resource, of either kind.
//
//	client := awssqs.NewFromConfig(cfg) // github.com/aws/aws-sdk-go-v2/service/sqs
//	src, err := sqs.New(sqs.Config{Client: client, DeadLetter: "*-failed"})
//
// # Guarantees
//
// Delivery is at least once. A message is deleted only after its handler succeeded, and is kept invisible to others for as long as it is in hand, also
// while it waits for a handler or for a retry: it is extended to the whole of Config.Visibility at a third of it. An extension has ended
// before its message is deleted or given back, so that it undoes neither.
//
// A FIFO queue keeps the order of each message group. Of a group one message is worked at a time, and those behind it wait, whatever the
// group's Concurrency, while other groups go on. A message that fails is retried in place: nothing is given back for it, which would
// burn a receive of each message behind it too. When it is given up it goes to the dead-letter queue, with its group and with its id as deduplication id, and
// those behind it go on; where there is none it holds up its group, and is reported.
//
// When no extension of a group is answered until a sixth of the visibility before its end, or SQS refuses one, or a deletion, the group is lost: nothing more of it is started
// or deleted, and it comes again when its visibility ends. A handler of it that runs goes on: what it finishes is not worked again when it
// comes again to this node. Between its end and that moment another consumer may get it, as with every lease; the fence tells whose
// work is the older.
//
// In a standard queue nothing is in order. A message that SQS delivers twice while it is in hand goes to one handler.
//
// # Limits
//
//   - A receive counts as an attempt, so that there is none without a free handler; a group with Concurrency 1 receives one message at a
//     time. Set Concurrency, or use ConsumeBatch (for FIFO queues with Config.GroupAhead), to have ten in one call. From a FIFO queue one receive takes as
//     many of one message group as it can: up to ten for each handler are in hand, of which one is worked and the others wait.
//   - A message that fails stays in hand, and is tried again by this node; SQS makes no retries, which would burn a receive each. It takes no handler's place
//     meanwhile, but of those that wait to be tried again there are at most four for each handler, or 32: when something that all of
//     them need is down, the others stay in the queue with their receives.
//   - A message that is given back, by a node that stops or a resource that moves, has burnt one receive. The maxReceiveCount of a redrive policy should leave
//     room for a few, 10 rather than 3. Where the next receive may be a message's last it is received alone, and worked beside no other of which that
//     is true, so that a process that dies of it takes no other with it. As nobody knows what a process left that died, receives from a queue with a redrive
//     policy are for one message at a time until Config.Visibility and Config.Wait have passed since it was opened, some 50 s, and
//     likewise after each such message. Where so much waits that what was left comes later than that, several may come together.
//   - SQS keeps no message invisible for longer than 12 hours after its receipt. It is reported then, and comes again.
//   - Receives are not cut off when a resource is given back, because what is on its way would be invisible to the next owner for the whole
//     visibility: what they still bring is given back at once. Source.Close waits for them, for Config.Wait and some 10 s at most.
//   - Past 120,000 messages in flight a queue gives nothing, and no error to a receive that waits; this is noticed and reported.
//   - A node that crashes leaves its messages invisible until their visibility ends.
//
// # What becomes what
//
//	Resource   the queue's name, or account/name for one of another account
//	ID         MessageId
//	Key        MessageGroupId of a FIFO queue; "" in a standard queue, also where that has groups (Config.Key of the group can take them from Native)
//	Body       the body; nil where it is in S3 (see Payloads), use Open
//	Size       of the body; in S3 what the sender wrote down
//	Headers    message attributes of the types String and Number, among them traceparent, and AWSTraceHeader
//	Published  SentTimestamp
//	Attempt    ApproximateReceiveCount, and the retries since
//	Native     *types.Message of the SDK, with binary attributes and all system attributes
//
// # Settlement
//
//	Done       deleted; in a standard queue ten at a time, which wait for each other for Config.Linger at most
//	Release    stays in hand until Close gives back everything with a visibility of 0, of each group the last first
//	Retry      standard: visible again after the delay and some jitter, 1 s at least; FIFO: delivered again by this node. No group asks for it
//	Reject     sent to Config.DeadLetter with the attributes rebalancer-error, -queue, -id and -attempt, then deleted; with Config.Redrive left
//	           to SQS, by a visibility that grows; it fails with sources.ErrRedelivered while receives are left
//
// # What to set up
//
// A client whose transport keeps a connection for each receive that waits: the SDK keeps 10 idle ones by default, which is few above some 50
// handlers (WithTransportOptions of its BuildableClient, MaxIdleConnsPerHost).
//
// The queues, with a retention that outlives an outage, and their dead-letter queues of the same kind. The rights: sqs:GetQueueUrl, GetQueueAttributes, ReceiveMessage,
// DeleteMessage and ChangeMessageVisibility on the queues; GetQueueUrl and SendMessage on dead-letter queues; ListQueues and ListQueueTags for
// Discover; kms:Decrypt, and GenerateDataKey for dead-letter queues, where a queue has a key of its own. Trouble with such a key is
// reported as trouble of the resource and costs no attempt. The queue's own visibility timeout does not matter. Two groups on one queue compete for its messages.
//
// Package sqstest is a small SQS for tests, which keeps the rules of FIFO queues. Package sqspayload opens payloads in S3.
package sqs
