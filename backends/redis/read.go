package redis

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/storereq"
)

// span is a range of keys, as it is asked for and as it is answered.
type span struct {
	part, lo, hi string
	seq, cut     string // cut: where to go on, "" at the end
	entries      []backends.Entry
}

// page is the answer of one script.
type page struct {
	stamp   backends.Stamp
	entries []backends.Entry // of the named keys
	spans   []span
	pending []string // keys whose value had no room
}

func (h *session) Read(ctx context.Context, r backends.ReadRequest) (backends.ReadReply, error) {
	if err := storereq.Keys(r.Keys); err != nil {
		return backends.ReadReply{}, err
	}
	var reply backends.ReadReply
	var err error
	for range 3 { // a failover in the middle would mix two incarnations
		var one bool
		if reply, one, err = h.readAll(ctx, r); err != nil || one {
			return reply, err
		}
	}
	return backends.ReadReply{}, h.store.wrap(errors.New("the incarnation changed again and again while it was read"))
}

// readAll reads page by page; one says that all were of one incarnation.
func (h *session) readAll(ctx context.Context, r backends.ReadRequest) (_ backends.ReadReply, one bool, _ error) {
	keys := slices.Clone(r.Keys)
	spans := make([]span, len(r.Prefixes))
	below := make([]map[string]backends.Entry, len(spans))
	var open []int // spans that were not read to their end
	for i, prefix := range r.Prefixes {
		spans[i].lo, spans[i].hi = bounds(prefix)
		below[i] = map[string]backends.Entry{}
		open = append(open, i)
	}
	found := map[string]backends.Entry{}
	var reply backends.ReadReply
	one = true
	for first := true; first || len(keys) > 0 || len(open) > 0; first = false {
		n := min(len(keys), perScript)
		ask := make([]span, len(open))
		for i, at := range open {
			ask[i] = spans[at]
		}
		p, err := h.readPage(ctx, keys[:n], ask, r.NamesOnly)
		if err != nil {
			return backends.ReadReply{}, false, err
		}
		if first {
			reply.Stamp = p.stamp
		}
		one = one && p.stamp.Incarnation == reply.Incarnation
		for _, e := range p.entries {
			found[e.Key] = e
		}
		keys = append(p.pending, keys[n:]...)
		still := open[:0:0]
		for i, at := range open {
			for _, e := range p.spans[i].entries {
				found[e.Key], below[at][e.Key] = e, e
			}
			if spans[at].lo = p.spans[i].cut; spans[at].lo != "" {
				still = append(still, at)
			}
		}
		open = still
	}
	h.assemble(&reply, r.Prefixes, found, below)
	return reply, one, nil
}

// assemble sorts the entries and sums them up. An entry that was read twice, because its value had no room at first, counts as it was last.
func (h *session) assemble(reply *backends.ReadReply, prefixes []string, found map[string]backends.Entry, below []map[string]backends.Entry) {
	for _, key := range slices.Sorted(maps.Keys(found)) {
		reply.Entries = append(reply.Entries, found[key])
	}
	reply.Digests = make(map[string]backends.Digest, len(prefixes))
	for i, prefix := range prefixes {
		d := backends.Digest{Left: -1}
		for key := range below[i] {
			if e, ok := found[key]; ok {
				d.Add(e.Key, e.Version, e.Left)
			}
		}
		reply.Digests[prefix] = d
	}
}

// readPage is one script.
func (h *session) readPage(ctx context.Context, keys []string, spans []span, namesOnly bool) (page, error) {
	names := "0"
	if namesOnly {
		names = "1"
	}
	args := []any{names, len(keys)}
	for _, k := range keys {
		args = append(args, k)
	}
	args = append(args, len(spans))
	for _, sp := range spans {
		args = append(args, sp.part, sp.lo, sp.hi)
	}
	r, err := h.store.runFor(ctx, h.store.scripts.read, h.space, h.id, 0, args...)
	if err != nil {
		return page{}, err
	}
	out := page{stamp: r.stamp, spans: spans}
	p := parser{}
	if len(r.rest) != 2 {
		return page{}, h.store.wrap(errMalformed)
	}
	out.entries = out.parse(&p, p.list(r.rest, 0))
	ranges := p.list(r.rest, 1)
	for i := range out.spans {
		got := p.list(ranges, i)
		if len(got) < 2 {
			p.fail()
			break
		}
		out.spans[i].seq, out.spans[i].cut = p.text(got[0]), p.text(got[1])
		out.spans[i].entries = out.parse(&p, got[2:])
	}
	if p.err != nil {
		return page{}, h.store.wrap(p.err)
	}
	return out, nil
}

// parse reads entries; those whose value is missing become pending and are left out.
func (pg *page) parse(p *parser, raw []any) []backends.Entry {
	if len(raw)%5 != 0 {
		p.fail()
		return nil
	}
	entries := make([]backends.Entry, 0, len(raw)/5)
	for i := 0; i < len(raw); i += 5 {
		e := backends.Entry{Key: p.text(raw[i]), Version: p.number(raw[i+1]), Session: p.text(raw[i+2]), Left: p.left(raw[i+3])}
		if raw[i+4] == nil {
			pg.pending = append(pg.pending, e.Key)
		} else {
			e.Value = []byte(p.text(raw[i+4]))
		}
		entries = append(entries, e)
	}
	return entries
}
