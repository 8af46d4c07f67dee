//go:build linux

package order

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	publishers = 2
	keys       = 12                   // of each
	pace       = 5 * time.Millisecond // between two messages of a publisher
)

// press publishes numbered messages of each key. The next one is published when the broker has confirmed the one before; one that was not
// confirmed is published again, and may be there twice.
type press struct {
	url  string
	stop context.CancelFunc
	all  sync.WaitGroup

	mu   sync.Mutex
	sent map[string]int // confirmed
}

func newPress(t *testing.T, url string) *press {
	ctx, stop := context.WithCancel(t.Context())
	p := &press{url: url, stop: stop, sent: map[string]int{}}
	for i := range publishers {
		p.all.Go(func() { p.publish(ctx, fmt.Sprintf("publisher%d", i)) })
	}
	t.Cleanup(p.end)
	return p
}

// end ends the publishers, after which sent is final.
func (p *press) end() {
	p.stop()
	p.all.Wait()
}

func (p *press) total() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, sent := range p.sent {
		n += sent
	}
	return n
}

func (p *press) confirmed() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.sent)
}

func (p *press) publish(ctx context.Context, name string) {
	var l *line
	tick := time.NewTicker(pace)
	defer tick.Stop()
	defer func() { l.close() }()
	for n := 0; ctx.Err() == nil; n++ {
		key := fmt.Sprintf("%s-%d", name, n%keys)
		p.mu.Lock()
		number := p.sent[key] + 1
		p.mu.Unlock()
		for done := false; !done; { // also when the publishers are to end: nobody knows whether an unconfirmed one is there
			var err error
			if l == nil {
				l, err = dial(p.url)
			}
			if err == nil {
				err = l.send(key, number)
			}
			if done = err == nil; !done {
				l.close()
				l = nil
				time.Sleep(100 * time.Millisecond) // the broker is away
			}
		}
		p.mu.Lock()
		p.sent[key] = number
		p.mu.Unlock()
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// line is a connection that publishes.
type line struct {
	conn *amqp.Connection
	ch   *amqp.Channel
	back chan amqp.Return
}

func dial(url string) (*line, error) {
	conn, err := amqp.DialConfig(url, amqp.Config{Heartbeat: 2 * time.Second, Dial: amqp.DefaultDial(2 * time.Second)})
	if err != nil {
		return nil, err
	}
	l := &line{conn: conn}
	if l.ch, err = conn.Channel(); err == nil {
		l.back = l.ch.NotifyReturn(make(chan amqp.Return, 1))
		err = l.ch.Confirm(false)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return l, nil
}

func (l *line) close() {
	if l != nil {
		_ = l.conn.CloseDeadline(time.Now().Add(time.Second))
	}
}

func (l *line) send(key string, number int) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := l.ch.PublishWithDeferredConfirm(exchange, key, true, false,
		amqp.Publishing{Body: fmt.Append(nil, number), MessageId: fmt.Sprintf("%s/%d", key, number), DeliveryMode: amqp.Persistent})
	if err != nil {
		return err
	}
	if ok, err := c.WaitContext(ctx); err != nil || !ok {
		return errors.Join(errors.New("not confirmed"), err)
	}
	select {
	case r := <-l.back:
		return fmt.Errorf("returned: %s", r.ReplyText)
	default:
		return nil
	}
}
