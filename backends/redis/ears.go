package redis

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rebalancer-go/rebalancer/backends"
)

const (
	// pingEvery is how often the connection is looked after while nothing comes; after three in vain another is made.
	pingEvery = 2 * time.Second
	// hurt is the pause after an error of the connection.
	hurt = 200 * time.Millisecond
	// closeWait bounds the wait of Close for a connection that hangs.
	closeWait = 5 * time.Second
)

// ears are the listeners of a store, by channel. They share one connection, which is made with the first and lives as long as the store.
type ears struct {
	mu     sync.Mutex
	sub    *redis.PubSub
	at     map[string]*ear
	asked  map[string]bool // channels that sub was asked for
	kick   chan struct{}   // at has changed
	closed bool
	work   sync.WaitGroup
}

// ear is one channel.
type ear struct {
	listeners map[*listener]bool
	heard     chan struct{} // closed when the server said that it listens, or refused it
	err       error         // of the refusal; set before heard is closed
	answered  bool
}

// add puts in a listener; it is dropped with its context.
func (e *ears) add(s *Store, channel string, l *listener) (*ear, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, backends.ErrClosed
	}
	if e.sub == nil {
		e.sub = s.client.Subscribe(s.ctx)
		e.at, e.asked, e.kick = map[string]*ear{}, map[string]bool{}, make(chan struct{}, 1)
		e.work.Go(func() { e.hear(s) })
		e.work.Go(func() { e.ask(s) })
	}
	at := e.at[channel]
	if at == nil {
		at = &ear{listeners: map[*listener]bool{}, heard: make(chan struct{})}
		e.at[channel] = at
	}
	at.listeners[l] = true
	l.stop = context.AfterFunc(l.ctx, func() { e.drop(func(o *listener) bool { return o == l }) })
	e.kicked()
	return at, nil
}

// kicked lets ask look again. Call it with the lock held.
func (e *ears) kicked() {
	select {
	case e.kick <- struct{}{}:
	default:
	}
}

// ask subscribes to what has listeners and unsubscribes from what has none, one after the other.
func (e *ears) ask(s *Store) {
	for {
		select {
		case <-e.kick:
		case <-s.ctx.Done():
			return
		}
		e.mu.Lock()
		var come, leave []string
		for channel := range e.at {
			if !e.asked[channel] {
				come = append(come, channel)
				e.asked[channel] = true
			}
		}
		for channel := range e.asked {
			if e.at[channel] == nil {
				leave = append(leave, channel)
				delete(e.asked, channel)
			}
		}
		sub := e.sub
		e.mu.Unlock()
		// An error is one of the connection: hear makes it again, with all channels.
		if len(come) > 0 {
			_ = sub.Subscribe(s.ctx, come...)
		}
		if len(leave) > 0 {
			_ = sub.Unsubscribe(s.ctx, leave...)
		}
	}
}

// hear passes on what comes until the store is closed. The client makes a lost connection again by itself, but does not notice one
// that is silent.
func (e *ears) hear(s *Store) {
	for silent := 0; s.ctx.Err() == nil; {
		e.mu.Lock()
		sub := e.sub
		e.mu.Unlock()
		m, err := sub.ReceiveTimeout(s.ctx, pingEvery)
		var slow net.Error
		var refused redis.Error
		switch {
		case err == nil:
			silent = 0
			e.take(m)
		case errors.As(err, &slow) && slow.Timeout() && silent < 3:
			silent++
			_ = sub.Ping(s.ctx) // what goes wrong shows at the next receive
		case errors.As(err, &slow) && slow.Timeout():
			silent = 0
			e.again(s, sub)
		case errors.As(err, &refused):
			e.refuse(s.wrap(err))
			fallthrough
		default:
			select {
			case <-time.After(hurt):
			case <-s.ctx.Done():
			}
		}
	}
}

// again makes another connection in place of one that is silent.
func (e *ears) again(s *Store, old *redis.PubSub) {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return
	}
	e.sub, e.asked = s.client.Subscribe(s.ctx), map[string]bool{}
	e.kicked()
	e.mu.Unlock()
	_ = old.Close()
}

func (e *ears) take(m any) {
	switch m := m.(type) {
	case *redis.Subscription:
		if m.Kind == "subscribe" && e.answered(m.Channel) {
			e.wake(m.Channel)
		}
	case *redis.Message:
		e.wake(m.Channel)
	}
}

// answered tells whether the channel was answered before: then the connection is another one.
func (e *ears) answered(channel string) (again bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	at := e.at[channel]
	if at == nil {
		return false
	}
	again = at.answered
	if !again {
		at.answered = true
		close(at.heard)
	}
	return again
}

// refuse gives the server's refusal to those who wait for an answer.
func (e *ears) refuse(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, at := range e.at {
		if !at.answered {
			at.answered, at.err = true, err
			close(at.heard)
		}
	}
}

// wake calls the listeners of a channel, without the lock.
func (e *ears) wake(channel string) {
	e.mu.Lock()
	var due []*listener
	if at := e.at[channel]; at != nil {
		for l := range at.listeners {
			due = append(due, l)
		}
	}
	e.mu.Unlock()
	for _, l := range due {
		if l.ctx.Err() == nil && !l.session.over() && l.session.store.ctx.Err() == nil {
			l.hint()
		}
	}
}

// drop removes the listeners that match.
func (e *ears) drop(match func(*listener) bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for channel, at := range e.at {
		for l := range at.listeners {
			if match(l) {
				l.stop()
				delete(at.listeners, l)
			}
		}
		if len(at.listeners) == 0 {
			delete(e.at, channel)
			e.kicked()
		}
	}
}

// close ends the connection, and waits until no hint is called any more.
func (e *ears) close() {
	e.mu.Lock()
	e.closed = true
	for _, at := range e.at {
		for l := range at.listeners {
			l.stop()
		}
	}
	e.at = nil
	sub := e.sub
	e.mu.Unlock()
	if sub == nil {
		return
	}
	done := make(chan struct{})
	go func() {
		_ = sub.Close() // waits for a connection that is just being made
		e.work.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(closeWait):
	}
}
