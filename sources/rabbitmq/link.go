package rabbitmq

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rebalancer-go/rebalancer/sources"
)

const (
	// callTimeout bounds one call to the broker.
	callTimeout = 10 * time.Second
	// minWait and maxWait bound the range of the random wait before a connection is tried again.
	minWait = 500 * time.Millisecond
	maxWait = 30 * time.Second
	// steady is how long a connection lives before its loss counts as the first.
	steady = 30 * time.Second
	// patience is how long a queue waits for a broker that cannot be reached before that is an error.
	patience = 25 * time.Second
	// maxHung calls that wait for their answer for longer than callTimeout end a connection.
	maxHung = 64
)

// link is one connection to the broker, made when it is needed and made again when it was lost. It has no goroutine of
// its own.
type link struct {
	s       *settings
	purpose string
	turn    chan struct{} // of capacity 1: held by who dials

	mu     sync.Mutex // never held while waiting
	conn   *conn
	closed bool
	fails  int       // connections that failed or did not last, in a row
	next   time.Time // not before
	last   error     // of the last try
}

// conn is one connection, for as long as it lives.
type conn struct {
	*amqp.Connection
	wire    *wire
	since   time.Time
	lost    chan *amqp.Error // the reason, once
	blocked chan amqp.Blocking
	addr    string

	mu   sync.Mutex
	hung int // calls that run for longer than callTimeout
	held bool
}

func newLink(s *settings, purpose string) *link {
	return &link{s: s, purpose: purpose, turn: make(chan struct{}, 1)}
}

// get returns the connection, which it makes if need be. It waits for its turn to try again until ctx ends.
func (l *link) get(ctx context.Context, who string) (*conn, error) {
	for {
		if c, err := l.current(); c != nil || err != nil {
			return c, err
		}
		select {
		case l.turn <- struct{}{}:
		case <-ctx.Done():
			return nil, l.late(ctx)
		}
		c, err := l.dial(ctx, who)
		<-l.turn
		if c != nil || err != nil {
			return c, err
		}
	}
}

// await is get that waits for a broker which cannot be reached, such as one that restarts, for a time: whoever cannot open a
// queue gives it to others, who will find the same. A refusal is an answer, and returned at once.
func (l *link) await(ctx context.Context, who string) (*conn, error) {
	for until := time.Now().Add(patience); ; {
		c, err := l.get(ctx, who)
		if err == nil || ctx.Err() != nil || refused(err) || time.Now().After(until) {
			return c, err
		}
	}
}

// refused tells whether somebody answered, and will not have us.
func refused(err error) bool {
	for _, no := range []error{sources.ErrClosed, amqp.ErrCredentials, amqp.ErrVhost, amqp.ErrSASL} {
		if errors.Is(err, no) {
			return true
		}
	}
	var e *amqp.Error
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	return errors.As(err, &e) && (e.Code == amqp.AccessRefused || e.Code == amqp.NotAllowed) ||
		errors.As(err, &certificate) || errors.As(err, &record) || errors.As(err, &alert)
}

// current returns the connection if it is well. When it was just lost, that is noted.
func (l *link) current() (*conn, error) {
	l.mu.Lock()
	c, closed := l.conn, l.closed
	if closed || c == nil || !c.IsClosed() {
		defer l.mu.Unlock()
		if closed {
			return nil, sources.ErrClosed
		}
		return c, nil
	}
	why := errors.New("the connection was closed")
	select {
	case e := <-c.lost:
		if e != nil {
			why = e
		}
	default:
	}
	if time.Since(c.since) > steady {
		l.fails = 0
	}
	l.conn = nil
	l.failed(why)
	l.mu.Unlock()
	l.s.Logger.Warn("rabbitmq: connection lost", "connection", l.purpose, "host", c.addr, "reason", why)
	return nil, nil
}

// failed sets when the next try may be; l.mu is held.
func (l *link) failed(why error) {
	l.last = why
	l.next = time.Now().Add(wait(l.fails))
	l.fails++
}

// wait is a random time below a bound that doubles with each failure.
func wait(fails int) time.Duration {
	bound := maxWait
	if fails < 6 {
		bound = min(bound, minWait<<fails)
	}
	return rand.N(bound) + 1
}

// late is the error of a caller who waited for a connection in vain.
func (l *link) late(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last != nil {
		return fmt.Errorf("no connection: %w: %w", ctx.Err(), l.last)
	}
	return fmt.Errorf("no connection: %w", ctx.Err())
}

// dial waits until a try is due and makes one, to each host; the caller has the turn. It returns nothing when somebody
// else made the connection meanwhile.
func (l *link) dial(ctx context.Context, who string) (*conn, error) {
	if c, err := l.current(); c != nil || err != nil {
		return c, err
	}
	l.mu.Lock()
	due := l.next
	l.mu.Unlock()
	if !sleep(ctx, time.Until(due)) {
		return nil, l.late(ctx)
	}
	first := rand.IntN(len(l.s.hosts))
	var errs []error
	for i := range l.s.hosts {
		h := l.s.hosts[(first+i)%len(l.s.hosts)]
		c, err := l.s.connect(ctx, h, l.name(who))
		if err == nil {
			return l.keep(c)
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("connect to %s: %w", h.addr, errors.Join(ctx.Err(), err))
		}
		errs = append(errs, fmt.Errorf("connect to %s: %w", h.addr, err))
	}
	err := errors.Join(errs...)
	l.mu.Lock()
	l.failed(err)
	l.mu.Unlock()
	return nil, err
}

func (l *link) name(who string) string {
	if l.s.Name != "" {
		who = l.s.Name
	}
	return cut(who, maxShort) + " " + l.purpose
}

func (l *link) keep(c *conn) (*conn, error) {
	l.mu.Lock()
	closed := l.closed
	if !closed {
		l.conn, l.last = c, nil
	}
	l.mu.Unlock()
	if closed {
		c.end()
		return nil, sources.ErrClosed
	}
	l.s.Logger.Info("rabbitmq: connected", "connection", l.purpose, "host", c.addr, "version", c.version())
	return c, nil
}

// rest ends the connection, in the background, until it is wanted again.
func (l *link) rest() {
	l.mu.Lock()
	c := l.conn
	l.conn = nil
	l.mu.Unlock()
	if c != nil {
		go c.end()
	}
}

// close ends the connection, and all calls of get.
func (l *link) close() {
	l.mu.Lock()
	c := l.conn
	l.closed, l.conn = true, nil
	l.mu.Unlock()
	if c != nil {
		c.end()
	}
}

// end says good-bye if the broker answers, and is done within a time in any case.
func (c *conn) end() {
	stop := time.AfterFunc(callTimeout/2, func() { _ = c.wire.Close() })
	defer stop.Stop()
	if !c.IsClosed() {
		_ = c.CloseDeadline(time.Now().Add(callTimeout / 4))
	}
	_ = c.wire.Close()
}

func (c *conn) version() string {
	v, _ := c.Properties["version"].(string)
	return v
}

// stalled reports whether the broker takes nothing that is published on this connection, and why.
func (c *conn) stalled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		select {
		case b, ok := <-c.blocked:
			if !ok {
				return c.held
			}
			c.held = b.Active
			continue
		default:
		}
		return c.held
	}
}

// call runs f, which may wait for ever, and returns when it does or when ctx ends. A connection on which many calls wait for
// too long is given up.
func (c *conn) call(ctx context.Context, f func() error) error { return c.callAnd(ctx, f, nil) }

// callAnd is call that runs late, if there is one, when nobody waits any more for an f that returns at last.
func (c *conn) callAnd(ctx context.Context, f func() error, late func()) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	overdue := time.AfterFunc(callTimeout, func() { c.hangs(1) })
	done := make(chan error) // not buffered: either the caller has the answer, or it is late
	go func() {
		err := f()
		select {
		case done <- err:
		case <-ctx.Done():
			if late != nil {
				late()
			}
		}
		if !overdue.Stop() {
			c.hangs(-1)
		}
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("the broker did not answer: %w", ctx.Err())
	}
}

// hangs counts the calls that wait for longer than a call may.
func (c *conn) hangs(n int) {
	c.mu.Lock()
	c.hung += n
	many := c.hung >= maxHung
	c.mu.Unlock()
	if many {
		_ = c.wire.Close()
	}
}

// channel opens a channel. A connection on which that is not answered in time is dead, whatever its heartbeats say.
func (c *conn) channel(ctx context.Context) (*amqp.Channel, error) {
	var made *amqp.Channel // written before the answer is taken, and then nowhere
	err := c.callAnd(ctx, func() (err error) {
		made, err = c.Channel()
		return err
	}, func() {
		if made != nil {
			_ = made.Close()
		}
	})
	if err == nil {
		return made, nil
	}
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		_ = c.wire.Close()
	}
	return nil, fmt.Errorf("open a channel: %w", err)
}

// on is call for what begins the use of a channel: one on which that fails, or takes too long, is closed, but not while f still uses it.
func (c *conn) on(ctx context.Context, ch *amqp.Channel, f func() error) error {
	return c.callAnd(ctx, func() error {
		err := f()
		if err != nil {
			_ = ch.Close()
		}
		return err
	}, func() { _ = ch.Close() })
}

// aside runs f with a channel of its own, which is closed when f returns.
func (c *conn) aside(ctx context.Context, f func(*amqp.Channel) error) error {
	ch, err := c.channel(ctx)
	if err != nil {
		return err
	}
	return c.call(ctx, func() error {
		defer ch.Close()
		return f(ch)
	})
}

// sleep is false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
