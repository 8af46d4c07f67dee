package main

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"github.com/rebalancer-go/rebalancer/admin"
	"github.com/rebalancer-go/rebalancer/backends"
)

// operatorFlags are those of commands that change something.
type operatorFlags struct{ store, actor, reason string }

func (o *operatorFlags) define(f *flags) {
	operatorStore(f, &o.store)
	f.StringVar(&o.actor, "actor", "", "who does this, for the history of the group. Defaults to you, on this host.")
	f.explain("actor", "NAME")
	f.StringVar(&o.reason, "reason", "", "why it is done, for the history of the group")
	f.explain("reason", "TEXT")
}

// withOperator opens the store for a change that an operator makes.
func (p *program) withOperator(ctx context.Context, o operatorFlags, existing bool, f func(backends.Store) error) error {
	actor := o.actor
	if actor == "" {
		actor = p.user()
	}
	return p.withStore(ctx, o.store, existing, func(s backends.Store) error { return f(admin.As(s, actor, o.reason)) })
}

// user is who runs this program, as far as its environment says so.
func (p *program) user() string {
	name := ""
	for _, v := range []string{"SUDO_USER", "USER", "LOGNAME", "USERNAME"} {
		if name == "" {
			name, _ = p.lookup(v)
		}
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s@%s", cmp.Or(name, "unknown"), host)
}

// operatorCommands are those of the history and of what ends things.
func operatorCommands() []command {
	return []command{
		historyCommand(), resourcesWeightCommand(), nodesEvictCommand(), stepDownCommand(),
		checkpointsListCommand(), checkpointsExportCommand(), checkpointsResetCommand(), deleteCommand(),
	}
}
