package main

import (
	"context"

	"github.com/rebalancer-go/rebalancer/admin"
	"github.com/rebalancer-go/rebalancer/backends"
)

func resourcesPinCommand() command {
	return tieCommand("pin", "tie resources to a node", "While the node is there and not drained no other is given them; else they are shared as all are.",
		"pinned", "was pinned to it already", admin.Pin)
}

func resourcesMoveCommand() command {
	return tieCommand("move", "move resources to a node, once",
		"The coordinator moves them with its next plan; they stay there until something else moves them. It is refused when it cannot be: the\n"+
			"node is not there, drained or on standby, or may not take them, or they are pinned elsewhere.",
		"is to be moved", "is to be moved there already", admin.Move)
}

// tieCommand is one that gives resources to the node of --to.
func tieCommand(verb, short, long, did, not string,
	tie func(ctx context.Context, store backends.Store, group, node string, resources ...string) ([]string, error)) command {
	return command{
		name: "resources " + verb, args: "GROUP NAME… --to NODE", short: short, long: long, min: 2, max: -1,
		setup: func(f *flags) action {
			var o operatorFlags
			var to string
			o.define(f)
			f.StringVar(&to, "to", "", "the node. Required.")
			f.explain("to", "NODE")
			return func(ctx context.Context, p *program, args, _ []string) error {
				if to == "" {
					return usagef("--to NODE is missing")
				}
				return p.changed(ctx, o, args[1:], did, not, func(s backends.Store) ([]string, error) {
					return tie(ctx, s, args[0], to, args[1:]...)
				})
			}
		},
	}
}

func resourcesUnpinCommand() command {
	return command{
		name: "resources unpin", args: "GROUP NAME…", short: "take a pin back", min: 2, max: -1,
		long: "The resources stay where they are until something else moves them.",
		setup: func(f *flags) action {
			var o operatorFlags
			o.define(f)
			return func(ctx context.Context, p *program, args, _ []string) error {
				return p.changed(ctx, o, args[1:], "unpinned", "was not pinned", func(s backends.Store) ([]string, error) {
					return admin.Unpin(ctx, s, args[0], args[1:]...)
				})
			}
		},
	}
}
