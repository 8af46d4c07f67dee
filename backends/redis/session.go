package redis

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/storereq"
)

// session is a node's handle; its life is on the server.
type session struct {
	store  *Store
	space  space
	id     string
	ttl    time.Duration
	opened backends.Stamp
	once   sync.Once
	ended  chan struct{} // closed when the session was seen to have ended; a rollback of the data does not bring it back
	sweep  atomic.Bool   // the last sweep did not remove everything
	known  listings
}

func (h *session) ID() string             { return h.id }
func (h *session) TTL() time.Duration     { return h.ttl }
func (h *session) Opened() backends.Stamp { return h.opened }

func (h *session) end() { h.once.Do(func() { close(h.ended) }) }

func (h *session) over() bool {
	select {
	case <-h.ended:
		return true
	default:
		return false
	}
}

// refusal is the error of a reply's code.
func refusal(code string) error {
	switch code {
	case "ok":
		return nil
	case "lost":
		return backends.ErrSessionLost
	case "superseded":
		return backends.ErrSuperseded
	case "incarnation":
		return backends.ErrIncarnation
	case "grace":
		return backends.ErrGrace
	case "conflict":
		return backends.ErrConflict
	}
	return errMalformed
}

// Supersede marks the older sessions of the name. A server has no proof of death.
func (h *session) Supersede(ctx context.Context, node string) (backends.Superseded, error) {
	if err := storereq.Supersede(node); err != nil {
		return backends.Superseded{}, err
	}
	r, err := h.run(ctx, h.store.scripts.supersede, node)
	if err != nil {
		return backends.Superseded{}, err
	}
	out := backends.Superseded{Stamp: r.stamp}
	if err := h.refused(r); err != nil {
		return out, err
	}
	if len(r.rest) != 2 {
		return out, h.store.wrap(errMalformed)
	}
	p := parser{}
	out.Older, out.Left = int(p.number(r.rest[0])), p.left(r.rest[1])
	if p.err != nil {
		return out, h.store.wrap(p.err)
	}
	return out, nil
}

// closeParts bounds the scripts of one Close; sweeps remove the rest.
const closeParts = 8

// Close ends the session with the first script; the following ones only remove what it had bound.
func (h *session) Close(ctx context.Context) error {
	for range closeParts {
		r, err := h.store.run(ctx, h.store.scripts.close, h.space, h.id)
		if err != nil {
			return err
		}
		h.end()
		h.store.ears.drop(func(l *listener) bool { return l.session == h })
		if r.code != "more" {
			break
		}
	}
	return nil
}
