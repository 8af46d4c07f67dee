package figures

import (
	"context"
	"sync"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
)

// storeCall is one call that a node made.
type storeCall struct {
	node, kind string
	from       time.Time
	prefixes   []string // read, or asked for as a digest
	keys       []string
}

// storeLog is a store that writes down each call, and can cut nodes off for good.
type storeLog struct {
	backends.Store

	mu    sync.Mutex
	calls []storeCall
	off   map[string]bool
}

func newStoreLog(s backends.Store) *storeLog { return &storeLog{Store: s, off: map[string]bool{}} }

// cut loses all further requests of a node, for good.
func (l *storeLog) cut(node string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.off[node] = true
}

type sessionLog struct {
	backends.Session
	log  *storeLog
	node string
}

// note writes a call down; an error when it does not reach the store.
func (l *storeLog) note(ctx context.Context, c storeCall) error {
	c.from = time.Now()
	l.mu.Lock()
	l.calls = append(l.calls, c)
	off := l.off[c.node]
	l.mu.Unlock()
	if off {
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func (l *storeLog) Open(ctx context.Context, o backends.SessionOptions) (backends.Session, error) {
	if err := l.note(ctx, storeCall{node: o.Node, kind: "open"}); err != nil {
		return nil, err
	}
	s, err := l.Store.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	return &sessionLog{Session: s, log: l, node: o.Node}, nil
}

func (s *sessionLog) Renew(ctx context.Context, r backends.RenewRequest) (backends.RenewReply, error) {
	if err := s.log.note(ctx, storeCall{node: s.node, kind: "renew", prefixes: r.Digests, keys: r.Keys}); err != nil {
		return backends.RenewReply{}, err
	}
	return s.Session.Renew(ctx, r)
}

func (s *sessionLog) Read(ctx context.Context, r backends.ReadRequest) (backends.ReadReply, error) {
	if err := s.log.note(ctx, storeCall{node: s.node, kind: "read", prefixes: r.Prefixes, keys: r.Keys}); err != nil {
		return backends.ReadReply{}, err
	}
	return s.Session.Read(ctx, r)
}

func (s *sessionLog) Commit(ctx context.Context, r backends.CommitRequest) (backends.CommitReply, error) {
	if err := s.log.note(ctx, storeCall{node: s.node, kind: "commit"}); err != nil {
		return backends.CommitReply{}, err
	}
	return s.Session.Commit(ctx, r)
}

func (s *sessionLog) Listen(ctx context.Context, address string, hint func()) error {
	if err := s.log.note(ctx, storeCall{node: s.node, kind: "listen", keys: []string{address}}); err != nil {
		return err
	}
	return s.Session.Listen(ctx, address, hint)
}

func (s *sessionLog) Close(ctx context.Context) error {
	if err := s.log.note(ctx, storeCall{node: s.node, kind: "close"}); err != nil {
		return err
	}
	err := s.Session.Close(ctx)
	if err == nil {
		_ = s.log.note(ctx, storeCall{node: s.node, kind: "closed"})
	}
	return err
}

// since gives the calls made at or after t.
func (l *storeLog) since(t time.Time) []storeCall {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []storeCall
	for _, c := range l.calls {
		if !c.from.Before(t) {
			out = append(out, c)
		}
	}
	return out
}

// lastRenewal is when a node sent its last renewal, zero when it has sent none.
func (l *storeLog) lastRenewal(node string) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := len(l.calls) - 1; i >= 0; i-- {
		if c := l.calls[i]; c.node == node && c.kind == "renew" {
			return c.from
		}
	}
	return time.Time{}
}

// wholeGroup gives the calls that read all of a group, and those by which a node that never coordinated read more than what is
// addressed to it. (A new coordinator reads members, assignments and claims, once.)
func (l *storeLog) wholeGroup(coordinators map[string]bool) []storeCall {
	var out []storeCall
	for _, c := range l.since(time.Time{}) {
		for _, p := range c.prefixes {
			if p == "" || !coordinators[c.node] && p != "assign/"+c.node+"/" {
				out = append(out, c)
				break
			}
		}
	}
	return out
}
