package redis

import (
	"context"
	"fmt"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/storereq"
)

// bytesPerScript bounds the values of one script, unless one transaction alone has more.
const bytesPerScript = 1 << 20

func (h *session) Commit(ctx context.Context, r backends.CommitRequest) (backends.CommitReply, error) {
	if err := storereq.Commit(r); err != nil {
		return backends.CommitReply{}, err
	}
	if h.store.ctx.Err() != nil {
		return backends.CommitReply{}, backends.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return backends.CommitReply{}, err
	}
	var reply backends.CommitReply
	for done := 0; done < len(r.Txns) || done == 0; {
		n := portion(r.Txns[done:])
		part, stamp, err := h.commit(ctx, r.Incarnation, r.Txns[done:done+n])
		if err != nil {
			part = unknown(n, err)
		} else {
			reply.Stamp = stamp
		}
		reply.Results = append(reply.Results, part...)
		if done += n; n == 0 {
			break
		}
	}
	return reply, nil
}

// portion is how many transactions one script may carry out.
func portion(txns []backends.Txn) int {
	entries, bytes := 0, 0
	for i, t := range txns {
		entries += max(1, len(t.Checks)+len(t.Puts)+len(t.Deletes))
		for _, p := range t.Puts {
			bytes += len(p.Value)
		}
		if i > 0 && (entries > perScript || bytes > bytesPerScript) {
			return i
		}
	}
	return len(txns)
}

// unknown are the results of transactions that were sent and got no answer.
func unknown(txns int, cause error) []backends.Result {
	results := make([]backends.Result, txns)
	for i := range results {
		results[i].Err = fmt.Errorf("%w: %w", backends.ErrUnknown, cause)
	}
	return results
}

// commit is one script.
func (h *session) commit(ctx context.Context, incarnation string, txns []backends.Txn) ([]backends.Result, backends.Stamp, error) {
	args := []any{incarnation, h.store.calls.Add(1), h.space.channel, len(txns)}
	for i := range txns {
		args = appendTxn(args, &txns[i])
	}
	r, err := h.run(ctx, h.store.scripts.commit, args...)
	if err != nil {
		return nil, backends.Stamp{}, err
	}
	p := parser{}
	raw := p.list(r.rest, 0)
	if p.err != nil || len(raw) != len(txns) {
		return nil, backends.Stamp{}, h.store.wrap(errMalformed)
	}
	results := make([]backends.Result, len(txns))
	for i := range txns {
		results[i] = resultOf(&p, &txns[i], p.list(raw, i))
		if results[i].Err == backends.ErrSessionLost {
			h.end()
		}
	}
	if p.err != nil {
		return nil, backends.Stamp{}, h.store.wrap(p.err)
	}
	return results, r.stamp, nil
}

func appendTxn(args []any, t *backends.Txn) []any {
	args = append(args, t.Grace.Microseconds(), len(t.Checks))
	for _, c := range t.Checks {
		args = append(args, c.Key, c.Version)
	}
	args = append(args, len(t.Puts))
	for _, p := range t.Puts {
		bound := "0"
		if p.Bound {
			bound = "1"
		}
		args = append(args, p.Key, bound, string(p.Value)) // a copy: the client may still send it when the caller has given up
	}
	args = append(args, len(t.Deletes))
	for _, key := range t.Deletes {
		args = append(args, key)
	}
	args = append(args, len(t.Wake))
	for _, a := range t.Wake {
		args = append(args, a)
	}
	return args
}

func resultOf(p *parser, t *backends.Txn, raw []any) backends.Result {
	if len(raw) == 0 {
		p.fail()
		return backends.Result{}
	}
	code := p.text(raw[0])
	r := backends.Result{Err: refusal(code)}
	switch {
	case r.Err == errMalformed, code == "ok" && len(raw) != 1+len(t.Puts), code == "conflict" && len(raw) != 1+len(t.Checks):
		p.fail()
	case code == "ok":
		r.Versions = make(map[string]int64, len(t.Puts))
		for i, put := range t.Puts {
			r.Versions[put.Key] = p.number(raw[i+1])
		}
	case code == "conflict":
		r.Versions = make(map[string]int64, len(t.Checks))
		for i, c := range t.Checks {
			r.Versions[c.Key] = p.number(raw[i+1])
		}
	}
	return r
}
