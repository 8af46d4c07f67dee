package statuspage

import (
	"context"
	"time"

	"github.com/rebalancer-go/rebalancer/admin"
)

const (
	// maxPast is how many of the last changes are shown, maxParts how many parts of each, and maxNamed how many names of each part.
	maxPast, maxParts, maxNamed = 20, 8, 4
	// pastEvery is the time between two looks at the history of a group that has no new generation: operators write it too.
	pastEvery = 5 * time.Second
)

// past is one rebalance, or one thing that an operator did.
type past struct {
	At         int64  `json:"at"`
	Kind       string `json:"kind"`
	Actor      string `json:"actor,omitempty"`
	Reason     string `json:"reason,omitempty"`
	Detail     string `json:"detail,omitempty"`
	Generation int64  `json:"generation,omitempty,string"`
	Parts      []part `json:"parts,omitempty"`
	More       int    `json:"more,omitempty"` // resources or nodes that are left out, by the history or here
}

// part is what one past change did to some resources or nodes alike.
type part struct {
	Nodes bool     `json:"nodes,omitempty"` // the names are those of nodes
	From  string   `json:"from,omitempty"`
	To    string   `json:"to,omitempty"`
	Names []string `json:"names"`
	Count int      `json:"count"`
}

// pastOf gathers the lines of a history, the newest first.
func pastOf(lines []admin.Record, redact func(string) string) []past {
	type same struct {
		at                          time.Time
		kind, actor, reason, detail string
		epoch, generation           int64
	}
	var all []past
	var last same
	for _, l := range lines {
		is := same{l.At, l.Kind, l.Actor, l.Reason, l.Detail, l.Epoch, l.Generation}
		if len(all) == 0 || is != last {
			if len(all) == maxPast {
				break
			}
			last = is
			all = append(all, past{
				At: l.At.UnixMilli(), Kind: l.Kind, Actor: l.Actor, Reason: redact(l.Reason), Detail: redact(l.Detail), Generation: l.Generation,
			})
		}
		all[len(all)-1].add(l)
	}
	return all
}

func (p *past) add(l admin.Record) {
	p.More += l.More
	name := l.Resource
	if name == "" {
		name = l.Node
	}
	if name == "" {
		return
	}
	at := part{Nodes: l.Resource == "", From: l.From, To: l.To}
	if n := len(p.Parts); n == 0 || p.Parts[n-1].Nodes != at.Nodes || p.Parts[n-1].From != at.From || p.Parts[n-1].To != at.To {
		if n == maxParts {
			p.More++
			return
		}
		p.Parts = append(p.Parts, at)
	}
	last := &p.Parts[len(p.Parts)-1]
	if last.Count++; len(last.Names) < maxNamed {
		last.Names = append(last.Names, name)
	}
}

// readPast reads the history when there may be news, and returns what is to be shown of it.
func (w *watch) readPast(ctx context.Context, generation int64, before *seenPast) error {
	if time.Since(before.at) < pastEvery && generation == before.generation {
		return nil
	}
	lines, err := admin.History(ctx, w.cfg.Store, w.group)
	if err != nil {
		return err
	}
	*before = seenPast{at: time.Now(), generation: generation, list: pastOf(lines, w.cfg.redact)}
	return nil
}

// seenPast is the history as it was read last.
type seenPast struct {
	at         time.Time
	generation int64
	list       []past
}
