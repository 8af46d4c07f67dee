// Package group shares resources among the nodes of a group and runs handlers on those that this node holds.
//
//	g, err := group.New(group.Config{
//		Name:      "invoices",
//		Store:     store,                       // one of the packages below backends
//		Source:    source,                      // one of the packages below sources
//		Resources: group.Static("in/a", "in/b"),
//	})
//	…
//	err = g.Consume(ctx, func(ctx context.Context, m *rebalancer.Message) error { … })
//
// Each resource is worked by at most one node at a time. When nodes or resources come and go the work moves by itself:
// the node that gives a resource back stops fetching, lets the messages in flight finish, settles them, closes the
// source, and only then releases its claim for the next node.
//
// # Failure model
//
// A node works only while it may trust its claims: from just before its last successful renewal was sent until a margin
// before the store can give the claims away. Both Go's monotonic clock and, on Linux, the clock that counts suspended
// time must agree before each delivery and each settlement. A node that cannot reach the store for that long loses what it held, and
// joins again. A handler that ignores its context cannot be stopped; what it writes must be refused by the fence, which
// every message carries. Delivery is at least once.
package group
