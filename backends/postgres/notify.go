package postgres

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/sqlstore"
)

const (
	// mostProcesses listen at one time: with more of them notifications cost the server more than polling. resumeProcesses is when they begin again.
	mostProcesses   = 50
	resumeProcesses = 40
	countEvery      = 30 * time.Second
	notifyFor       = 5 * time.Second // bounds the sending of hints
	mostTokens      = 600             // in one notification, which may have 8,000 bytes
	probeFor        = 3 * time.Second
	probeEvery      = 250 * time.Millisecond
)

// notifier sends hints to other processes: after the commits, and all that have gathered meanwhile in one transaction.
type notifier struct {
	s       *Store
	mu      sync.Mutex
	waiting map[string]map[string]bool // tokens by channel
	signal  chan struct{}
	deaf    error // why what is sent does not arrive; nil: not known; guarded by mu
	probes  map[string]chan struct{}
}

func newNotifier(s *Store) *notifier {
	return &notifier{s: s, waiting: map[string]map[string]bool{}, signal: make(chan struct{}, 1), probes: map[string]chan struct{}{}}
}

// Woken hints at once to listeners of this process, and soon to those of others.
func (b base) Woken(group string, addresses []string) {
	if len(addresses) == 0 {
		return
	}
	tokens := make([]string, len(addresses))
	for i, a := range addresses {
		tokens[i] = token(group, a)
	}
	b.s.ears.hear(tokens...)
	if !b.s.ears.isOff() {
		b.s.out.add(channel(b.s.schema, group), tokens)
	}
}

func (n *notifier) add(channel string, tokens []string) {
	n.mu.Lock()
	if n.waiting[channel] == nil {
		n.waiting[channel] = map[string]bool{}
	}
	for _, t := range tokens {
		n.waiting[channel][t] = true
	}
	n.mu.Unlock()
	select {
	case n.signal <- struct{}{}:
	default:
	}
}

// take empties what has gathered, as the payloads by channel.
func (n *notifier) take() map[string][]string {
	n.mu.Lock()
	defer n.mu.Unlock()
	payloads := make(map[string][]string, len(n.waiting))
	for channel, tokens := range n.waiting {
		line := make([]string, 0, mostTokens)
		flush := func() {
			if len(line) > 0 {
				payloads[channel] = append(payloads[channel], n.s.process+" "+strings.Join(line, ","))
			}
			line = line[:0]
		}
		for t := range tokens {
			if line = append(line, t); len(line) == mostTokens {
				flush()
			}
		}
		flush()
	}
	clear(n.waiting)
	return payloads
}

// run sends until the store is closed. A hint that cannot be sent in time is lost, as hints may be.
func (n *notifier) run(ctx context.Context) {
	for {
		select {
		case <-n.signal:
		case <-ctx.Done():
			return
		}
		short, cancel := context.WithTimeout(ctx, notifyFor)
		_ = n.s.pooled(short, func(c *pgconn.PgConn) error { return n.send(short, c, n.take()) })
		cancel()
	}
}

// send needs no durable commit.
func (n *notifier) send(ctx context.Context, c *pgconn.PgConn, payloads map[string][]string) error {
	ss := []sqlstore.Statement{{SQL: begin}, {SQL: `SELECT set_config('synchronous_commit', 'off', true)`}}
	for channel, lines := range payloads {
		for _, line := range lines {
			ss = append(ss, sqlstore.Statement{SQL: `SELECT pg_notify(?, ?)`, Args: []any{channel, line}})
		}
	}
	_, err := send(ctx, c, n.s.knows(c), &n.s.dialect, append(ss, sqlstore.Statement{SQL: `COMMIT`}))
	if err != nil {
		return n.s.rollback(c, err)
	}
	return nil
}

// arrived takes a notification. It does not block.
func (n *notifier) arrived(payload string) {
	from, tokens, _ := strings.Cut(payload, " ")
	if from != n.s.process {
		n.s.ears.hear(strings.Split(tokens, ",")...)
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if probe := n.probes[tokens]; probe != nil {
		close(probe)
		delete(n.probes, tokens)
	}
}

// Listen keeps a listener until ctx or the session ends.
func (b base) Listen(ctx context.Context, ended <-chan struct{}, group, address string, hint func()) error {
	s := b.s
	call, cancel, err := s.bound(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	if err := s.mayListen(call); err != nil {
		return s.wrap(err)
	}
	l, t, ch := &listener{ctx: ctx, ended: ended, hint: hint}, token(group, address), channel(s.schema, group)
	s.ears.add(t, ch, l)
	if !s.ears.isLive(ch) {
		if err := s.line.hear(call, ch); err != nil {
			s.ears.drop(t, ch, l)
			return s.wrap(err)
		}
	}
	context.AfterFunc(ctx, func() { s.ears.drop(t, ch, l) })
	return nil
}

// mayListen counts the processes when nobody listens here yet; later watch does.
func (s *Store) mayListen(ctx context.Context) error {
	s.out.mu.Lock()
	deaf := s.out.deaf
	s.out.mu.Unlock()
	if deaf != nil {
		return deaf
	}
	select {
	case <-s.ears.opened():
		return nil
	default:
	}
	if err := s.count(ctx); err != nil {
		return err
	}
	if s.ears.isOff() {
		return fmt.Errorf("%w: more than %d processes work on this schema", backends.ErrNoHints, mostProcesses)
	}
	return nil
}

// count decides by the number of live processes whether hints are worth their price.
func (s *Store) count(ctx context.Context) error {
	var n int64
	err := base{s}.Read(ctx, func(t *sqlstore.Tx) error {
		t.Add(sqlstore.Statement{SQL: `SELECT count(DISTINCT proof) FROM {t}sessions WHERE expires > {now}`,
			Row: func(scan sqlstore.Scan) error { return scan(&n) }})
		return nil
	})
	if err != nil {
		return err
	}
	most := int64(s.mostProcesses)
	if s.ears.isOff() {
		most = most * resumeProcesses / mostProcesses
	}
	if s.ears.switchOff(n > most) && n > most && s.ears.anyLive() {
		return s.line.silence(ctx)
	}
	return nil
}

// watch counts again from time to time.
func (s *Store) watch(ctx context.Context) {
	tick := time.NewTicker(s.countEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if s.ears.isOff() || !s.ears.none() {
			short, cancel := context.WithTimeout(ctx, notifyFor)
			_ = s.count(short) // the next time, then
			cancel()
		}
	}
}

// probe finds out whether what is sent on the channel arrives: a pooler may have taken the LISTEN for a connection that it lends to others.
func (n *notifier) probe(ctx context.Context, channel string) error {
	id, heard := rand.Text(), make(chan struct{})
	n.mu.Lock()
	n.probes[id] = heard
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		delete(n.probes, id)
		n.mu.Unlock()
	}()
	deadline := time.NewTimer(probeFor)
	defer deadline.Stop()
	again := time.NewTicker(probeEvery)
	defer again.Stop()
	for {
		err := n.s.pooled(ctx, func(c *pgconn.PgConn) error {
			return n.send(ctx, c, map[string][]string{channel: {n.s.process + " " + id}})
		})
		if err != nil {
			return err
		}
		select {
		case <-heard:
			return nil
		case <-again.C:
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline.C:
			err := fmt.Errorf("%w: the pooler between does not pass notifications on", backends.ErrNoHints)
			n.mu.Lock()
			n.deaf = err
			n.mu.Unlock()
			return err
		}
	}
}
