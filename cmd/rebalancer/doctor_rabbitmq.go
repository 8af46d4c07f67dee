package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/rebalancer-go/rebalancer/sources/rabbitmq"
)

// rabbitDoctor looks at a broker and its queues.
type rabbitDoctor struct {
	source   *rabbitmq.Source   // with URLs of the management API
	overview *rabbitmq.Overview // nil: it did not answer
}

// broker connects to each host, which shows TLS, user, password and virtual host, and asks the management API.
func (r *rabbitDoctor) broker(ctx context.Context, d *doctor) {
	for _, host := range r.source.Hosts() {
		said := ""
		if d.step(ctx, "connect "+host, func(ctx context.Context) (_ string, err error) {
			said, err = r.source.Try(ctx, host)
			return said, err
		}) {
			d.version(said)
		}
	}
	d.try(ctx, "management", "without it queues cannot be discovered, and their policies are not looked at: give the user the tag management, "+
		"or name the API in the URL: ?management=http://host:15672", func(ctx context.Context) (_ string, err error) {
		if r.overview, err = r.source.Overview(ctx); err != nil {
			return "", err
		}
		return r.overview.Version, nil
	})
}

// queue looks at what the broker does with messages by itself.
func (r *rabbitDoctor) queue(ctx context.Context, d *doctor, check, name string, _ bool) {
	if r.overview == nil {
		return
	}
	q, err := r.overview.Queue(ctx, name)
	if err != nil {
		d.failed(check, err)
		return
	}
	d.find(stateOK, check, "", "a queue of type %s with %s", q.Type, countOf(q.Consumers, "consumer"))
	if q.Refused != nil {
		d.failed(check, q.Refused)
	}
	warn := func(wrong bool, do, format string, args ...any) {
		if wrong {
			d.find(stateWarning, check, do, format, args...)
		}
	}
	warn(q.Consumers > 0, "end it, unless it is a node of this group: two groups on one queue take messages from each other", "it is read by somebody already")
	dead := q.Rule("dead-letter-exchange") != nil
	warn(q.DeliveryLimit > 0 && !dead, "set dead-letter-exchange by a policy, or give up messages earlier: --attempts with --on-failure move:QUEUE",
		"the broker drops a message that was returned %d times, since there is no dead-letter exchange", q.DeliveryLimit)
	warn(q.Rule("message-ttl") != nil && !dead, "take message-ttl away, or set dead-letter-exchange", "the broker drops messages that waited longer than message-ttl")
	overflow := fmt.Sprint(q.Rule("overflow"))
	warn((q.Rule("max-length") != nil || q.Rule("max-length-bytes") != nil) && !strings.HasPrefix(overflow, "reject-publish") && !dead,
		"set overflow to reject-publish, or set dead-letter-exchange", "the broker drops the oldest messages when the queue is full")
	warn(q.Rule("expires") != nil, "take expires away", "the broker deletes the queue when nobody reads it for a while")
}
