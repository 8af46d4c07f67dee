package group

import "github.com/rebalancer-go/rebalancer/coord"

// drain tells the machine whether the node is to be given nothing.
func (n *node) drain() { n.step(coord.Drain{On: n.g.draining.Load()}) }
