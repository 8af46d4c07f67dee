package redis

import (
	"context"
	"errors"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
)

// listenWait bounds the wait for the server's word that it listens, when the context does not.
const listenWait = 10 * time.Second

type listener struct {
	session *session
	ctx     context.Context
	hint    func()
	stop    func() bool
}

// Listen subscribes to the address. After a connection was lost and made again every listener is called once: hints may have been lost.
func (h *session) Listen(ctx context.Context, address string, hint func()) error {
	s := h.store
	if s.ctx.Err() != nil {
		return backends.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if h.over() {
		return backends.ErrSessionLost
	}
	l := &listener{session: h, ctx: ctx, hint: hint}
	at, err := s.ears.add(s, h.space.channel+address, l)
	if err != nil {
		return err
	}
	patience := time.NewTimer(listenWait)
	defer patience.Stop()
	select {
	case <-at.heard:
		err = at.err
	case <-ctx.Done():
		err = ctx.Err()
	case <-s.ctx.Done():
		err = backends.ErrClosed
	case <-patience.C:
		err = errors.New("the server did not answer a subscription")
	}
	if err != nil {
		s.ears.drop(func(o *listener) bool { return o == l })
	}
	return s.wrap(err)
}
