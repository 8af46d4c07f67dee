package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/rebalancer-go/rebalancer/admin"
	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/group"
)

func groupsCommand() command {
	return command{
		name: "groups", short: "list the groups of a store", long: "It writes one name per line.",
		setup: func(f *flags) action {
			var store string
			operatorStore(f, &store)
			return func(ctx context.Context, p *program, _, _ []string) error {
				return p.withStore(ctx, store, true, func(s backends.Store) error {
					gs, err := admin.Groups(ctx, s)
					if err != nil {
						return err
					}
					return writeLines(p.stdout, gs)
				})
			}
		},
	}
}

const createLong = `Nodes make their group themselves when they start. To create it first is a promise that no node of it works anywhere: in a
store that may have lost its data, a new group otherwise waits one ttl before its first start, since nodes of a
forgotten group of that name may still be at work. It is also how a group with registered resources gets its list
before its first node. Creating a group that exists with the same settings changes nothing; one that exists with other settings
is refused, unless it has no members and --change says that they are to be replaced. Nodes that do not fit a created group are refused.`

func createCommand() command {
	return command{
		name: "create", args: "GROUP", short: "create a group before its first node starts", long: createLong, min: 1, max: 1,
		setup: func(f *flags) action {
			var store, barrier string
			var registered, change bool
			var ttl time.Duration
			operatorStore(f, &store)
			f.BoolVar(&registered, "registered", false, "its resources are kept in the store; else its nodes list them")
			f.explain("registered", "")
			f.DurationVar(&ttl, "ttl", group.DefaultTTL, "as for consume")
			f.explain("ttl", "DURATION")
			f.BoolVar(&change, "change", false, "replace the settings of a group that has no members")
			f.explain("change", "")
			f.StringVar(&barrier, "barrier", "resource", "as for consume")
			f.explain("barrier", "resource|global")
			return func(ctx context.Context, p *program, args, _ []string) error {
				set := admin.Settings{Barrier: barrier, Origin: "static", TTL: ttl}
				if registered {
					set.Origin = "registered"
				}
				return p.withStore(ctx, store, false, func(s backends.Store) error {
					write := admin.Create
					if change {
						write = admin.Change
					}
					created, err := write(ctx, s, args[0], set)
					if err == nil && !created {
						fmt.Fprintf(p.stderr, "group %q exists already with these settings\n", args[0])
					}
					return err
				})
			}
		},
	}
}

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

func resourcesAddCommand() command {
	return changeCommand("add", "register resources with a group", "registered", "was registered already",
		"The nodes of the group share them from now on. Adding one that is there changes nothing.", admin.AddResources)
}

func resourcesRemoveCommand() command {
	return changeCommand("remove", "take resources off the list of a group", "removed", "was not registered",
		"Nodes finish what is in hand and give them back. Removing one that is not there changes nothing.", admin.RemoveResources)
}

// changeCommand is one that changes the list of registered resources.
func changeCommand(verb, short, did, not, long string,
	change func(context.Context, backends.Store, string, ...string) ([]string, error)) command {
	return command{
		name: "resources " + verb, args: "GROUP NAME…", short: short, long: long, min: 2, max: -1,
		setup: func(f *flags) action {
			var store string
			operatorStore(f, &store)
			return func(ctx context.Context, p *program, args, _ []string) error {
				return p.withStore(ctx, store, true, func(s backends.Store) error {
					changed, err := change(ctx, s, args[0], args[1:]...)
					if err != nil {
						return err
					}
					is := map[string]bool{}
					for _, n := range changed {
						is[n] = true
					}
					for _, n := range args[1:] {
						text := not
						if is[n] {
							text = did
						}
						fmt.Fprintf(p.stderr, "%s %s\n", quoteIfOdd(n), text)
					}
					return nil
				})
			}
		},
	}
}

func versionCommand() command {
	return command{
		name: "version", short: "say which version this is",
		setup: func(*flags) action {
			return func(_ context.Context, p *program, _, _ []string) error {
				version := "unknown"
				if b, ok := debug.ReadBuildInfo(); ok && b.Main.Version != "" {
					version = b.Main.Version
				}
				_, err := fmt.Fprintf(p.stdout, "rebalancer %s %s %s/%s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
				return err
			}
		},
	}
}

// operatorStore defines --store for commands that have no source.
func operatorStore(f *flags, to *string) {
	f.StringVar(to, "store", "", "the store of the group, as for consume. Defaults to the file in your state directory.")
	f.explain("store", "URL")
}

func writeLines(w io.Writer, names []string) error {
	var b strings.Builder
	for _, n := range names {
		b.WriteString(quoteIfOdd(n) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
