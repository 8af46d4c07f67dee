package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rebalancer-go/rebalancer/admin"
	"github.com/rebalancer-go/rebalancer/backends"
)

const historyLong = `It shows what operators did and each rebalance with its moves and why it was made, the newest last: the last 100 rebalances, and the last 75
operations at least. With --resource it answers why a resource moved and why it is idle: it says first how the resource stands and why it does not get
on, then what became of it.`

// historyFlags are those of history.
type historyFlags struct {
	store, output, resource string
}

func historyCommand() command {
	return command{
		name: "history", args: "GROUP", short: "show what became of a group, and why", long: historyLong, min: 1, max: 1,
		setup: func(f *flags) action {
			var h historyFlags
			operatorStore(f, &h.store)
			f.StringVar(&h.resource, "resource", "", "only what concerns this resource")
			f.explain("resource", "NAME")
			f.StringVar(&h.output, "output", "text", "how to write it")
			f.explain("output", "text|json")
			f.short("o", "output")
			return func(ctx context.Context, p *program, args, _ []string) error {
				if h.output != "text" && h.output != "json" {
					return usagef("--output is %q: it must be text or json", h.output)
				}
				return p.withStore(ctx, h.store, true, func(s backends.Store) error { return h.show(ctx, p.stdout, s, args[0]) })
			}
		},
	}
}

func (h *historyFlags) show(ctx context.Context, out io.Writer, s backends.Store, group string) error {
	list, err := admin.History(ctx, s, group)
	if err != nil {
		return err
	}
	slices.Reverse(list)
	var now *admin.Resource
	if h.resource != "" {
		if now, err = h.standing(ctx, s, group); err != nil {
			return err
		}
		list = slices.DeleteFunc(list, func(r admin.Record) bool { return !concerns(r, h.resource) })
		if now == nil && !slices.ContainsFunc(list, func(r admin.Record) bool { return r.Resource == h.resource }) {
			return &kindError{errNotFound, fmt.Sprintf("group %q has no resource %q, and its history does not name it", group, h.resource)}
		}
	}
	if h.output == "json" {
		return historyJSON(out, group, now, list)
	}
	return historyText(out, now, list)
}

// standing is how the resource stands, nil when the group has none of that name, or is no more.
func (h *historyFlags) standing(ctx context.Context, s backends.Store, group string) (*admin.Resource, error) {
	d, err := admin.Describe(ctx, s, group)
	if err != nil && !errors.Is(err, admin.ErrNotFound) {
		return nil, err
	}
	for i := range d.Resources {
		if d.Resources[i].Name == h.resource {
			return &d.Resources[i], nil
		}
	}
	return nil, nil
}

// concerns tells whether a record is, or may be, about a resource: one that names none is about all of them, and what is left out may be about it.
func concerns(r admin.Record, resource string) bool {
	return r.Resource == resource || r.More > 0 || r.Resource == "" && r.Node == "" && r.Kind != admin.KindRebalance
}

func historyText(out io.Writer, now *admin.Resource, list []admin.Record) error {
	var b bytes.Buffer
	if now != nil {
		fmt.Fprintf(&b, "%s is %s", quoteIfOdd(now.Name), now.State)
		if now.Owner != "" {
			fmt.Fprintf(&b, " by %s since %s", now.Owner, now.Since.UTC().Format(time.RFC3339))
		}
		if now.Reason != "" {
			fmt.Fprintf(&b, ": %s", oneLine(now.Reason))
		}
		b.WriteString("\n\n")
	}
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TIME\tWHAT\tBY\tCONCERNS\tREASON")
	for _, r := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", r.At.Format(time.RFC3339), r.Kind, orDash(oneLine(r.Actor)), orDash(about(r)), orDash(wherefore(r)))
	}
	w.Flush()
	_, err := out.Write(b.Bytes())
	return err
}

// about is what a record concerns.
func about(r admin.Record) string {
	switch {
	case r.More > 0:
		return fmt.Sprintf("and %d more", r.More)
	case r.Node != "":
		return r.Node
	case r.Resource == "":
		return ""
	case r.Kind == admin.KindRebalance:
		return fmt.Sprintf("%s: %s → %s", quoteIfOdd(r.Resource), orDash(r.From), orDash(r.To))
	case r.To != "":
		return fmt.Sprintf("%s → %s", quoteIfOdd(r.Resource), r.To)
	}
	return quoteIfOdd(r.Resource)
}

func wherefore(r admin.Record) string {
	var parts []string
	for _, text := range []string{r.Detail, r.Reason} {
		if text != "" {
			parts = append(parts, oneLine(text))
		}
	}
	return strings.Join(parts, "; ")
}

// The JSON of history: its names are part of the command line's contract.
type (
	jsonHistory struct {
		Group    string        `json:"group"`
		Resource *jsonStanding `json:"resource,omitempty"`
		History  []jsonRecord  `json:"history"`
	}
	jsonStanding struct {
		Name   string     `json:"name"`
		State  string     `json:"state"`
		Owner  string     `json:"owner,omitempty"`
		Since  *time.Time `json:"since,omitempty"`
		Reason string     `json:"reason,omitempty"`
	}
	jsonRecord struct {
		At         time.Time `json:"at"`
		Kind       string    `json:"kind"`
		Actor      string    `json:"actor,omitempty"`
		Node       string    `json:"node,omitempty"`
		Resource   string    `json:"resource,omitempty"`
		From       string    `json:"from,omitempty"`
		To         string    `json:"to,omitempty"`
		Reason     string    `json:"reason,omitempty"`
		Detail     string    `json:"detail,omitempty"`
		Epoch      int64     `json:"epoch,omitempty"`
		Generation int64     `json:"generation,omitempty"`
		More       int       `json:"more,omitempty"`
	}
)

func historyJSON(w io.Writer, group string, now *admin.Resource, list []admin.Record) error {
	h := jsonHistory{Group: group, History: []jsonRecord{}}
	if now != nil {
		h.Resource = &jsonStanding{Name: now.Name, State: now.State, Owner: now.Owner, Reason: now.Reason}
		if now.Owner != "" {
			h.Resource.Since = &now.Since
		}
	}
	for _, r := range list {
		h.History = append(h.History, jsonRecord{
			At: r.At, Kind: r.Kind, Actor: r.Actor, Node: r.Node, Resource: r.Resource, From: r.From, To: r.To, Reason: r.Reason, Detail: r.Detail,
			Epoch: r.Epoch, Generation: r.Generation, More: r.More,
		})
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(h)
}
