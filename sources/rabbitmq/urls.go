package rabbitmq

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"
)

// host is one of Config.URLs.
type host struct {
	addr  string // host:port
	name  string // of the host, for TLS
	vhost string
	tls   bool
	sasl  []amqp.Authentication // to be used by way of logins
}

// logins are copies of the ways to log in: the client library takes the passwords out of those that it was given, once they were used.
func (h host) logins() []amqp.Authentication {
	ways := make([]amqp.Authentication, len(h.sasl))
	for i, way := range h.sasl {
		switch way := way.(type) {
		case *amqp.PlainAuth:
			fresh := *way
			ways[i] = &fresh
		case *amqp.AMQPlainAuth:
			fresh := *way
			ways[i] = &fresh
		default:
			ways[i] = way
		}
	}
	return ways
}

// parseURLs reads the URLs. No error holds a password, nor what may be a part of one.
func (c Config) parseURLs() ([]host, []error) {
	if len(c.URLs) == 0 {
		return nil, []error{errors.New("rabbitmq: Config.URLs is empty: name a broker, as amqp://user:password@host:5672/vhost")}
	}
	var hosts []host
	var errs []error
	first := "" // what the URLs have in common
	for i, raw := range c.URLs {
		h, common, err := c.parseURL(raw)
		if err != nil {
			errs = append(errs, fmt.Errorf("rabbitmq: Config.URLs[%d]: %w", i, err))
			continue
		}
		if first == "" {
			first = common
		}
		if common != first {
			errs = append(errs, fmt.Errorf("rabbitmq: Config.URLs[%d]: it differs from the first in more than host and port: all must lead to one broker, vhost and user", i))
		}
		hosts = append(hosts, h)
	}
	return hosts, errs
}

func (c Config) parseURL(raw string) (host, string, error) {
	u, err := url.Parse(raw)
	if err != nil || strings.ContainsAny(raw, " \t\n") {
		return host{}, "", errors.New("it is not a URL: write amqp://user:password@host:5672/vhost, and escape what is special in each part (%2F for /)")
	}
	if u.Opaque != "" || u.Scheme != "amqp" && u.Scheme != "amqps" || u.Hostname() == "" || u.Fragment != "" {
		return host{}, "", fmt.Errorf("%s: write amqp://host:port/vhost or amqps://host:port/vhost", shown(u))
	}
	if strings.Contains(strings.TrimPrefix(u.EscapedPath(), "/"), "/") {
		return host{}, "", fmt.Errorf("%s: a vhost holds no slash of its own: write %%2F for it", shown(u))
	}
	if c.TLS != nil && u.Scheme != "amqps" {
		return host{}, "", fmt.Errorf("%s: Config.TLS is set, and amqp:// does not use it: write amqps://", shown(u))
	}
	port := 5672
	if u.Scheme == "amqps" {
		port = 5671
	}
	if u.Port() != "" {
		if port, err = strconv.Atoi(u.Port()); err != nil || port < 1 || port > 65535 {
			return host{}, "", fmt.Errorf("%s: the port must be 1 to 65535", shown(u))
		}
	}
	h := host{addr: net.JoinHostPort(u.Hostname(), strconv.Itoa(port)), name: u.Hostname(), tls: u.Scheme == "amqps", vhost: "/"}
	if v := strings.TrimPrefix(u.Path, "/"); v != "" {
		h.vhost = v
	}
	if len(h.vhost) > maxShort {
		return host{}, "", fmt.Errorf("%s: the name of a vhost has at most 255 bytes", shown(u))
	}
	if h.sasl, err = c.logins(u); err != nil {
		return host{}, "", fmt.Errorf("%s: %w", shown(u), err)
	}
	return h, u.Scheme + "|" + u.User.String() + "|" + h.vhost + "|" + u.RawQuery, nil
}

// logins are the ways to log in that the URL asks for.
func (c Config) logins(u *url.URL) ([]amqp.Authentication, error) {
	user, password := "guest", "guest"
	if u.User != nil {
		user = u.User.Username()
		password, _ = u.User.Password()
	}
	mechanisms := []string{"plain"}
	if u.User == nil && c.TLS != nil && (len(c.TLS.Certificates) > 0 || c.TLS.GetClientCertificate != nil) {
		mechanisms = []string{"external"}
	}
	for key, values := range u.Query() {
		if key != "auth_mechanism" {
			return nil, fmt.Errorf("the parameter %q is not known: everything but auth_mechanism is a field of Config", key)
		}
		mechanisms = values
	}
	var ways []amqp.Authentication
	for _, m := range mechanisms {
		switch strings.ToLower(m) {
		case "plain":
			ways = append(ways, &amqp.PlainAuth{Username: user, Password: password})
		case "amqplain":
			ways = append(ways, &amqp.AMQPlainAuth{Username: user, Password: password})
		case "external":
			ways = append(ways, &amqp.ExternalAuth{})
		default:
			return nil, fmt.Errorf("auth_mechanism %q is not known: use plain, amqplain or external", m)
		}
	}
	return ways, nil
}

// shown is a URL as an error may hold it: without its password and parameters. Where something is missing or not escaped, a part may be in
// another one's place: then nothing is shown.
func shown(u *url.URL) string {
	if u.Opaque != "" || u.Hostname() == "" || strings.Contains(u.Path+u.RawQuery+u.Fragment, "@") {
		return "it is not a URL as it should be"
	}
	plain := *u
	plain.RawQuery, plain.Fragment = "", ""
	return plain.Redacted()
}
