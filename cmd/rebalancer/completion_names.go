package main

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rebalancer-go/rebalancer/admin"
	"github.com/rebalancer-go/rebalancer/backends"
)

// completeWithin bounds what a key press may cost.
const completeWithin = time.Second

// arguments are what the next argument of a command may be. What cannot be found out quickly is left out.
func (p *program) arguments(ctx context.Context, c *command, f *flags, pos []string) []string {
	ctx, cancel := context.WithTimeout(ctx, completeWithin)
	defer cancel()
	switch kind := argumentAt(c, len(pos)); kind {
	case "GROUP":
		names := p.ask(ctx, c, f, pos, func(ctx context.Context, s backends.Store) ([]string, error) { return admin.Groups(ctx, s) })
		if q, err := p.configured(c, f, pos); err == nil && q.config != nil {
			names = append(names, slices.Collect(maps.Keys(q.config.groups))...)
		}
		return names
	case "NODE", "NAME":
		return p.ask(ctx, c, f, pos, func(ctx context.Context, s backends.Store) ([]string, error) {
			d, err := admin.Describe(ctx, s, pos[0])
			var names []string
			if kind == "NODE" {
				for _, n := range d.Nodes {
					names = append(names, n.Name)
				}
				return append(names, d.Drained...), err
			}
			for _, r := range d.Resources {
				names = append(names, r.Name)
			}
			return names, err
		})
	default:
		if strings.Contains(kind, "|") {
			return strings.Split(kind, "|")
		}
	}
	return nil
}

// argumentAt is what the usage line calls an argument, "" when there can be none. The last one may come again when it ends with ….
func argumentAt(c *command, n int) string {
	kind := ""
	for i, word := range strings.Fields(c.args) {
		if strings.HasPrefix(word, "-") {
			break
		}
		name := strings.Trim(word, "[]…")
		if i == n || i < n && strings.Contains(word, "…") {
			kind = name
		}
	}
	return kind
}

// ask asks the store that the command would use. It waits no longer than ctx, whatever the store does: the program then ends.
func (p *program) ask(ctx context.Context, c *command, f *flags, pos []string, do func(context.Context, backends.Store) ([]string, error)) []string {
	q, err := p.configured(c, f, pos)
	fl := f.Lookup("store")
	if err != nil || fl == nil {
		return nil
	}
	answer := make(chan []string, 1)
	go func() {
		var names []string
		_ = q.withStore(ctx, fl.Value.String(), true, func(s backends.Store) (err error) {
			names, err = do(ctx, s)
			return err
		})
		answer <- names
	}()
	select {
	case names := <-answer:
		return names
	case <-ctx.Done():
		return nil
	}
}
