package rabbitmq

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"time"
	"unicode/utf8"
)

// The defaults of [Config], and its limits.
const (
	DefaultHeartbeat   = 5 * time.Second
	DefaultDialTimeout = 5 * time.Second
	// MaxPrefetch is the greatest fixed prefetch. An adapting one stays at 200 or below.
	MaxPrefetch = 2000
)

// Config says which broker to read from and how. URLs are required; the zero value of every other field is a working
// default.
type Config struct {
	// URLs of the broker: amqp://user:password@host:port/vhost, or amqps:// for TLS, one for each host of a cluster. They
	// differ in nothing but host and port: a queue's name must mean one queue. The first that answers is used, from a
	// random one on. A user and password that are left out are guest and guest; a vhost that is left out is "/". The one
	// query parameter allowed is auth_mechanism (plain, amqplain, external).
	URLs []string
	// TLS is for amqps: certificates of authorities and of the client, as usual. Without a ServerName it is the host of
	// the URL. With a client certificate and no user in the URL the login is EXTERNAL. Defaults to the system's authorities.
	TLS *tls.Config
	// Heartbeat is asked of the broker, which may choose less. The broker lets go of a node that froze or was cut off after
	// up to 3 of them: see HeldFor. Whole seconds, 1 s to 60 s. Defaults to DefaultHeartbeat.
	Heartbeat time.Duration
	// DialTimeout bounds the making of a connection to one host, with TLS and login. Defaults to DefaultDialTimeout.
	DialTimeout time.Duration
	// Name begins the names of the connections, which the management page shows. Defaults to "group/node" of the claim for
	// which a connection is made.
	Name string
	// Management are URLs of the management API, http://user:password@host:15672 or https://, one for each host that has it: the first that
	// answers is asked. A user that is left out is that of URLs; TLS is used for https. It is needed for Discover and Partitions, tells the
	// type and the delivery limit of a queue, and is best left out for a user who may not ask it (the tag "management"). Defaults to none.
	Management []string

	// Prefetch is how many messages of a queue the broker sends ahead, at most MaxPrefetch. Defaults to 0: as many as were
	// worked in the last second, at most 200 and at most 16 MiB.
	Prefetch int
	// EagerStart prefetches from the start. Without it a claim begins with one message at a time, until the first that was
	// never delivered before is done, unless messages come again that are to be taken together: a message that kills the process then burns no attempts
	// of those behind it. See the package comment, "Delivery limit". Defaults to false.
	EagerStart bool
	// DeliveryLimit is the x-delivery-limit of the quorum queues. A message that was returned so often that one return more
	// might be its last goes to DeadLetter before a handler sees it. -1 means that there is none. Defaults to 0: as the broker tells it
	// through Management, and without that 20 for RabbitMQ 4 and later, which is its default, or none.
	DeliveryLimit int
	// DeadLetter is where messages go that are given up. Defaults to nowhere: they are then retried for ever.
	DeadLetter DeadLetter

	// Logger is told what no error reports: connections lost and made, consumers beside ours. Defaults to none.
	Logger *slog.Logger
}

// DeadLetter is a destination of messages. The zero value is none.
type DeadLetter struct {
	// Exchange is the name of an exchange that exists; "" is the default exchange, which takes RoutingKey as the name of a
	// queue.
	Exchange string
	// RoutingKey of the messages. Required for the default exchange; for another one, "" keeps that of the message.
	RoutingKey string
}

// Queue is the DeadLetter that puts messages into a queue, which must exist.
func Queue(name string) DeadLetter { return DeadLetter{RoutingKey: name} }

func (d DeadLetter) none() bool { return d == DeadLetter{} }

// settings are a checked Config.
type settings struct {
	Config
	hosts []host
}

const maxShort = 255 // bytes of the protocol's names

// check fills in the defaults and returns all violations at once.
func (c Config) check() (settings, error) {
	if c.Heartbeat == 0 {
		c.Heartbeat = DefaultHeartbeat
	}
	if c.DialTimeout == 0 {
		c.DialTimeout = DefaultDialTimeout
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	var errs []error
	want := func(ok bool, field string, got any, allowed string) {
		if !ok {
			errs = append(errs, fmt.Errorf("rabbitmq: Config.%s is %v: %s", field, got, allowed))
		}
	}
	hosts, bad := c.parseURLs()
	errs = append(errs, bad...)
	errs = append(errs, c.checkManagement())
	want(c.Heartbeat >= time.Second && c.Heartbeat <= time.Minute && c.Heartbeat%time.Second == 0, "Heartbeat", c.Heartbeat, "it must be 1s to 1m0s, in whole seconds")
	want(c.DialTimeout > 0, "DialTimeout", c.DialTimeout, "it must be above 0")
	want(c.Prefetch >= 0 && c.Prefetch <= MaxPrefetch, "Prefetch", c.Prefetch, fmt.Sprintf("it must be 0 (adapting) to %d", MaxPrefetch))
	want(c.DeliveryLimit >= -1, "DeliveryLimit", c.DeliveryLimit, "it must be -1 (none), 0 (as the broker says) or above")
	for _, f := range [][2]string{{"Name", c.Name}, {"DeadLetter.Exchange", c.DeadLetter.Exchange}, {"DeadLetter.RoutingKey", c.DeadLetter.RoutingKey}} {
		want(len(f[1]) <= maxShort && utf8.ValidString(f[1]), f[0], fmt.Sprintf("%q", f[1]), "it must be UTF-8 of at most 255 bytes")
	}
	return settings{Config: c, hosts: hosts}, errors.Join(errs...)
}
