package main

import (
	"context"
	"fmt"

	"github.com/rebalancer-go/rebalancer/admin"
	"github.com/rebalancer-go/rebalancer/backends"
)

func resourcesListCommand() command {
	return command{
		name: "resources list", args: "GROUP", short: "list the registered resources of a group", min: 1, max: 1,
		long: "It writes one name per line; names with characters that cannot be printed are quoted.",
		setup: func(f *flags) action {
			var store string
			operatorStore(f, &store)
			return func(ctx context.Context, p *program, args, _ []string) error {
				return p.withStore(ctx, store, true, func(s backends.Store) error {
					list, err := admin.Resources(ctx, s, args[0])
					if err != nil {
						return err
					}
					return writeLines(p.stdout, list)
				})
			}
		},
	}
}

const resourcesAddLong = `The nodes of the group share them from now on. Without --weight, --require and --prefer, adding one that is there changes nothing.
With any of them the three together replace those of a resource that is there: what is not given goes back to its default.`

func resourcesAddCommand() command {
	return command{
		name: "resources add", args: "GROUP NAME…", short: "register resources with a group", long: resourcesAddLong, min: 2, max: -1,
		setup: func(f *flags) action {
			var o operatorFlags
			var weight int
			var require, prefer list
			o.define(f)
			f.IntVar(&weight, "weight", 0, "the load of each of them beside that of others. Defaults to 1.")
			f.explain("weight", "N")
			f.Var(&require, "require", "a label (see consume) that a node must have to be given them; give it once for each. In the environment:\n"+
				"separated by commas.")
			f.explain("require", "KEY=VALUE")
			f.Var(&prefer, "prefer", "the same for a label that their node should have")
			f.explain("prefer", "KEY=VALUE")
			return func(ctx context.Context, p *program, args, _ []string) error {
				return p.changed(ctx, o, args[1:], "registered", "was registered already", func(s backends.Store) ([]string, error) {
					if weight == 0 && len(require) == 0 && len(prefer) == 0 {
						return admin.AddResources(ctx, s, args[0], args[1:]...)
					}
					var rs []admin.Registration
					for _, n := range dedupe(args[1:]) {
						rs = append(rs, admin.Registration{Name: n, Weight: weight, Require: require, Prefer: prefer})
					}
					return admin.Register(ctx, s, args[0], rs...)
				})
			}
		},
	}
}

func resourcesRemoveCommand() command {
	return command{
		name: "resources remove", args: "GROUP NAME…", short: "take resources off the list of a group", min: 2, max: -1,
		long: "Nodes finish what is in hand and give them back. Removing one that is not there changes nothing.",
		setup: func(f *flags) action {
			var o operatorFlags
			o.define(f)
			return func(ctx context.Context, p *program, args, _ []string) error {
				return p.changed(ctx, o, args[1:], "removed", "was not registered", func(s backends.Store) ([]string, error) {
					return admin.RemoveResources(ctx, s, args[0], args[1:]...)
				})
			}
		},
	}
}

func resourcesWeightCommand() command {
	return command{
		name: "resources weight", args: "GROUP NAME… --weight N", short: "give registered resources another weight", min: 2, max: -1,
		long: "The labels that they require or prefer stay as they are. It is refused when one of them is not registered.",
		setup: func(f *flags) action {
			var o operatorFlags
			var weight int
			o.define(f)
			f.IntVar(&weight, "weight", 0, "the load of each of them beside that of others. Required.")
			f.explain("weight", "N")
			return func(ctx context.Context, p *program, args, _ []string) error {
				return p.changed(ctx, o, args[1:], "changed", "has this weight already", func(s backends.Store) ([]string, error) {
					return admin.SetWeight(ctx, s, args[0], weight, args[1:]...)
				})
			}
		},
	}
}

// changed carries out a change and says of each name, once, whether it did anything.
func (p *program) changed(ctx context.Context, o operatorFlags, names []string, did, not string, change func(backends.Store) ([]string, error)) error {
	return p.withOperator(ctx, o, true, func(s backends.Store) error {
		changed, err := change(s)
		if err == nil {
			p.tell(names, changed, did, not)
		}
		return err
	})
}

// tell says of each name, once, whether it was changed.
func (p *program) tell(names, changed []string, did, not string) {
	is := map[string]bool{}
	for _, n := range changed {
		is[n] = true
	}
	for _, n := range dedupe(names) {
		text := not
		if is[n] {
			text = did
		}
		fmt.Fprintf(p.stderr, "%s %s\n", quoteIfOdd(n), text)
	}
}

// dedupe drops repetitions and keeps the order.
func dedupe(names []string) []string {
	seen := map[string]bool{}
	var out []string
	for _, n := range names {
		if !seen[n] {
			seen[n] = true
			out = append(out, n)
		}
	}
	return out
}
