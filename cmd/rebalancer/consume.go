package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/group"
)

// consumeFlags are the flags of consume.
type consumeFlags struct {
	source, store, node, barrier string
	health                       string
	success, failure             string
	resources                    list
	registered                   bool
	discover                     string
	discoverEvery                time.Duration
	ttl, drain, idle             time.Duration
	concurrency, priority        int
	attempts, count              int
	placement                    placementFlags
	print                        bool
}

const consumeLong = `It joins GROUP as one of its nodes and works the resources that the group gives it. A resource is a name below the
source: for file:///data the directory in it (--resource in is /data/in), for amqp://host/vhost the queue. Sources of files take
parameters, as in "file:///data?done_file=*.done&stable_for=10s":
` + pickupParameters + `.
Every node of the group uses the same --ttl,
--barrier, kind of resources, --max-active, --fail-back, --max-moving and --max-moving-per-node; a node that differs is refused.

With --static the name of --node outlives its process: a restart within --ttl keeps its resources, and nothing else moves. A
new process under the name ends an older one, which then exits with 4.

With a CMD it runs CMD once for each message, the payload on its standard input. Exit code 0 settles the message, 65 says
that no retry can help, any other makes it be tried again. CMD finds in its environment RB_GROUP, RB_NODE, RB_RESOURCE,
RB_ID (the same again on redelivery), RB_KEY (for files the name), RB_ATTEMPT (1 at first), RB_FENCE (grows with every
new owner of the resource: let others refuse a smaller one) and RB_HEADERS (a JSON object). Values are passed as they are,
whatever bytes they hold, but for NUL, which a variable cannot hold: it becomes U+FFFD. CMD must not exit with 0
before its work is done, also not on SIGTERM. When its time is over it and all that it started get SIGTERM, then
SIGKILL; nothing that it leaves in the background outlives it, nor does anything outlive rebalancer, also when that is
killed or stopped. Under systemd set KillMode=mixed, so that a stop reaches rebalancer alone.

Without a CMD it writes one JSON line per message to standard output and settles the message as --on-success says, which
must then be given. With delete the line is all that is left of it: what its reader has not read from the pipe when it
ends is lost. A body of at most 64 KiB is in "body", or in "body_base64" when it is not UTF-8 (so with the other texts). A longer
one fails with delete; with move:DIR see "path", from where the file goes to DIR once the line is written. When standard output
is closed, what was not written is given back and the program ends.

SIGTERM or Ctrl-C finishes what is in hand, gives everything back and leaves; a second one ends at once.`

func consumeCommand(p *program) command {
	return command{
		name: "consume", args: "GROUP", short: "work the messages of a group's resources", long: consumeLong,
		min: 1, max: 1, rest: true,
		setup: func(f *flags) action {
			c := &consumeFlags{}
			c.define(f, p)
			f.BoolVar(&c.print, "print-config", false, "show what would be used and where each value comes from, and end")
			f.explain("print-config", "")
			return func(ctx context.Context, p *program, args, rest []string) error {
				if c.print {
					_, _, err := c.check(rest)
					return errors.Join(p.printConfig(f, args[0]), err)
				}
				return c.run(ctx, p, args, rest)
			}
		},
	}
}

func (c *consumeFlags) define(f *flags, p *program) {
	f.StringVar(&c.source, "source", "", "where messages come from: "+p.sourceForms()+". Required.")
	f.explain("source", "URL")
	f.Var(&c.resources, "resource", "a resource to share; give it once for each. In the environment: separated by commas.")
	f.explain("resource", "NAME")
	f.BoolVar(&c.registered, "registered", false, "share the resources that are kept in the store (`rebalancer resources add`)")
	f.explain("registered", "")
	f.StringVar(&c.discover, "discover", "", discoverHelp)
	f.explain("discover", "PATTERN")
	f.DurationVar(&c.discoverEvery, "discover-every", group.DefaultDiscoverEvery, "how long --discover waits before it looks again")
	f.explain("discover-every", "DURATION")
	storeFlag(f, p, &c.store)
	f.StringVar(&c.node, "node", "", "unique name of this node. Defaults to the host's name and something random.")
	f.explain("node", "NAME")
	f.DurationVar(&c.ttl, "ttl", group.DefaultTTL, "a node that crashed is replaced after this")
	f.explain("ttl", "DURATION")
	f.DurationVar(&c.drain, "drain", group.DefaultDrain, "what is in hand may take this long when its resource moves or the program stops")
	f.explain("drain", "DURATION")
	f.IntVar(&c.concurrency, "concurrency", 1, "messages at once on one resource; above 1 order is kept only among those with the same key")
	f.explain("concurrency", "N")
	f.IntVar(&c.priority, "priority", 0, "resources go to nodes of the highest priority only")
	f.explain("priority", "N")
	c.placement.define(f)
	f.StringVar(&c.health, "health", "", "answer probes at this address: /livez while the process needs no restart, /readyz while it is a member of its\n"+
		"group and gets on. An address without a host is that of every network.")
	f.explain("health", "HOST:PORT")
	f.IntVar(&c.attempts, "attempts", 0, "how often a message is tried before --on-failure decides; negative: for ever.\n"+
		"Defaults to 5 when --on-failure is given, else to for ever.")
	f.explain("attempts", "N")
	f.StringVar(&c.barrier, "barrier", "resource", "how the group rebalances: resource stops only what moves, global stops everybody")
	f.explain("barrier", "resource|global")
	f.StringVar(&c.success, "on-success", "", "what becomes of a message that was worked. Defaults to delete when there is a CMD.\n"+
		"Files and objects can be kept where they are; the store remembers them. DIR may have the time in its name,\n"+
		"as in done/{2006-01-02}.")
	f.explain("on-success", "delete|move:DIR|keep|tag:KEY=VALUE")
	f.StringVar(&c.failure, "on-failure", "", "what becomes of a message whose attempts are used up, or whose CMD exited with 65: it is\n"+
		"moved (for amqp:// DIR is a queue), with the reason beside it, or the resource stands still. Without it the\n"+
		"message stays and is tried again.")
	f.explain("on-failure", "move:DIR|keep|tag:KEY=VALUE|stop")
	f.IntVar(&c.count, "count", 0, "end after N messages were worked")
	f.explain("count", "N")
	f.DurationVar(&c.idle, "exit-idle", 0, "end after this time without a message; with code 1\nwhen a resource does not get on, or the group was never joined")
	f.explain("exit-idle", "DURATION")
}

// check finds all that is wrong with the flags.
func (c *consumeFlags) check(rest []string) (onSuccess, onFailure settle, err error) {
	var errs []error
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, usagef(format, args...))
		}
	}
	bad(c.source == "", "--source is missing, as in --source file:///data")
	bad(len(c.resources) == 0 && !c.registered && c.discover == "", "--resource NAME, --registered or --discover PATTERN is missing")
	bad(len(c.resources) > 0 && c.registered, "--resource and --registered exclude each other")
	bad(c.discover != "" && (c.registered || len(c.resources) > 0), "--discover excludes --resource and --registered")
	bad(c.discoverEvery <= 0, "--discover-every is %v: it must be above 0", c.discoverEvery)
	bad(c.barrier != "resource" && c.barrier != "global", "--barrier is %q: it must be resource or global", c.barrier)
	bad(c.count < 0, "--count is %d: it must be at least 0", c.count)
	bad(c.idle < 0, "--exit-idle is %v: it must be at least 0", c.idle)
	bad(c.ttl <= 0, "--ttl is %v: it must be above 0", c.ttl)
	bad(c.drain <= 0, "--drain is %v: it must be above 0", c.drain)
	bad(c.concurrency < 1, "--concurrency is %d: it must be at least 1", c.concurrency)
	bad(rest != nil && len(rest) == 0, "the command after -- is missing")
	bad(rest == nil && c.success == "", "without a command after --, --on-success must say what becomes of a message once its line is written")
	c.placement.check(c.node, bad)
	onSuccess, err1 := parseSettle("on-success", c.success, "delete")
	onFailure, err2 := parseSettle("on-failure", c.failure, "stop")
	return onSuccess, onFailure, errors.Join(append(errs, err1, err2)...)
}

func (c *consumeFlags) run(ctx context.Context, p *program, args, rest []string) error {
	onSuccess, onFailure, err := c.check(rest)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(p.stderr, nil))
	src, err := p.openSource(ctx, c.source, sourceOptions{success: onSuccess, failure: onFailure, logger: log, list: c.discover != ""})
	if err != nil {
		return err
	}
	defer src.close()
	found, err := c.discovery(ctx, src, log)
	if err != nil {
		return err
	}
	if c.store == "" && src.notLocal != "" {
		return usagef("--store is missing: %s", src.notLocal)
	}
	store, err := p.openStoreOrDefault(ctx, c.store, false)
	if err != nil {
		return err
	}
	defer store.Close()

	cfg := c.config(args[0], src, found, onFailure)
	cfg.Store, cfg.Logger = store, log
	ends := &endings{count: c.count, idle: c.idle, unlisted: found.trouble}
	ctx, ends.stop = context.WithCancelCause(ctx)
	defer ends.stop(nil)
	g, err := group.New(cfg)
	if err != nil {
		return err
	}
	handle, close, err := c.handler(p, g, src, rest, ends)
	if err != nil {
		return err
	}
	defer close()
	unserve, err := serveHealth(ctx, c.health, g)
	if err != nil {
		return err
	}
	defer unserve()
	ends.begin(g.Status)
	defer ends.end()
	err = g.Consume(ctx, ends.wrap(handle))
	log.Info("ended", "group", args[0], "worked", ends.worked(), "why", why(ctx))
	if broken := (*outputError)(nil); err == nil && errors.As(context.Cause(ctx), &broken) {
		return broken
	}
	if err == nil {
		err = ends.unwell()
	}
	return err
}

// config is the group's configuration without what is opened.
func (c *consumeFlags) config(name string, src *openSource, found *discovery, onFailure settle) group.Config {
	cfg := group.Config{
		Name: name, Source: src.Source, Resources: group.Static(c.resources...), Node: c.node,
		TTL: c.ttl, Drain: c.drain, Concurrency: c.concurrency, Priority: c.priority,
		GlobalBarrier: c.barrier == "global", Retry: group.Retry{Attempts: c.attempts},
	}
	c.placement.config(&cfg)
	if c.registered {
		cfg.Resources = group.Registered()
	}
	if found != nil {
		cfg.Resources = found.resources()
	}
	if onFailure.action == "stop" {
		cfg.Retry.Exhausted = group.Stop
	}
	return cfg
}

// handler is what works the messages, and how to end it.
func (c *consumeFlags) handler(p *program, g *group.Group, src *openSource, rest []string, ends *endings) (rebalancer.Handler, func(), error) {
	if len(rest) > 0 {
		h, err := newCommandHandler(p, g, rest, c.ttl)
		if err != nil {
			return nil, nil, err
		}
		return h.handle, h.close, nil
	}
	s := g.Status()
	l := &lines{w: p.stdout, group: s.Group, node: s.Node, path: src.path, whole: c.success == "delete", stop: ends.stop}
	unwatch, err := watchOutput(p.stdout, func() { ends.stop(&outputError{errors.New("nobody reads it any more")}) })
	if err != nil {
		return nil, nil, err
	}
	return l.handle, unwatch, nil
}

func why(ctx context.Context) string {
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err.Error()
	}
	if ctx.Err() != nil {
		return "asked to"
	}
	return ""
}

func (p *program) sourceForms() string {
	var forms []string
	for _, d := range p.sources {
		forms = append(forms, d.form)
	}
	return strings.Join(forms, ", ")
}

// outputError says that standard output cannot be written.
type outputError struct{ err error }

func (e *outputError) Error() string { return fmt.Sprintf("standard output: %v", e.err) }
func (e *outputError) Unwrap() error { return e.err }
