package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rebalancer-go/rebalancer/sources/rabbitmq"
)

// rabbitDoctor looks at a broker and its queues.
type rabbitDoctor struct {
	config  rabbitmq.Config // with URLs of the management API
	managed bool            // it answered
	version string          // that it told
}

// broker connects to each host, and asks the management API.
func (r *rabbitDoctor) broker(ctx context.Context, d *doctor) {
	for _, raw := range r.config.URLs {
		u, err := url.Parse(raw)
		if err != nil {
			continue // rabbitmq.New has refused it
		}
		d.step(ctx, "connect "+u.Host, func(ctx context.Context) (string, error) { return r.connect(ctx, d, raw) })
	}
	r.managed = d.try(ctx, "management", "without it queues cannot be discovered, and their policies are not looked at: give the user the tag management, "+
		"or name the API in the URL: ?management=http://host:15672", func(ctx context.Context) (string, error) {
		var overview struct {
			Version string `json:"rabbitmq_version"`
		}
		err := r.get(ctx, "/api/overview", &overview)
		r.version = overview.Version
		return overview.Version, err
	})
}

// connect makes a connection and a channel, which shows host, TLS, user, password and virtual host, and notes the version.
func (r *rabbitDoctor) connect(ctx context.Context, d *doctor, raw string) (string, error) {
	c := amqp.Config{TLSClientConfig: r.config.TLS, Heartbeat: 10 * time.Second, Dial: amqp.DefaultDial(until(ctx))}
	if u, err := url.Parse(raw); err == nil && r.config.TLS != nil && len(r.config.TLS.Certificates) > 0 && u.User == nil {
		c.SASL = []amqp.Authentication{&amqp.ExternalAuth{}}
	}
	conn, err := amqp.DialConfig(raw, c)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if _, err := conn.Channel(); err != nil {
		return "", err
	}
	said := fmt.Sprintf("%v %v", conn.Properties["product"], conn.Properties["version"])
	d.version(said)
	return said, nil
}

// until is how much of ctx is left.
func until(ctx context.Context) time.Duration {
	if end, ok := ctx.Deadline(); ok {
		return max(time.Until(end), time.Millisecond)
	}
	return doctorTimeout
}

// get asks the first management API that answers. Its errors hold no password.
func (r *rabbitDoctor) get(ctx context.Context, path string, to any) error {
	var errs []error
	for _, base := range r.config.Management {
		err := r.getFrom(ctx, base, path, to)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (r *rabbitDoctor) getFrom(ctx context.Context, base, path string, to any) error {
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout/2)
	defer cancel()
	u, err := url.Parse(strings.TrimSuffix(base, "/") + path)
	if err != nil {
		return errors.New("the URL of the management API cannot be read")
	}
	user := u.User
	if broker, err := amqp.ParseURI(r.config.URLs[0]); user == nil && err == nil {
		user = url.UserPassword(broker.Username, broker.Password)
	}
	u.User = nil
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	password, _ := user.Password()
	req.SetBasicAuth(user.Username(), password)
	transport := &http.Transport{TLSClientConfig: r.tls(), DisableKeepAlives: true}
	res, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", u.Host, res.Status)
	}
	return json.NewDecoder(io.LimitReader(res.Body, 1<<20)).Decode(to)
}

func (r *rabbitDoctor) tls() *tls.Config { return r.config.TLS.Clone() }

// brokerQueue is what the management API shows of a queue.
type brokerQueue struct {
	Type      string         `json:"type"`
	Exclusive bool           `json:"exclusive"`
	Consumers int            `json:"consumers"`
	Arguments map[string]any `json:"arguments"`
	Policy    map[string]any `json:"effective_policy_definition"`
	Limit     any            `json:"delivery_limit"`
}

// rule is what holds for a queue, by its arguments or by a policy; nil: nothing.
func (q *brokerQueue) rule(name string) any {
	if v, ok := q.Arguments["x-"+name]; ok {
		return v
	}
	return q.Policy[name]
}

// queue looks at what the broker does with messages by itself.
func (r *rabbitDoctor) queue(ctx context.Context, d *doctor, check, name string, _ bool) {
	if !r.managed {
		return
	}
	broker, err := amqp.ParseURI(r.config.URLs[0])
	if err != nil {
		return
	}
	var q brokerQueue
	if err := r.get(ctx, "/api/queues/"+url.PathEscape(broker.Vhost)+"/"+url.PathEscape(name), &q); err != nil {
		d.failed(check, err)
		return
	}
	d.find(stateOK, check, "", "a queue of type %s with %s", orElse(q.Type, "classic"), countOf(q.Consumers, "consumer"))
	warn := func(wrong bool, do, format string, args ...any) {
		if wrong {
			d.find(stateWarning, check, do, format, args...)
		}
	}
	if q.Type == "stream" || q.Exclusive {
		d.failed(check, errors.New("streams and exclusive queues cannot be worked: make it a classic or a quorum queue"))
	}
	warn(q.Consumers > 0, "end it, unless it is a node of this group: two groups on one queue take messages from each other", "it is read by somebody already")
	dead := q.rule("dead-letter-exchange") != nil
	limit := q.limit(r.version)
	warn(limit > 0 && !dead, "set dead-letter-exchange by a policy, or give up messages earlier: --attempts with --on-failure move:QUEUE",
		"the broker drops a message that was returned %d times, since there is no dead-letter exchange", limit)
	warn(q.rule("message-ttl") != nil && !dead, "take message-ttl away, or set dead-letter-exchange", "the broker drops messages that waited longer than message-ttl")
	overflow := fmt.Sprint(q.rule("overflow"))
	warn((q.rule("max-length") != nil || q.rule("max-length-bytes") != nil) && !strings.HasPrefix(overflow, "reject-publish") && !dead,
		"set overflow to reject-publish, or set dead-letter-exchange", "the broker drops the oldest messages when the queue is full")
	warn(q.rule("expires") != nil, "take expires away", "the broker deletes the queue when nobody reads it for a while")
}

// limit is how often a message may be returned: the lowest of what is set; 0: for ever, or nobody knows. The API tells it only a while after the
// queue was made.
func (q *brokerQueue) limit(version string) int {
	if q.Limit != nil {
		n, _ := q.Limit.(float64) // or "unlimited"
		return max(int(n), 0)
	}
	limit := 0
	for _, v := range []any{q.Arguments["x-delivery-limit"], q.Policy["delivery-limit"]} {
		if n, ok := v.(float64); ok && n > 0 && (limit == 0 || int(n) < limit) {
			limit = int(n)
		}
	}
	if major, err := strconv.Atoi(strings.SplitN(version, ".", 2)[0]); limit == 0 && q.Type == "quorum" && err == nil && major >= 4 {
		return 20 // the default from 4.0 on
	}
	return limit
}
