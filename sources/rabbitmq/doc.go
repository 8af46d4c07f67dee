// Package rabbitmq is a source whose resources are the queues of one virtual host of RabbitMQ, classic or quorum, with and
// without single active consumer. It was tested on RabbitMQ 3.10 and 4.0.
//
// A queue is consumed by one node at a time, in order. A Reader opens only when the broker shows no consumer of the queue, so
// that a node that froze and is still held by the broker is waited for, and it closes its channel, which gives back what is in hand in
// order, before the claim is released. It never returns messages by nack, which puts them elsewhere on some versions.
// Messages come at least once: those that were in hand when a connection was lost come again, also those that a handler has
// finished meanwhile, because an acknowledgement belongs to the channel that delivered the message and dies with it.
//
// # What a message is made of
//
//	ID         message-id; empty where the publisher set none, for RabbitMQ gives none
//	Key        routing key
//	Body, Size body
//	Headers    headers as text: numbers in decimal, times as RFC 3339, others as Go prints them
//	Published  timestamp, to the second; zero where the publisher set none
//	Attempt    quorum queue: x-delivery-count + 1; classic queue: 1. Retries in the process are added
//	Native     *amqp091.Delivery, read-only; its Acknowledger is nil
//
// # Connections
//
// A Source has one connection that consumes, with a channel for each queue that is open, and another one that publishes dead
// letters, made when they are needed: a broker that is short of memory or disk takes nothing from a connection that
// publishes, not even acknowledgements. A lost connection is made again after a random wait below a bound that doubles from
// 0.5 s to 30 s. The management page shows connections as "group/node consumes" (one of a Lag before any queue is open: "rebalancer asks") and consumers as group/node/fence#n.
//
// The broker lets go of a node that froze, or was cut off, after at most 3 heartbeats. A group refuses a TTL that is too short for that:
// 3 heartbeats + renewal interval must be below TTL − margin. With the defaults of both, 15 s + 5 s is below 24 s.
//
// # Outcomes
//
// Done is acknowledged in bulk, up to the lowest message that is unfinished: at a quarter of the prefetch, after 5 ms in which nothing more is
// finished, or after 100 ms. What is finished above that one, by other keys, is acknowledged singly after 1 s or at
// half of the prefetch. Release and Retry keep the message here, to be handed out again by this Reader: the broker learns
// nothing of it, and a queue cannot delay one message. Reject publishes to Config.DeadLetter and acknowledges when the broker has confirmed it there
// and not returned it. The original keeps its properties, but for user-id, expiration, CC and BCC, and gets headers that tell
// the error and the origin (see HeaderError and the others). While the destination does not take it, it stays where it is. When the
// channel was lost meanwhile, Reject fails with sources.ErrRedelivered: the message comes again.
//
// A queue that does not exist, or exists no more, is sources.ErrGone. A consumer that the broker cancelled or whose
// channel it closed (a late acknowledgement, a queue whose leader moved) is an error of Fetch, and the next Fetch takes the queue up again.
// An acknowledgement must come within the broker's consumer_timeout, 30 minutes by default: a message that is worked, or retried in
// place, for longer is delivered again, and with it all that is in hand. Nobody warns of it before: set consumer_timeout to more than twice what a handler may
// take with all its retries.
//
// # Delivery limit
//
// Quorum queues count how often a message was returned and drop or dead-letter it above a limit (x-delivery-limit; 20 by default from
// 4.0 on). Before 4.3 each message that is in hand when a channel ends counts, whether a handler saw it or not. Therefore:
//
//   - A claim of a quorum queue begins with a prefetch of 1. Where the first message was never delivered before, that lasts until it is done: a
//     message that kills the process burns its own attempts, not those of the hundreds behind it. Config.EagerStart turns that
//     off. With Concurrency, handlers work one by one until then.
//   - Where the first message comes again, all that was returned with it is taken at once, at most 400 messages and 32 MiB, since the broker puts what
//     is returned behind what was returned before it: an owner who gives back a part of that would bring the rest before it. So the order
//     holds when owners come and go quickly, also by crashes, but for one in the milliseconds between the first of them and the rest.
//   - But where the first message was returned for a quarter of the limit (from 4.0 on 5 times by default; where nobody told the limit, twice), it may be
//     what kills processes, and is worked alone, as are those behind it, until one that was never delivered before is done. Then no more innocents are
//     lost to the limit, but a crash, or an owner that leaves before the message is done, puts it behind those that were returned with it. A
//     limit of less than 8 leaves no room for anything else. Where there is none (before 4.0 the default; set Config.DeliveryLimit to -1, or
//     Config.Management), the order always holds.
//   - A hand-over returns what was prefetched, once, and as many more as the broker sends for the last acknowledgements; where all is done, nothing. An
//     owner who asks for no message gets none: a queue is consumed from the first Fetch on.
//   - Before 4.3 a message that was handed to a handler and not finished counts a hand-over, too: one that takes longer than the group's Drain, or is
//     retried while owners change. With a low limit such a message is taken for one that kills processes. Choose a limit well above the
//     number of hand-overs that a message may see; 20, the default from 4.0 on, leaves 18.
//   - Where there is a Config.DeadLetter, a message that may be returned only once more goes there by itself,
//     before a handler sees it. Without one it is handed out, and the broker does what it was told to, which may be to drop it.
//
// AMQP does not tell the limit: it is Config.DeliveryLimit, or what the management API says (Config.Management), or 20
// from 4.0 on. Before 4.0 x-delivery-limit −1 makes every returned message disappear: such a queue is refused where the management API tells it.
//
// # Prefetch
//
// Without Config.Prefetch it follows the pace: as many messages as were worked in a second of work, at most 200 and at most 16 MiB by their average
// size, and more for a caller that has all of them in hand for a second and asks for others: one that collects messages before it works them, such as
// a large batch, and handlers side by side that take longer than a second, for which it goes up to 200. Where a crash must not return so many, set
// Config.Prefetch to a little more than Concurrency. After a change, what came before it is in hand besides,
// so that twice that is the most.
//
// # Partitions
//
// Partitions makes a consistent-hash exchange with numbered queues, so that all messages of a key meet in one queue, and changes their number while
// publishers publish and a group works, each key's messages in order. `rebalancer rabbitmq partitions` does it from the command line.
//
//   - The broker gives keys to queues by the order in which these were bound. It is recorded in arguments of the bindings, and all is bound over one
//     connection. Queues are appended (some keys of each move to the new one, none between the others) and the last is taken away; nothing else keeps
//     the order. Definitions that are imported elsewhere bind in any order: create partitions anew there.
//   - When all nodes of a broker were down (a broker of one node: at each restart), it binds the queues again in any order, and keys go to other
//     queues than before: a message that is published then may overtake those of its key that wait elsewhere. Before a planned restart, stop the publishers
//     and let the group empty the queues. Show tells that it happened; Shrink refuses until Create, repeated with the same number while the queues are
//     empty and nobody publishes, has bound all anew.
//   - Grow puts a marker first into the new queue, binds it, and puts markers behind what the old queues hold. A Reader stops at the one in the new queue until
//     the others were reached, with all before them settled. Shrink puts markers into the queues that stay, unbinds the last, and puts a marker behind
//     what that one holds; the others stop at theirs until it is reached with nothing behind it. When a second one is reached so, the queue is deleted:
//     all that came before this second one is settled by then. What is published into the queue itself in that moment is lost with it.
//   - Markers have the header x-rebalancer-marker, are handed to no handler, and count where the broker counts messages. What they tell
//     each other stands in queues without messages whose names begin with "rebalancer.": a node's user needs the right to configure those.
//   - A publisher waits for the confirmation of a key's message before it publishes the key's next one, or the broker may take them in any order.
//   - A marker that is lost loses the order, or stops a queue: no policy may drop messages of the queues (length, time to live), and
//     nobody else may consume them. A marker is returned with what is in hand when a queue changes its owner, and counts towards the
//     delivery limit: a queue that waits for another should not have more owners meanwhile than its limit. Where a queue waits in
//     vain, repeat the command with the same number: it sends again what others were to be told. Each change has its own names for
//     what its markers tell, so that those of an earlier one, still unread, open and stop nothing.
//
// # What an operator sets up
//
// Queues, exchanges and bindings: nothing is declared here (but see Partitions). The user needs the right to read the queues; for
// dead letters the right to write to the exchange of Config.DeadLetter, "amq.default" for a queue; for the management API the tag
// "management". Only one group may consume a queue, and nothing beside it. After the first Fetch somebody else's consumer is noticed only
// while nothing comes from the queue, and told to Config.Logger after 30 s.
//
// Limits: a quorum queue that is behind with its work may forget acknowledgements that are under way when a channel is closed; those messages come
// again, although they were done. Streams are refused. A consumer that appears beside an open Reader competes for its messages; a single active consumer
// on the queue keeps the order even then. Without the management API the type of a queue is asked for by an argument that
// the broker refuses, which it notes as an error of a channel in its log, once for a queue and process.
package rabbitmq
