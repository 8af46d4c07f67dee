package main

import (
	"context"
	"fmt"

	"github.com/rebalancer-go/rebalancer/admin"
	"github.com/rebalancer-go/rebalancer/backends"
)

const deleteLong = `Its settings, registered resources, checkpoints and all that operators asked of it are removed. It is refused while the group has a member, or somebody holds
a resource. A mark stays, so that a node that starts later is refused and does not make the group again; create makes it anew. Its history
stays, too.`

func deleteCommand() command {
	return command{
		name: "delete", args: "GROUP --confirm GROUP", short: "delete a group without members, with all it has kept", long: deleteLong, min: 1, max: 1,
		setup: func(f *flags) action {
			var o operatorFlags
			var confirm string
			o.define(f)
			f.StringVar(&confirm, "confirm", "", "the name of the group once more. Required.")
			f.explain("confirm", "GROUP")
			return func(ctx context.Context, p *program, args, _ []string) error {
				if confirm != args[0] {
					return usagef("--confirm is %q: to delete the group it must be its name, %q", confirm, args[0])
				}
				return p.withOperator(ctx, o, true, func(s backends.Store) error {
					deleted, err := admin.Delete(ctx, s, args[0])
					if err == nil && !deleted {
						fmt.Fprintf(p.stderr, "group %q was deleted already\n", args[0])
					}
					return err
				})
			}
		},
	}
}
