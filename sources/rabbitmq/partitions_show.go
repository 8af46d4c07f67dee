package rabbitmq

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/rebalancer-go/rebalancer/sources"
)

// PartitionsState is what Show tells.
type PartitionsState struct {
	// Exchange is the name of the exchange.
	Exchange string
	// Queues are in the order of their numbers.
	Queues []Partition
	// Reordered tells that all nodes of the broker were down: it gives keys to other queues than before; see the package comment, "Partitions".
	Reordered bool
	// Begun is the command that runs, or that was not ended and is to be repeated: create, grow or shrink; "" for none.
	Begun string
}

// Partition is one queue of the partitions.
type Partition struct {
	// Name is that of the queue.
	Name string
	// Bound tells whether messages come to it. Those of the queue that shrink takes away do not, and it is there until it is worked.
	Bound bool
	// Ready is how many messages wait in it, markers included; those in the hands of a consumer are not counted.
	Ready int
	// Consumers is how many consume it: 1 when a group works it.
	Consumers int
	// WaitsFor are the queues that must be worked up to a change before the group works this one on; empty for none.
	WaitsFor []string
}

// Names lists the queues that are partitions, in the order of their numbers: also those that wait for others, and one that shrink takes away, for as long
// as it is there. A group works all of them.
func (p *Partitions) Names(ctx context.Context) ([]string, error) {
	there, err := p.there(ctx)
	if err != nil {
		return nil, p.wrap("list", err)
	}
	return p.partitions(there), nil
}

// there are the names of all queues.
func (p *Partitions) there(ctx context.Context) (map[string]bool, error) {
	all, err := p.s.management().queues(ctx)
	there := make(map[string]bool, len(all))
	for _, q := range all {
		there[q.Name] = true
	}
	return there, err
}

// partitions are those among the names of queues.
func (p *Partitions) partitions(there map[string]bool) []string {
	names := []string{}
	for name := range there {
		if p.number(name) >= 0 {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return p.number(a) - p.number(b) })
	return names
}

// Show tells how the partitions are. It changes nothing. What it tells of WaitsFor may be some seconds old on a busy broker.
func (p *Partitions) Show(ctx context.Context) (PartitionsState, error) {
	s, err := p.show(ctx)
	if err != nil {
		err = p.wrap("show", err)
	}
	return s, err
}

func (p *Partitions) show(ctx context.Context) (PartitionsState, error) {
	s := PartitionsState{Exchange: p.c.Exchange}
	bound, err := p.count(ctx)
	if err != nil {
		return s, err
	}
	there, err := p.there(ctx)
	if err != nil {
		return s, err
	}
	conn, err := p.link.get(ctx, "rebalancer")
	if err != nil {
		return s, err
	}
	ordered, err := (&change{Partitions: p, conn: conn}).ordered(ctx)
	if err != nil {
		return s, err
	}
	s.Reordered = !ordered
	names := p.partitions(there)
	for i, name := range names {
		q, err := inspect(ctx, conn, name)
		if errors.Is(err, sources.ErrGone) && i >= bound {
			continue // it was deleted meanwhile
		}
		if err != nil {
			return s, err
		}
		s.Queues = append(s.Queues, Partition{Name: name, Bound: i < bound, Ready: q.Messages, Consumers: q.Consumers, WaitsFor: p.waitsFor(i, bound, there)})
	}
	s.Begun = p.begun(bound, there)
	return s, nil
}

// begun tells by its record what was begun.
func (p *Partitions) begun(bound int, there map[string]bool) string {
	if there[p.creating()] {
		return "create"
	}
	for k := max(bound-1, 0); k <= bound; k++ {
		switch {
		case there[p.growing(k)]:
			return "grow"
		case there[p.shrinking(k)]:
			return "shrink"
		}
	}
	return ""
}

// waitsFor are the queues whose tokens are there.
func (p *Partitions) waitsFor(k, bound int, there map[string]bool) []string {
	var names []string
	for i := range k {
		if len(tokens(there, p.settled(k, i, ""))) > 0 {
			names = append(names, p.queue(i))
		}
	}
	for last := max(bound-1, k+1); last <= bound; last++ { // the one that leaves, bound or no more
		if len(tokens(there, p.drained(last, ""))) > 0 {
			names = append(names, p.queue(last))
		}
	}
	return names
}

// tokens are those among the names of queues that are alike but for the change. There is at most one, but for what was left over.
func tokens(there map[string]bool, prefix string) (names []string) {
	for name := range there {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	return names
}
