package main

import (
	"context"
	"errors"
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
			var o operatorFlags
			var barrier string
			var registered, change bool
			var ttl time.Duration
			var all groupFlags
			o.define(f)
			f.BoolVar(&registered, "registered", false, "its resources are kept in the store; else its nodes list them")
			f.explain("registered", "")
			f.DurationVar(&ttl, "ttl", group.DefaultTTL, "as for consume")
			f.explain("ttl", "DURATION")
			f.BoolVar(&change, "change", false, "replace the settings of a group that has no members")
			f.explain("change", "")
			f.StringVar(&barrier, "barrier", "resource", "as for consume")
			f.explain("barrier", "resource|global")
			all.define(f)
			return func(ctx context.Context, p *program, args, _ []string) error {
				var errs []error
				all.check(func(wrong bool, format string, args ...any) {
					if wrong {
						errs = append(errs, usagef(format, args...))
					}
				})
				if err := errors.Join(errs...); err != nil {
					return err
				}
				set := admin.Settings{Barrier: barrier, Origin: "static", TTL: ttl}
				if registered {
					set.Origin = "registered"
				}
				all.settings(&set)
				return p.withOperator(ctx, o, false, func(s backends.Store) error {
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
