package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources/rabbitmq"
)

// rabbitmqSources open amqp://user@host/vhost and amqps://: each queue is a resource.
func rabbitmqSources() []sourceDriver {
	return []sourceDriver{
		{scheme: "amqp", form: "amqp://user@host/vhost", open: openRabbitMQ},
		{scheme: "amqps", form: "amqps://user@host/vhost", open: openRabbitMQ},
	}
}

func openRabbitMQ(_ context.Context, u *url.URL, o sourceOptions) (*openSource, error) {
	c, err := rabbitmqConfig(u, o.list)
	if err != nil {
		return nil, err
	}
	c.Logger = o.logger
	if o.success.stays() || o.failure.stays() {
		return nil, usagef("--on-success and --on-failure: a message of RabbitMQ cannot be kept or tagged")
	}
	if o.success.action == "move" {
		return nil, usagef("--on-success is move:%s: a message of RabbitMQ that was worked cannot be moved; use delete", o.success.folder)
	}
	switch {
	case o.failure.action == "move":
		c.DeadLetter.RoutingKey = o.failure.folder
	case c.DeadLetter.Exchange != "":
		return nil, usagef("--source: dead_letter_exchange is of no use without --on-failure move:KEY")
	}
	s, err := rabbitmq.New(c)
	if err != nil {
		return nil, &kindError{errUsage, err.Error()}
	}
	examined, err := rabbitmq.New(managed(c))
	if err != nil {
		return nil, &kindError{errUsage, err.Error()}
	}
	doctor := &rabbitDoctor{source: examined}
	return &openSource{
		Source: s, close: func() error { return errors.Join(s.Close(), examined.Close()) }, path: func(*rebalancer.Message) string { return "" },
		examine: doctor.broker, examineResource: doctor.queue,
		notLocal: "the broker can be reached by nodes on other machines, and all must use one store",
	}, nil
}

// rabbitmqConfig reads the URL, whose host may be several, separated by commas. manage: the management API is needed, by default where managed has it. No error holds a password.
func rabbitmqConfig(u *url.URL, manage bool) (rabbitmq.Config, error) {
	var c rabbitmq.Config
	var ca, cert, key string
	var errs []error
	left := url.Values{}
	for name, values := range u.Query() {
		v, err := values[len(values)-1], error(nil)
		switch name {
		case "heartbeat":
			c.Heartbeat, err = seconds(v)
		case "prefetch":
			c.Prefetch, err = count(v)
		case "delivery_limit":
			c.DeliveryLimit, err = count(v)
		case "dead_letter_exchange":
			c.DeadLetter.Exchange = v
		case "management":
			c.Management = values
		case "cacertfile":
			ca = v
		case "certfile":
			cert = v
		case "keyfile":
			key = v
		case "auth_mechanism":
			left[name] = values
		default:
			err = errors.New("it is not known: use heartbeat, prefetch, delivery_limit, dead_letter_exchange, management, cacertfile, certfile, keyfile or auth_mechanism")
		}
		if err != nil {
			errs = append(errs, usagef("--source: the parameter %s: %v", name, err))
		}
	}
	var err error
	if c.TLS, err = tlsFiles(ca, cert, key); err != nil {
		errs = append(errs, fmt.Errorf("--source: %w", err))
	}
	for h := range strings.SplitSeq(u.Host, ",") {
		one := *u
		one.Host, one.RawQuery = h, left.Encode()
		c.URLs = append(c.URLs, one.String())
	}
	if manage {
		c = managed(c)
	}
	return c, errors.Join(errs...)
}

// managed is a configuration with the management API on the usual port of each host, unless it names one.
func managed(c rabbitmq.Config) rabbitmq.Config {
	if len(c.Management) > 0 {
		return c
	}
	for _, raw := range c.URLs {
		if u, err := url.Parse(raw); err == nil { // else New refuses it
			c.Management = append(c.Management, managementOf(u))
		}
	}
	return c
}

// seconds reads a duration, or a number of seconds, as in other programs' URLs. Its error does not show what it was given.
func seconds(v string) (time.Duration, error) {
	if n, err := strconv.ParseInt(v, 10, 32); err == nil {
		return time.Duration(n) * time.Second, nil
	}
	d, err := time.ParseDuration(v)
	if err != nil {
		return 0, errors.New("it must be a duration such as 1m30s, or a number of seconds")
	}
	return d, nil
}

// count reads a number. Its error does not show what it was given.
func count(v string) (int, error) {
	n, err := strconv.Atoi(v)
	if err != nil {
		return 0, errors.New("it must be a number")
	}
	return n, nil
}

// managementOf is the management API where it usually is.
func managementOf(u *url.URL) string {
	m := url.URL{Scheme: "http", Host: net.JoinHostPort(u.Hostname(), "15672")}
	if u.Scheme == "amqps" {
		m = url.URL{Scheme: "https", Host: net.JoinHostPort(u.Hostname(), "15671")}
	}
	return m.String()
}

// tlsFiles reads certificates in PEM; nil when no file is named.
func tlsFiles(ca, cert, key string) (*tls.Config, error) {
	if ca == "" && cert == "" && key == "" {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("cacertfile: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("cacertfile: %s holds no certificate in PEM", ca)
		}
	}
	if cert != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("certfile %s and keyfile %s: %w", cert, key, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
