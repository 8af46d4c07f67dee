package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// program is the command line with what it takes from outside, so that tests can give it something else.
type program struct {
	stdout     *os.File
	stderr     io.Writer
	lookup     func(string) (string, bool) // of an environment variable
	stores     []storeDriver
	sources    []sourceDriver
	supervisor []string    // arguments that make this program a supervisor
	config     *configFile // that of the call, nil for none
	secrets    []secret    // of the file
}

// command is one of its subcommands.
type command struct {
	name  string // "resources add"
	args  string // for the usage line
	short string
	long  string
	min   int // arguments
	max   int // -1: any number
	rest  bool
	setup func(*flags) action
}

// action runs a command whose flags have been read. rest is what stood after "--", nil when there was none.
type action func(ctx context.Context, p *program, args, rest []string) error

func (p *program) commands() []command {
	return append([]command{
		consumeCommand(p), describeCommand(), groupsCommand(), createCommand(),
		resourcesListCommand(), resourcesAddCommand(), resourcesRemoveCommand(), resourcesPauseCommand(), resourcesResumeCommand(),
		resourcesPinCommand(), resourcesUnpinCommand(), resourcesMoveCommand(),
		nodesListCommand(), nodesDrainCommand(), nodesUndrainCommand(), doctorCommand(), schemaCommand(), configCommand(), serveCommand(), completionCommand(), versionCommand(),
	}, slices.Concat(operatorCommands(), partitionsCommands())...)
}

// run is one call of the program. It returns the exit code.
func (p *program) run(ctx context.Context, args []string) int {
	err := p.dispatch(ctx, args)
	if err == nil {
		return codeDone
	}
	name := "rebalancer"
	if c, _ := p.find(args); c != nil {
		name += " " + c.name
	}
	code := exitCode(err)
	for line := range strings.SplitSeq(err.Error(), "\n") {
		fmt.Fprintf(p.stderr, "%s: %s\n", name, line)
	}
	if code == codeUsage {
		fmt.Fprintf(p.stderr, "Run `%s -h` to see how it is used.\n", name)
	}
	return code
}

func (p *program) dispatch(ctx context.Context, args []string) error {
	if len(args) > 0 && (args[0] == "help" || isHelp(args[0])) {
		return p.help(args[1:])
	}
	if len(args) > 0 && args[0] == completeMode {
		return p.completions(ctx, args[1:])
	}
	c, args := p.find(args)
	switch {
	case c != nil:
		return p.call(ctx, c, args)
	case len(args) == 0:
		return usagef("a command is missing: one of %s", strings.Join(p.names(), ", "))
	}
	return usagef("there is no command %q: one of %s", args[0], strings.Join(p.names(), ", "))
}

// find picks the command with the longest name that args begin with, and returns what follows.
func (p *program) find(args []string) (*command, []string) {
	for n := min(3, len(args)); n > 0; n-- {
		name := strings.Join(args[:n], " ")
		for _, c := range p.commands() {
			if c.name == name {
				return &c, args[n:]
			}
		}
	}
	return nil, args
}

func (p *program) names() []string {
	var names []string
	for _, c := range p.commands() {
		names = append(names, c.name)
	}
	return names
}

func isHelp(arg string) bool { return slices.Contains([]string{"-h", "-help", "--help"}, arg) }

func (p *program) call(ctx context.Context, c *command, args []string) error {
	f, act := flagsOf(c)
	pos, rest, err := f.parse(args, p.lookup)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return f.help(p.stdout)
	case err != nil:
		return err
	case rest != nil && !c.rest:
		return usagef("nothing is expected after --")
	case len(pos) < c.min:
		return usagef("arguments are missing: rebalancer %s %s", c.name, c.args)
	case c.max >= 0 && len(pos) > c.max:
		return usagef("too many arguments: %q", pos[c.max:])
	}
	q, err := p.configured(c, f, pos)
	if err != nil {
		return err
	}
	return act(ctx, q, pos, rest)
}

const intro = `rebalancer shares any set of resources (directories, queues, later buckets, …) among the processes of a
group: each resource is worked by one of them at a time, and when processes come, go or crash the work moves by itself.

  rebalancer consume orders --source file:///data --resource in --on-success delete -- ./import.sh

runs ./import.sh once for each file in /data/in. Start it as often as you like, for several resources.

Commands:
`

const outro = `
Each flag can be set by an environment variable too: --on-success by REBALANCER_ON_SUCCESS. The flag wins. What neither sets is taken
from the file that --config or REBALANCER_CONFIG names: see ` + "`rebalancer help config`" + `.
A password that does not stand in the URL of --store or --source is taken from REBALANCER_STORE_PASSWORD or
REBALANCER_SOURCE_PASSWORD, or from the file that REBALANCER_STORE_PASSWORD_FILE or REBALANCER_SOURCE_PASSWORD_FILE names.
Data goes to standard output, all else to standard error.
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not found, 4 refused, 5 handlers outlived the drain.
`

func (p *program) help(args []string) error {
	if len(args) > 0 {
		c, left := p.find(args)
		if c == nil || len(left) > 0 {
			return usagef("there is no command %q: one of %s", strings.Join(args, " "), strings.Join(p.names(), ", "))
		}
		f, _ := flagsOf(c)
		return f.help(p.stdout)
	}
	var b strings.Builder
	b.WriteString(intro)
	for _, c := range p.commands() {
		fmt.Fprintf(&b, "  %-26s %s\n", c.name, c.short)
	}
	b.WriteString("  help COMMAND               more about a command\n" + outro)
	_, err := io.WriteString(p.stdout, b.String())
	return err
}
