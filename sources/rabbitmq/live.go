package rabbitmq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rebalancer-go/rebalancer"
)

// errCancelled is why a consumer ended that the broker cancelled.
var errCancelled = errors.New("the broker cancelled the consumer: the queue was deleted or moved, or an acknowledgement came too late")

// live is one channel that consumes, from its opening to its loss. Deliveries are known by their tags, which mean nothing
// beyond it.
type live struct {
	conn   *conn
	ch     *amqp.Channel
	closed chan *amqp.Error // the reason, once
	cancel chan string      // by the broker
	counts bool             // the queue counts returns: it is a quorum queue
	limit  int              // of returns, at the broker; 0: none, or there is no place to put a message before
	// suspect: a message that was returned so often may be one that kills processes.
	suspect int

	ask    chan struct{} // closed: somebody asks for messages
	asking sync.Once     // closes ask

	// Of the pump.
	tag       string
	consumers int  // so far on this channel
	crowded   bool // others were reported
	in        <-chan amqp.Delivery

	failures int // in a row, of what Fetch does with the next message itself

	tune       chan struct{} // of capacity 1: the prefetch shall change
	quit       chan struct{} // closed: pump no more
	quitting   sync.Once     // closes quit
	pumped     chan struct{} // closed by the pump at its end
	finished   chan struct{} // closed when nothing is left of it, but for
	unfinished error         // what failed

	// Guarded by the reader's mutex.
	window   window
	prefetch int  // at the broker
	want     int  // what it shall be
	careful  bool // one message at a time, until one that was never delivered before is done
	gathered bool // what was returned to the queue is here, or shall not be (see gather)
	// concluded: what was settled when the reader closed is acknowledged.
	concluded bool
	pace      pace
}

// begin opens a channel to consume the queue when nobody else does.
func (r *reader) begin(ctx context.Context, c *conn) (*live, error) {
	ch, err := r.free(ctx, c)
	if err != nil {
		return nil, err
	}
	l := &live{
		conn: c, ch: ch, closed: ch.NotifyClose(make(chan *amqp.Error, 1)), cancel: ch.NotifyCancel(make(chan string, 1)),
		ask: make(chan struct{}), tune: make(chan struct{}, 1), quit: make(chan struct{}), pumped: make(chan struct{}), finished: make(chan struct{}),
	}
	if err = r.prepare(ctx, l); err != nil {
		_ = c.call(ctx, ch.Close)
		return nil, err
	}
	return l, nil
}

// prepare decides how to begin. Only quorum queues count returns: for others nothing is lost by a quick start.
func (r *reader) prepare(ctx context.Context, l *live) error {
	f, err := r.source.facts(ctx, l.conn, r.claim.Resource)
	if err == nil {
		err = tolerable(l.conn.version(), f)
	}
	if err != nil {
		return err
	}
	l.counts, l.limit = f.kind != typeClassic, r.source.limit(l.conn, f)
	l.suspect = r.source.suspect(l.conn, f)
	l.careful = l.counts && !r.source.EagerStart
	l.prefetch = cmp.Or(r.source.Prefetch, eagerPrefetch)
	if l.careful {
		l.prefetch = 1
	}
	l.want = l.prefetch
	return nil
}

// stop closes the channel, which gives back what is in hand, and waits for the broker's word. Without that the connection is given up, since the
// channel holds what it has for as long as that lives.
func (l *live) stop() error {
	err := l.conn.call(context.Background(), l.ch.Close)
	if errors.Is(err, amqp.ErrClosed) || l.conn.IsClosed() {
		return nil // it gave back before
	}
	if err != nil {
		_ = l.conn.wire.Close()
	}
	return err
}

// pump takes deliveries in until the channel is lost or the reader closes it.
func (r *reader) pump(l *live) {
	defer close(l.pumped)
	if err := r.asked(l); err != nil {
		r.lost(l, err)
		return
	}
	patience := time.NewTimer(time.Hour)
	defer patience.Stop()
	idle := time.NewTicker(r.source.idle)
	defer idle.Stop()
	var seen uint64
	for {
		changing := false
		select {
		case d, ok := <-l.in:
			if !ok {
				r.lost(l, l.reason())
				return
			}
			var err error
			if changing, err = r.arrived(l, &d); err != nil {
				r.lost(l, err)
				return
			}
		case <-l.tune:
			changing = true
			patience.Reset(tuneWait)
		case <-patience.C:
			r.keepPrefetch(l)
		case <-idle.C:
			seen = r.look(l, seen)
		case <-l.quit:
			r.gatherAll(l)
			return
		}
		if !changing {
			continue
		}
		if err := r.retune(l); err != nil {
			r.lost(l, fmt.Errorf("change the prefetch: %w", err))
			return
		}
	}
}

// asked consumes the queue as soon as somebody asks for its messages: those that are sent come back unless they are settled, which counts towards a
// delivery limit, and an owner who never asked shall cost none. It looks once more for others, since that may be long after the opening.
func (r *reader) asked(l *live) error {
	select {
	case <-l.ask:
	case e := <-l.closed:
		return closedFor(e)
	case <-l.quit:
		return nil
	}
	ctx := context.Background() // Close waits: a consumer must not begin behind its back
	q, err := ask(ctx, l.conn, l.ch, r.claim.Resource)
	if err == nil && q.Consumers > 0 {
		err = fmt.Errorf("the queue has %d other consumers by now: only one group may consume a queue, and nothing beside it", q.Consumers)
	}
	if err == nil {
		l.in, err = r.consume(ctx, l, l.prefetch)
	}
	return err
}

// look is for a queue from which nothing has come since the delivery seen, while Fetch waits: a consumer that came later may be why, and nothing
// else tells. It is reported once a channel.
func (r *reader) look(l *live, seen uint64) uint64 {
	r.mu.Lock()
	last, waits := l.window.last, r.waiting && l.window.unacked() == 0
	r.mu.Unlock()
	if last != seen || !waits || l.crowded {
		return last
	}
	if q, err := inspect(r.ended, l.conn, r.claim.Resource); err == nil && (q.Consumers != 1 || q.Messages > 0) { // of a single active consumer the broker counts no others
		l.crowded = true
		r.source.Logger.Warn("rabbitmq: nothing comes from the queue, though others consume it or messages are ready: only one group may consume it, and nothing beside it",
			"queue", r.claim.Resource, "consumers", q.Consumers, "ready", q.Messages)
	}
	return last
}

// arrived takes one delivery into the window. It tells whether the prefetch is to be changed and may be.
func (r *reader) arrived(l *live, d *amqp.Delivery) (changing bool, err error) {
	e := newEntry(d, r.claim, l.counts)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.live != l {
		return false, nil // the reader was closed
	}
	if last := l.window.last; !l.window.add(e) {
		return false, fmt.Errorf("the broker sent delivery %d after %d: nobody can tell what an acknowledgement would mean", d.DeliveryTag, last)
	}
	r.gather(l, e)
	r.signalLocked()
	return l.full(), nil
}

// reason is why the deliveries ended.
func (l *live) reason() error {
	select {
	case e := <-l.closed:
		if e != nil {
			return closedFor(e)
		}
	default:
	}
	select {
	case <-l.cancel:
		return errCancelled
	default:
	}
	return closedFor(nil)
}

func closedFor(e *amqp.Error) error {
	if e == nil {
		return errors.New("the channel was closed")
	}
	return fmt.Errorf("the channel was closed: %w", e)
}

// lost gives a channel up. What is in hand will be delivered again, by another channel: the first must be closed before that,
// since it still holds what is in hand when only its consumer was cancelled.
func (r *reader) lost(l *live, why error) {
	_ = l.stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.live == l && !r.closed {
		r.live, r.why = nil, why
		for e := range l.window.inHand() {
			if r.stale == nil {
				r.stale = map[*rebalancer.Message]bool{}
			}
			r.stale[e.m] = true
		}
		r.signalLocked()
	}
}
