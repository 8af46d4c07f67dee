package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/rebalancer-go/rebalancer/admin"
	"github.com/rebalancer-go/rebalancer/backends"
)

func checkpointsListCommand() command {
	return command{
		name: "checkpoints list", args: "GROUP", short: "list the resources of which a group keeps how far they were worked", min: 1, max: 1,
		long: "It writes one line per resource that has a checkpoint: its name, a tab, and the number of its keys. Sources that leave files or objects where they are\n" +
			"keep in it what they have worked; programs may keep what they like.",
		setup: func(f *flags) action {
			var store string
			operatorStore(f, &store)
			return func(ctx context.Context, p *program, args, _ []string) error {
				return p.withStore(ctx, store, true, func(s backends.Store) error {
					list, err := admin.Checkpoints(ctx, s, args[0])
					if err != nil {
						return err
					}
					var b strings.Builder
					for _, c := range list {
						fmt.Fprintf(&b, "%s\t%d\n", quoteIfOdd(c.Resource), c.Keys)
					}
					_, err = io.WriteString(p.stdout, b.String())
					return err
				})
			}
		},
	}
}

// jsonCheckpoint is a line of checkpoints export: its names are part of the command line's contract.
type jsonCheckpoint struct {
	Resource string `json:"resource"`
	Key      string `json:"key"`
	Version  int64  `json:"version"`
	Value    []byte `json:"value"`
}

func checkpointsExportCommand() command {
	return command{
		name: "checkpoints export", args: "GROUP [NAME…]", short: "write checkpoints as JSON", min: 1, max: -1,
		long: "It writes one line of JSON per key, with the value in base64: of these resources, or of all that have a checkpoint. It is no snapshot while nodes are\n" +
			"at work.",
		setup: func(f *flags) action {
			var store string
			operatorStore(f, &store)
			return func(ctx context.Context, p *program, args, _ []string) error {
				return p.withStore(ctx, store, true, func(s backends.Store) error { return export(ctx, p.stdout, s, args[0], args[1:]) })
			}
		},
	}
}

// export writes one resource after the other, since a checkpoint may have megabytes.
func export(ctx context.Context, w io.Writer, s backends.Store, group string, names []string) error {
	if len(names) == 0 {
		all, err := admin.Checkpoints(ctx, s, group)
		if err != nil {
			return err
		}
		for _, c := range all {
			names = append(names, c.Resource)
		}
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	for _, name := range dedupe(names) {
		keys, err := admin.ReadCheckpoint(ctx, s, group, name)
		if err != nil {
			return err
		}
		for _, k := range keys {
			if err := e.Encode(jsonCheckpoint{Resource: name, Key: k.Key, Version: k.Version, Value: k.Value}); err != nil {
				return err
			}
		}
	}
	return nil
}

const checkpointsResetLong = `Whoever holds a resource next begins anew: a source that leaves files or objects where they are works all of them again. Nobody may hold it meanwhile: pause the
resources first, without --keep, and resume them afterwards. Without --execute it only says what it would remove.`

func checkpointsResetCommand() command {
	return command{
		name: "checkpoints reset", args: "GROUP NAME…", short: "forget how far resources were worked", long: checkpointsResetLong, min: 2, max: -1,
		setup: func(f *flags) action {
			var o operatorFlags
			var execute bool
			o.define(f)
			f.BoolVar(&execute, "execute", false, "do it; else it is only said what would be done")
			f.explain("execute", "")
			return func(ctx context.Context, p *program, args, _ []string) error {
				return p.withOperator(ctx, o, true, func(s backends.Store) error {
					list, err := admin.ResetCheckpoints(ctx, s, args[0], execute, args[1:]...)
					if err != nil {
						return err
					}
					p.tellReset(args[1:], list, execute)
					return nil
				})
			}
		},
	}
}

// tellReset says of each resource, once, what became or would become of its checkpoint.
func (p *program) tellReset(names []string, list []admin.Checkpoint, execute bool) {
	keys := map[string]int{}
	for _, c := range list {
		keys[c.Resource] = c.Keys
	}
	for _, n := range dedupe(names) {
		text := "has no checkpoint"
		switch {
		case keys[n] > 0 && execute:
			text = fmt.Sprintf("reset (%s)", countOf(keys[n], "key"))
		case keys[n] > 0:
			text = fmt.Sprintf("would be reset (%s)", countOf(keys[n], "key"))
		}
		fmt.Fprintf(p.stderr, "%s %s\n", quoteIfOdd(n), text)
	}
	if !execute && len(list) > 0 {
		fmt.Fprintln(p.stderr, "nothing was changed: give --execute to do it")
	}
}
