package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/rebalancer-go/rebalancer/admin"
	"github.com/rebalancer-go/rebalancer/backends"
)

const nodesListLong = `It writes one line per node: its name, a tab, and its state: active, standby (as many others as may be active are), draining (it asked to
be given nothing), drained (an operator did), leaving, reserved (it has left, and its share is kept for a while), or away (drained, and not there).`

func nodesListCommand() command {
	return command{
		name: "nodes list", args: "GROUP", short: "list the nodes of a group", long: nodesListLong, min: 1, max: 1,
		setup: func(f *flags) action {
			var store string
			operatorStore(f, &store)
			return func(ctx context.Context, p *program, args, _ []string) error {
				return p.withStore(ctx, store, true, func(s backends.Store) error {
					d, err := admin.Describe(ctx, s, args[0])
					if err != nil {
						return err
					}
					return writeNodes(p.stdout, d)
				})
			}
		},
	}
}

// writeNodes writes a line for each node that anything is known of.
func writeNodes(w io.Writer, d admin.Description) error {
	var b strings.Builder
	seen := map[string]bool{}
	line := func(node, state string) {
		if !seen[node] {
			seen[node] = true
			fmt.Fprintf(&b, "%s\t%s\n", node, state)
		}
	}
	for _, n := range d.Nodes {
		state := "active"
		if s := nodeStates(n); len(s) > 0 {
			state = s[0]
		}
		line(n.Name, state)
	}
	for _, r := range d.Reserved {
		line(r.Node, "reserved")
	}
	for _, n := range d.Drained {
		line(n, "away")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// nodeStates says what is special of a node, what matters most first.
func nodeStates(n admin.Node) []string {
	var states []string
	for _, s := range []struct {
		is   bool
		name string
	}{{n.Leaving, "leaving"}, {n.Drained, "drained"}, {n.Draining, "draining"}, {n.Standby, "standby"}} {
		if s.is {
			states = append(states, s.name)
		}
	}
	return states
}

func nodesDrainCommand() command {
	return nodesCommand("drain", "give nodes nothing any more", "drained", "was drained already",
		"They finish what is in hand, and other nodes take their resources; also after a restart under the same name, until undrain.", admin.Drain)
}

func nodesUndrainCommand() command {
	return nodesCommand("undrain", "take a drain back", "undrained", "was not drained", "The nodes get their share again.", admin.Undrain)
}

// nodesCommand is one that changes what is asked of nodes.
func nodesCommand(verb, short, did, not, long string,
	change func(ctx context.Context, store backends.Store, group string, nodes ...string) ([]string, error)) command {
	return command{
		name: "nodes " + verb, args: "GROUP NODE…", short: short, long: long, min: 2, max: -1,
		setup: func(f *flags) action {
			var o operatorFlags
			o.define(f)
			return func(ctx context.Context, p *program, args, _ []string) error {
				return p.changed(ctx, o, args[1:], did, not, func(s backends.Store) ([]string, error) {
					return change(ctx, s, args[0], args[1:]...)
				})
			}
		},
	}
}
