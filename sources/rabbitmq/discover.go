package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/rebalancer-go/rebalancer/sources"
)

// The types of queues, as the management API writes them.
const (
	typeClassic = "classic"
	typeQuorum  = "quorum"
	typeStream  = "stream"
)

// own begins the names of queues that Partitions makes for itself.
const own = "rebalancer."

// facts are what AMQP does not tell about a queue.
type facts struct {
	kind string // classic, quorum or stream
	// limit is the delivery limit; 0: not told, -1: none. A policy may take a few seconds to be told.
	limit int
	told  bool // by the management API
}

// listed is a queue as the management API shows it.
type listed struct {
	Name          string         `json:"name"`
	Type          string         `json:"type"`
	Exclusive     bool           `json:"exclusive"`
	Consumers     int            `json:"consumers"`
	Arguments     map[string]any `json:"arguments"`
	Policy        map[string]any `json:"effective_policy_definition"`
	DeliveryLimit any            `json:"delivery_limit"` // a number, or "unlimited", from 4.0 on
}

// kind is the type also where an old server does not show it.
func (q *listed) kind() string {
	if q.Type != "" {
		return q.Type
	}
	if t, ok := q.Arguments["x-queue-type"].(string); ok {
		return t
	}
	return typeClassic
}

// limit is the lowest of what is set, as it is for the broker.
func (q *listed) limit() int {
	if q.kind() != typeQuorum {
		return -1
	}
	if n, ok := q.DeliveryLimit.(float64); ok && n > 0 {
		return int(n)
	} else if q.DeliveryLimit != nil {
		return -1
	}
	limit := 0
	for _, v := range []any{q.Arguments["x-delivery-limit"], q.Policy["delivery-limit"]} {
		if n, ok := v.(float64); ok && (limit <= 0 || n > 0 && int(n) < limit) {
			if limit = int(n); n <= 0 {
				limit = -1
			}
		}
	}
	return limit
}

// facts are those that a group needs.
func (q *listed) facts() facts { return facts{kind: q.kind(), limit: q.limit(), told: true} }

// queue asks for the facts of one queue. It fails with sources.ErrGone when there is none of that name.
func (m *management) queue(ctx context.Context, name string) (facts, error) {
	q, err := m.listed(ctx, name)
	if err != nil {
		return facts{}, err
	}
	return q.facts(), nil
}

// listed asks for one queue. It fails with sources.ErrGone when there is none of that name.
func (m *management) listed(ctx context.Context, name string) (listed, error) {
	var q listed
	err := m.get(ctx, "/api/queues/"+m.vhostPath()+"/"+url.PathEscape(name), &q)
	if errors.Is(err, errNotFound) {
		err = sources.ErrGone
	}
	if err != nil {
		return listed{}, fmt.Errorf("rabbitmq: queue %q: %w", name, err)
	}
	return q, nil
}

// vhostPath is what get needs of the virtual host; of none, an error follows anyway.
func (m *management) vhostPath() string {
	if m == nil {
		return ""
	}
	return m.vhost
}

// Discover lists the queues of the virtual host that match a pattern (see path.Match: * does not match a slash), sorted. It needs
// Config.Management. Left out are streams, exclusive queues, the queue that Config.DeadLetter names, and those that Partitions makes for itself.
func (s *Source) Discover(ctx context.Context, pattern string) ([]string, error) {
	return s.management().discover(ctx, pattern, s.DeadLetter)
}

// discover lists the queues that match, sorted.
func (m *management) discover(ctx context.Context, pattern string, dead DeadLetter) ([]string, error) {
	if _, err := path.Match(pattern, ""); err != nil {
		return nil, fmt.Errorf("rabbitmq: discover %q: %w", pattern, err)
	}
	all, err := m.queues(ctx)
	if err != nil {
		return nil, fmt.Errorf("rabbitmq: discover %q: %w", pattern, err)
	}
	names := []string{}
	for _, q := range all {
		switch ok, _ := path.Match(pattern, q.Name); {
		case !ok, q.Exclusive, q.kind() == typeStream, strings.HasPrefix(q.Name, own), dead.Exchange == "" && q.Name == dead.RoutingKey:
		default:
			names = append(names, q.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// queues lists all queues of the virtual host, without their statistics.
func (m *management) queues(ctx context.Context) ([]listed, error) {
	var all []listed
	err := m.get(ctx, "/api/queues/"+m.vhostPath()+"?disable_stats=true&columns=name,type,arguments,exclusive", &all)
	if errors.Is(err, errNotFound) {
		err = fmt.Errorf("%w: check that the virtual host exists", err)
	}
	return all, err
}
