package main

import (
	"bytes"
	"context"
	"encoding/json"
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
state (held, moving, waiting, unshared), its owner, the fence, since when it is held, and why it does not get on.`

func describeCommand() command {
	return command{
		name: "describe", args: "GROUP", short: "show how a group stands", long: describeLong, min: 1, max: 1,
		setup: func(f *flags) action {
			var store, output string
			operatorStore(f, &store)
			f.StringVar(&output, "output", "text", "how to write it; in json a duration is in seconds")
			f.explain("output", "text|json")
			f.short("o", "output")
			return func(ctx context.Context, p *program, args, _ []string) error {
				if output != "text" && output != "json" {
					return usagef("--output is %q: it must be text or json", output)
				}
				return p.withStore(ctx, store, true, func(s backends.Store) error {
					d, err := admin.Describe(ctx, s, args[0])
					if err != nil {
						return err
					}
					if output == "json" {
						return describeJSON(p.stdout, d)
					}
					return describeText(p.stdout, d)
				})
			}
		},
	}
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
	fmt.Fprintf(&b, "Generation   %d\n\n", d.Generation)
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NODE\tHOLDS\tASSIGNED\tMAX\tPRIORITY\tWEIGHT\tSESSION\tVERSION\tNOTES")
	for _, n := range d.Nodes {
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%d\t%d\t%s\t%s\t%s\n", n.Name, n.Holds, n.Assigned, orNone(n.Max), n.Priority, n.Weight,
			left(n.Left), orDash(n.Version), orDash(notes(n)))
	}
	w.Flush()
	b.WriteString("\n")
	fmt.Fprintln(w, "RESOURCE\tSTATE\tOWNER\tNEXT\tFENCE\tSINCE\tREASON")
	for _, r := range d.Resources {
		since, fence := "-", "-"
		if r.Owner != "" {
			since, fence = r.Since.UTC().Format(time.RFC3339), fmt.Sprint(r.Fence)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", quoteIfOdd(r.Name), r.State, orDash(r.Owner), orDash(r.Next), fence, since,
			orDash(oneLine(r.Reason)))
	}
	w.Flush()
	_, err := out.Write(b.Bytes())
	return err
}

func notes(n admin.Node) string {
	var notes []string
	if n.Leaving {
		notes = append(notes, "leaving")
	}
	for _, k := range slices.Sorted(maps.Keys(n.Labels)) {
		notes = append(notes, quoteIfOdd(k+"="+n.Labels[k]))
	}
	return strings.Join(notes, " ")
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

// The JSON of describe: its names are part of the command line's contract.
type (
	jsonGroup struct {
		Group       string         `json:"group"`
		Origin      string         `json:"origin"`
		TTL         float64        `json:"ttl"`
		BarrierMode string         `json:"barrier_mode"`
		Barrier     string         `json:"barrier,omitempty"`
		Coordinator string         `json:"coordinator"`
		Epoch       int64          `json:"epoch"`
		Generation  int64          `json:"generation"`
		Nodes       []jsonNode     `json:"nodes"`
		Resources   []jsonResource `json:"resources"`
	}
	jsonNode struct {
		Name     string            `json:"name"`
		Holds    int               `json:"holds"`
		Assigned int               `json:"assigned"`
		Max      int               `json:"max,omitempty"`
		Priority int               `json:"priority"`
		Weight   int               `json:"weight"`
		Left     *float64          `json:"session_left,omitempty"`
		Version  string            `json:"version,omitempty"`
		Labels   map[string]string `json:"labels,omitempty"`
		Leaving  bool              `json:"leaving,omitempty"`
	}
	jsonResource struct {
		Name   string     `json:"name"`
		State  string     `json:"state"`
		Owner  string     `json:"owner,omitempty"`
		Next   string     `json:"next,omitempty"`
		Fence  int64      `json:"fence,omitempty"`
		Since  *time.Time `json:"since,omitempty"`
		Reason string     `json:"reason,omitempty"`
	}
)

func describeJSON(w io.Writer, d admin.Description) error {
	g := jsonGroup{
		Group: d.Group, Origin: d.Origin, TTL: d.TTL.Seconds(), BarrierMode: d.Settings.Barrier, Barrier: d.Barrier,
		Coordinator: d.Coordinator, Epoch: d.Epoch, Generation: d.Generation, Nodes: []jsonNode{}, Resources: []jsonResource{},
	}
	for _, n := range d.Nodes {
		j := jsonNode{Name: n.Name, Holds: n.Holds, Assigned: n.Assigned, Max: n.Max, Priority: n.Priority, Weight: n.Weight,
			Version: n.Version, Labels: n.Labels, Leaving: n.Leaving}
		if n.Left >= 0 {
			s := n.Left.Seconds()
			j.Left = &s
		}
		g.Nodes = append(g.Nodes, j)
	}
	for _, r := range d.Resources {
		j := jsonResource{Name: r.Name, State: r.State, Owner: r.Owner, Next: r.Next, Fence: r.Fence, Reason: r.Reason}
		if r.Owner != "" {
			j.Since = &r.Since
		}
		g.Resources = append(g.Resources, j)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(g)
}
