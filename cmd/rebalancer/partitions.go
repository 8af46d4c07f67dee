package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/rebalancer-go/rebalancer/sources/rabbitmq"
)

const partitionsLong = `EXCHANGE is a consistent-hash exchange: publish to it, with the key of a message as the routing key, and all messages of a key meet in one of its
queues EXCHANGE.0, EXCHANGE.1 and so on, which a group shares: --discover 'EXCHANGE.[0-9]*'. The management API is looked for on port 15672 of the
hosts, unless --source names it: amqp://user@host/vhost?management=http://host:15672. A command that failed, or was killed, is to be repeated: it ends what
was begun.`

const createPartitionsLong = `Publish to EXCHANGE only when the command has ended. Where the N queues are there already it changes nothing, but for one case: when all nodes of the broker
were down, they give keys to other queues than before. Stop the publishers then, let the group empty all queues, and run the command again: it binds
the queues anew, in their order.

` + partitionsLong

const growLong = `N is the number of queues that there shall be. Publishers may publish and a group work on meanwhile: some keys move to each new queue, and their
messages wait there until all that was sent before them is worked in the old ones.

` + partitionsLong

const shrinkLong = `N is the number of queues that there shall be; the last ones go. Publishers may publish meanwhile. A group must work the queues: the others stand still at the
change until the one that goes is worked to its end.

` + partitionsLong

// partitionsFlags are the flags of the commands for partitions.
type partitionsFlags struct {
	source, queue string
	config        rabbitmq.PartitionsConfig
}

func (c *partitionsFlags) define(f *flags) {
	f.StringVar(&c.source, "source", "", "the broker: amqp://user@host/vhost or amqps://…, as for consume. Required.")
	f.explain("source", "URL")
	f.StringVar(&c.queue, "queue", "", "what the names of the queues begin with. Defaults to EXCHANGE.")
	f.explain("queue", "NAME")
}

// open makes the partitions; exchange is the first argument.
func (c *partitionsFlags) open(p *program, exchange string) (*rabbitmq.Partitions, error) {
	if c.source == "" {
		return nil, usagef("--source is missing, as in --source amqp://user@host/vhost")
	}
	u, err := parseURL("--source", c.source)
	if err == nil {
		u, err = p.withPassword("--source", u)
	}
	if err != nil {
		return nil, err
	}
	if u.Scheme != "amqp" && u.Scheme != "amqps" {
		return nil, usagef("--source %s: it must be amqp:// or amqps://", shown(u))
	}
	if c.config.Config, err = rabbitmqConfig(u, true); err != nil {
		return nil, err
	}
	c.config.Exchange, c.config.Queue = exchange, c.queue
	c.config.Progress = func(text string) { fmt.Fprintln(p.stderr, text) }
	ps, err := rabbitmq.NewPartitions(c.config)
	if err != nil {
		return nil, &kindError{errUsage, err.Error()}
	}
	return ps, nil
}

// partitionsCommand is one that changes the number.
func partitionsCommand(name, short, long string, more func(*flags, *partitionsFlags), do func(*rabbitmq.Partitions, context.Context, int) error) command {
	return command{
		name: "rabbitmq partitions " + name, args: "EXCHANGE N", short: short, long: long, min: 2, max: 2,
		setup: func(f *flags) action {
			c := &partitionsFlags{}
			c.define(f)
			if more != nil {
				more(f, c)
			}
			return func(ctx context.Context, p *program, args, _ []string) error {
				n, err := strconv.Atoi(args[1])
				if err != nil || n < 1 {
					return usagef("%q is no number of queues: it must be at least 1", args[1])
				}
				ps, err := c.open(p, args[0])
				if err != nil {
					return err
				}
				defer ps.Close()
				return do(ps, ctx, n)
			}
		},
	}
}

func partitionsCommands() []command {
	return []command{
		partitionsCommand("create", "make an exchange and N queues that share its keys", createPartitionsLong, func(f *flags, c *partitionsFlags) {
			f.StringVar(&c.config.Type, "type", "", "of the queues. Defaults to quorum.")
			f.explain("type", "quorum|classic")
			f.StringVar(&c.config.HashHeader, "hash-header", "", "the header that holds the key. Defaults to none: it is the routing key.")
			f.explain("hash-header", "NAME")
		}, (*rabbitmq.Partitions).Create),
		partitionsCommand("grow", "append queues, the order of each key kept", growLong, func(f *flags, c *partitionsFlags) {
			f.BoolVar(&c.config.Wait, "wait", false, "end only when the new queues are worked, which needs a running group")
			f.explain("wait", "")
		}, (*rabbitmq.Partitions).Grow),
		partitionsCommand("shrink", "take the last queues away, the order of each key kept", shrinkLong, nil, (*rabbitmq.Partitions).Shrink),
		showPartitionsCommand(),
	}
}

func showPartitionsCommand() command {
	return command{
		name: "rabbitmq partitions show", args: "EXCHANGE", short: "show the queues of an exchange and what they wait for", min: 1, max: 1,
		long: partitionsLong,
		setup: func(f *flags) action {
			c := &partitionsFlags{}
			var output string
			c.define(f)
			f.StringVar(&output, "output", "text", "how to write it")
			f.explain("output", "text|json")
			f.short("o", "output")
			return func(ctx context.Context, p *program, args, _ []string) error {
				if output != "text" && output != "json" {
					return usagef("--output is %q: it must be text or json", output)
				}
				ps, err := c.open(p, args[0])
				if err != nil {
					return err
				}
				defer ps.Close()
				s, err := ps.Show(ctx)
				if err != nil {
					return err
				}
				if output == "json" {
					return partitionsJSON(p.stdout, s)
				}
				return partitionsText(p.stdout, s)
			}
		},
	}
}

func partitionsText(out io.Writer, s rabbitmq.PartitionsState) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if s.Begun != "" {
		fmt.Fprintf(w, "%s was begun: it runs, or is to be repeated\n\n", s.Begun)
	}
	if s.Reordered {
		fmt.Fprint(w, "the broker was restarted, and gives keys to other queues than before: see `rebalancer rabbitmq partitions create -h`\n\n")
	}
	fmt.Fprintln(w, "QUEUE\tREADY\tCONSUMERS\tWAITS FOR")
	for _, q := range s.Queues {
		name := quoteIfOdd(q.Name)
		if !q.Bound {
			name += " (leaves)"
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\n", name, q.Ready, q.Consumers, orDash(strings.Join(q.WaitsFor, ", ")))
	}
	return w.Flush()
}

func partitionsJSON(out io.Writer, s rabbitmq.PartitionsState) error {
	type queue struct {
		Name      string   `json:"name"`
		Bound     bool     `json:"bound"`
		Ready     int      `json:"ready"`
		Consumers int      `json:"consumers"`
		WaitsFor  []string `json:"waits_for"`
	}
	v := struct {
		Exchange  string  `json:"exchange"`
		Reordered bool    `json:"reordered"`
		Begun     string  `json:"begun"`
		Queues    []queue `json:"queues"`
	}{Exchange: s.Exchange, Reordered: s.Reordered, Begun: s.Begun, Queues: []queue{}}
	for _, q := range s.Queues {
		v.Queues = append(v.Queues, queue{q.Name, q.Bound, q.Ready, q.Consumers, append([]string{}, q.WaitsFor...)})
	}
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
