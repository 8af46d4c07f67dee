package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"slices"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rebalancer-go/rebalancer/sources"
)

// Hosts are the hosts of Config.URLs as host:port, in their order.
func (s *Source) Hosts() []string {
	addrs := make([]string, len(s.hosts))
	for i, h := range s.hosts {
		addrs[i] = h.addr
	}
	return addrs
}

// Try makes a connection and a channel to one of Hosts, in the way that Open does, ends them, and returns what the broker says that it is, such as
// "RabbitMQ 4.0.5". It is for people who look for what is wrong: it neither waits nor tries again.
func (s *Source) Try(ctx context.Context, addr string) (string, error) {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	i := slices.IndexFunc(s.hosts, func(h host) bool { return h.addr == addr })
	switch {
	case closed:
		return "", sources.ErrClosed
	case i < 0:
		return "", fmt.Errorf("rabbitmq: %s is none of the hosts: use one of Hosts", addr)
	}
	c, err := s.connect(ctx, s.hosts[i], s.asking.name("rebalancer"))
	if err != nil {
		return "", fmt.Errorf("rabbitmq: connect to %s: %w", addr, err)
	}
	defer c.end()
	if err := c.aside(ctx, func(*amqp.Channel) error { return nil }); err != nil {
		return "", fmt.Errorf("rabbitmq: connect to %s: %w", addr, err)
	}
	return fmt.Sprintf("%v %v", c.Properties["product"], c.Properties["version"]), nil
}

// Overview is a management API that has answered. It is safe for concurrent use.
type Overview struct {
	// Version of the broker, such as "4.0.5"; "" when it told none.
	Version string
	m       *management
}

// Overview asks the management API, which Config.Management must name, what broker it belongs to.
func (s *Source) Overview(ctx context.Context) (*Overview, error) {
	var told struct {
		Version string `json:"rabbitmq_version"`
	}
	m := s.management()
	if err := m.get(ctx, "/api/overview", &told); err != nil {
		return nil, fmt.Errorf("rabbitmq: %w", err)
	}
	return &Overview{Version: told.Version, m: m}, nil
}

// QueueState is a queue as the management API shows it, which may be some seconds old.
type QueueState struct {
	// Type is classic, quorum or stream.
	Type string
	// Exclusive is set for a queue that belongs to one connection.
	Exclusive bool
	// Consumers are those that it has, ours included.
	Consumers int
	// DeliveryLimit is how often the broker takes a message back, the lowest of what is set, or the default of its version. Defaults to 0: for ever, or nobody told.
	DeliveryLimit int
	// Refused says why a group cannot work the queue, nil when it can.
	Refused error
	q       listed
}

// Rule is what an argument of the queue, or else a policy, sets: name is as in a policy, such as message-ttl. It is nil where nothing does.
func (q *QueueState) Rule(name string) any {
	if v, ok := q.q.Arguments["x-"+name]; ok {
		return v
	}
	return q.q.Policy[name]
}

// Queue asks for one queue. It fails with sources.ErrGone when there is none of that name.
func (o *Overview) Queue(ctx context.Context, name string) (QueueState, error) {
	q, err := o.m.listed(ctx, name)
	if err != nil {
		return QueueState{}, err
	}
	f := q.facts()
	s := QueueState{Type: f.kind, Exclusive: q.Exclusive, Consumers: q.Consumers, DeliveryLimit: brokerLimit(o.Version, f), Refused: tolerable(o.Version, f), q: q}
	switch {
	case f.kind == typeStream:
		s.Refused = errStream
	case q.Exclusive:
		s.Refused = errors.New("it is exclusive to one connection, which a group cannot work: use a queue that is not")
	}
	return s, nil
}
