package rabbitmq

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/rebalancer-go/rebalancer/sources"
)

// defaultLimit is the delivery limit of quorum queues from RabbitMQ 4.0 on, where nothing else was said.
const defaultLimit = 20

// limit is how often the broker takes a message of a queue back; 0 when that is not known, or not limited, or when there is
// no place to put such a message before.
func (s *Source) limit(c *conn, f facts) int {
	switch {
	case s.DeadLetter.none() || s.DeliveryLimit < 0 || f.kind == typeClassic:
		return 0
	case s.DeliveryLimit > 0:
		return s.DeliveryLimit
	}
	return brokerLimit(c.version(), f)
}

// brokerLimit is how often a broker of this version takes a message back; 0 when that is not known, or not limited.
func brokerLimit(version string, f facts) int {
	switch {
	case f.limit != 0:
		return max(f.limit, 0)
	case major(version) >= 4:
		return defaultLimit
	}
	return 0
}

const (
	never = math.MaxInt // is no message suspect
	// unknownSuspect is for a queue of which nobody told the limit.
	unknownSuspect = 2
)

// suspect is how often a message must have been returned to be taken for one that may kill processes, so that no others are to be held beside it: a quarter of
// the limit. Where there is none, no message is.
func (s *Source) suspect(c *conn, f facts) int {
	limit := cmp.Or(s.DeliveryLimit, f.limit)
	first := major(c.version())
	switch {
	case limit > 0:
		return limit / 4
	case limit < 0 || f.told && 0 < first && first < 4:
		return never
	case first >= 4:
		return defaultLimit / 4
	}
	return unknownSuspect
}

// tolerable refuses a queue that loses what is returned to it: before 4.0 a delivery limit below 1 is no limit that is off but one that is always exceeded.
func tolerable(version string, f facts) error {
	if first := major(version); f.kind == typeQuorum && f.limit < 0 && first > 0 && first < 4 {
		return fmt.Errorf("its delivery limit is below 1, and RabbitMQ %s drops a message at its first return then: declare it without x-delivery-limit (or take delivery-limit out of its policy)", version)
	}
	return nil
}

// major is the first number of a broker's version; 0 when it told none.
func major(version string) int {
	first, _, _ := strings.Cut(version, ".")
	n, _ := strconv.Atoi(first)
	return n
}

// last tells whether a message, returned once more, might be returned for the last time: after that the broker drops it, or
// moves it where it was told to. One return is left for a crash of ours meanwhile.
func (l *live) last(e *entry) bool {
	return l.limit > 0 && e.returns >= max(1, l.limit-1) && e.state == arrived && e.marker == nil
}

// special does what is to be done with the next entry instead of handing it out. The first failure is returned; those after
// it are waited out, because a channel that is closed for them would return the message once more.
func (r *reader) special(ctx context.Context, l *live, e *entry) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.ended, cancel)()
	var err error
	if e.marker != nil {
		if !r.flush.writeWithin(ctx, l, true) { // the broker is told before others are
			return ctx.Err()
		}
		err = r.pass(ctx, l, e)
	} else {
		err = r.bury(ctx, e)
	}
	switch {
	case r.ended.Err() != nil:
		return sources.ErrClosed
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		if l.failures++; l.failures == 1 {
			return err
		}
		sleep(ctx, wait(l.failures))
		return nil
	}
	l.failures = 0
	r.mu.Lock()
	if r.live == l {
		at := l.window.find(l.window.take(e, r.renew))
		r.done(l, at, time.Now())
	}
	r.mu.Unlock()
	r.flush.someWithin(ctx, l, true)
	return nil
}

// burial is the publishing of a dead letter that Fetch has begun. It goes on when Fetch returns: one that is cut short before it is confirmed may
// be published, and would be so again.
type burial struct {
	e    *entry
	done chan struct{} // closed at its end
	err  error
}

// bury moves a message to the dead-letter place that no handler shall see again. After the end of ctx it is to be called again.
func (r *reader) bury(ctx context.Context, e *entry) error {
	b := r.burying
	if b == nil || b.e != e {
		b = &burial{e: e, done: make(chan struct{})}
		r.burying = b
		go func() {
			defer close(b.done)
			b.err = r.source.dead.put(r.ended, r.claim, e, e.returns, errLimit)
		}()
	}
	select {
	case <-b.done:
		r.burying = nil
	case <-ctx.Done():
		return ctx.Err()
	}
	if b.err != nil {
		return b.err
	}
	r.source.Logger.Warn("rabbitmq: message moved to the dead-letter place: it was returned so often that the delivery limit is near",
		"queue", r.claim.Resource, "message", e.d.MessageId, "returns", e.returns)
	return nil
}
