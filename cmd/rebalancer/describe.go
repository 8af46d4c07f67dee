package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rebalancer-go/rebalancer/admin"
	"github.com/rebalancer-go/rebalancer/backends"
)

const describeLong = `It shows the nodes of GROUP, its coordinator with its epoch (term) and the generation of the plan, and for each resource its
state, its owner, the fence, since when it is held, and why it does not get on. The states: held; moving and waiting, on the way to its next
owner; reserved, kept for a node that has left; paused, without a claim; unshared, nobody may take it; absent, in no list.

With --watch it looks every --interval until Ctrl-C. A terminal is drawn anew each time; elsewhere what changed is appended, a line for each change, or with
--output json the whole group in one line whenever something changed. While the store does not answer that is said, and it goes on.

What went wrong last with a resource is told by the node that holds it, as long as it holds it, at most once per renewal of its session, and also when the
resource gets on again. With --source it asks the source, at each look, how many messages wait; what the source does not tell in time is left out, and
without --watch a source that tells nothing at all is an error, after the group was shown.`

type describeOptions struct {
	store, output, source string
	watch                 bool
	interval              time.Duration
}

func describeCommand() command {
	return command{
		name: "describe", args: "GROUP", short: "show how a group stands", long: describeLong, min: 1, max: 1,
		setup: func(f *flags) action {
			var o describeOptions
			operatorStore(f, &o.store)
			f.StringVar(&o.output, "output", "text", "how to write it; in json a duration is in seconds")
			f.explain("output", "text|json")
			f.short("o", "output")
			f.BoolVar(&o.watch, "watch", false, "go on looking until Ctrl-C")
			f.explain("watch", "")
			f.DurationVar(&o.interval, "interval", 2*time.Second, "how long --watch waits between two looks")
			f.explain("interval", "DURATION")
			f.StringVar(&o.source, "source", "", "the group's source, as for consume, to show how many messages wait. Defaults to none.")
			f.explain("source", "URL")
			return func(ctx context.Context, p *program, args, _ []string) error { return p.describe(ctx, o, args[0]) }
		},
	}
}

func (p *program) describe(ctx context.Context, o describeOptions, group string) error {
	if o.output != "text" && o.output != "json" {
		return usagef("--output is %q: it must be text or json", o.output)
	}
	if o.interval < minInterval {
		return usagef("--interval is %v: it must be at least %v", o.interval, minInterval)
	}
	return p.withStore(ctx, o.store, true, func(s backends.Store) error {
		lags, done, err := p.lags(ctx, o.source)
		if err != nil {
			return err
		}
		defer done()
		if o.watch {
			w := &watcher{
				every: o.interval, json: o.output == "json", out: p.stdout, errs: p.stderr, now: time.Now,
				look: func(ctx context.Context) (admin.Description, error) {
					d, err := admin.Describe(ctx, s, group)
					if err == nil {
						_ = lags(ctx, &d) // what is not known is left out
					}
					return d, err
				},
				screen: func() (columns, lines int, ok bool) { return screenOf(p.stdout) },
			}
			return w.run(ctx)
		}
		d, err := admin.Describe(ctx, s, group)
		if err != nil {
			return err
		}
		unknown := lags(ctx, &d) // told after what is known
		write := describeText
		if o.output == "json" {
			write = describeJSON
		}
		return errors.Join(write(p.stdout, d), unknown)
	})
}

func describeText(out io.Writer, d admin.Description) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "Group        %s\n", d.Group)
	fmt.Fprintf(&b, "Settings     %s resources, ttl %v, %s barrier", d.Origin, d.TTL, d.Settings.Barrier)
	if d.Barrier != "" {
		fmt.Fprintf(&b, " (%s)", d.Barrier)
	}
	fmt.Fprintf(&b, "\nCoordinator  %s\n", orDash(d.Coordinator))
	if d.Coordinator != "" {
		fmt.Fprintf(&b, "Epoch        %d\n", d.Epoch)
	}
	fmt.Fprintf(&b, "Generation   %d\n", d.Generation)
	textPlacement(&b, d)
	b.WriteString("\n")
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NODE\tHOLDS\tASSIGNED\tMAX\tPRIORITY\tWEIGHT\tSESSION\tVERSION\tNOTES")
	for _, n := range d.Nodes {
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%d\t%d\t%s\t%s\t%s\n", n.Name, n.Holds, n.Assigned, orNone(n.Max), n.Priority, n.Weight,
			left(n.Left), orDash(n.Version), orDash(notes(n)))
	}
	w.Flush()
	b.WriteString("\n")
	lag, errs := shows(d)
	fmt.Fprintln(w, "RESOURCE\tSTATE\tOWNER\tNEXT\tFENCE\tSINCE\t"+onlyIf(lag, "LAG\t")+"NOTES\tREASON"+onlyIf(errs, "\tLAST ERROR"))
	for _, r := range d.Resources {
		since, fence := "-", "-"
		if r.Owner != "" {
			since, fence = r.Since.UTC().Format(time.RFC3339), fmt.Sprint(r.Fence)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s%s\t%s%s\n", quoteIfOdd(r.Name), r.State, orDash(r.Owner), orDash(r.Next), fence, since,
			onlyIf(lag, lagOf(r)+"\t"), orDash(resourceNotes(r)), orDash(oneLine(r.Reason)), onlyIf(errs, "\t"+lastError(r)))
	}
	w.Flush()
	_, err := out.Write(b.Bytes())
	return err
}

// shows tells which columns there is anything for.
func shows(d admin.Description) (lag, errs bool) {
	for _, r := range d.Resources {
		lag, errs = lag || r.Lag != nil, errs || r.LastError != ""
	}
	return lag, errs
}

func onlyIf(show bool, text string) string {
	if show {
		return text
	}
	return ""
}

func lagOf(r admin.Resource) string {
	if r.Lag == nil {
		return "-"
	}
	return fmt.Sprint(*r.Lag)
}

// lastError is what went wrong last, and when.
func lastError(r admin.Resource) string {
	if r.LastError == "" {
		return "-"
	}
	return r.LastErrorAt.UTC().Format(time.RFC3339) + " " + oneLine(r.LastError)
}

// textPlacement writes what is out of the ordinary in who is to work what.
func textPlacement(b *bytes.Buffer, d admin.Description) {
	line := func(show bool, format string, args ...any) {
		if show {
			fmt.Fprintf(b, format+"\n", args...)
		}
	}
	failBack := ""
	if d.FailBack {
		failBack = ", fail-back"
	}
	line(d.MaxActive > 0, "Max active   %d%s", d.MaxActive, failBack)
	line(d.MaxMoving > 0, "Max moving   %d", d.MaxMoving)
	line(d.MaxMovingPerNode > 0, "Per node     %d moving at most", d.MaxMovingPerNode)
	line(d.Paused != "", "Paused       the whole group (claims %s)", d.Paused)
	line(d.Pending > 0, "Pending      %d resources move when others have moved", d.Pending)
	line(len(d.Drained) > 0, "Drained      %s", strings.Join(d.Drained, ", "))
	for _, r := range d.Reserved {
		line(true, "Reserved     for %s until %s: %s", r.Node, r.Until.UTC().Format(time.RFC3339), countOf(len(r.Resources), "resource"))
	}
}

func countOf(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func notes(n admin.Node) string {
	notes := nodeStates(n)
	if n.Static {
		notes = append(notes, "static")
	}
	for _, k := range slices.Sorted(maps.Keys(n.Labels)) {
		notes = append(notes, quoteIfOdd(k+"="+n.Labels[k]))
	}
	return strings.Join(notes, " ")
}

func resourceNotes(r admin.Resource) string {
	var notes []string
	if r.Paused != "" {
		notes = append(notes, "paused ("+r.Paused+")")
	}
	if r.Pinned != "" {
		notes = append(notes, "pinned to "+r.Pinned)
	}
	if r.Move != "" {
		notes = append(notes, "move to "+r.Move)
	}
	if r.Weight > 1 {
		notes = append(notes, fmt.Sprintf("weight %d", r.Weight))
	}
	for _, l := range r.Require {
		notes = append(notes, "requires "+quoteIfOdd(l))
	}
	for _, l := range r.Prefer {
		notes = append(notes, "prefers "+quoteIfOdd(l))
	}
	return strings.Join(notes, ", ")
}

// left is how long a session lives on without a renewal.
func left(d time.Duration) string {
	if d < 0 {
		return "-"
	}
	return d.Round(100 * time.Millisecond).String()
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func orNone(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}
