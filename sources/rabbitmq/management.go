package rabbitmq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	managementTimeout = 10 * time.Second // of one request to one host
	managementAnswer  = 64 << 20         // bytes that are read of an answer
	managementHaste   = 3 * time.Second  // of all hosts together, where there is another way
)

// errNotFound is what a request fails with when there is no such thing.
var errNotFound = errors.New("not found")

// management asks the management API of one virtual host.
type management struct {
	bases          []url.URL // without user and password
	user, password string
	vhost          string // escaped, as part of a path
	client         *http.Client
}

// management returns nil when there is none, of which every request then says so.
func (c *settings) management() *management {
	if len(c.Management) == 0 {
		return nil
	}
	m := &management{vhost: url.PathEscape(c.hosts[0].vhost), user: "guest", password: "guest"}
	if u, err := url.Parse(c.URLs[0]); err == nil && u.User != nil {
		m.login(u.User)
	}
	for _, raw := range c.Management {
		u, err := url.Parse(raw)
		if err != nil {
			continue // it was checked
		}
		if u.User != nil {
			m.login(u.User)
		}
		m.bases = append(m.bases, url.URL{Scheme: u.Scheme, Host: u.Host, Path: strings.TrimSuffix(u.Path, "/")})
	}
	// A connection for each request: they are few, and none is left when the Source is closed.
	m.client = &http.Client{Timeout: managementTimeout, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: c.TLS, DialContext: (&net.Dialer{Timeout: c.DialTimeout}).DialContext, TLSHandshakeTimeout: c.DialTimeout,
	}}
	return m
}

func (m *management) login(u *url.Userinfo) {
	m.user = u.Username()
	m.password, _ = u.Password()
}

// checkManagement checks the URLs. No error holds a password.
func (c Config) checkManagement() error {
	var errs []error
	first := ""
	for i, raw := range c.Management {
		u, err := url.Parse(raw)
		switch {
		case err != nil:
			err = errors.New("it is not a URL: write http://user:password@host:15672, and escape what is special in each part")
		case u.Scheme != "http" && u.Scheme != "https" || u.Opaque != "" || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "":
			err = fmt.Errorf("%s: write http://host:15672 or https://host:15671", shown(u))
		case i > 0 && u.User.String() != first:
			err = fmt.Errorf("%s: its user or password differs from that of the first", shown(u))
		}
		if i == 0 && err == nil {
			first = u.User.String()
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("rabbitmq: Config.Management[%d]: %w", i, err))
		}
	}
	return errors.Join(errs...)
}

// get asks the hosts in turn until one answers; each may take its share of the time that ctx leaves. path begins with /api and is escaped. It fails with errNotFound when the answer is 404.
func (m *management) get(ctx context.Context, path string, answer any) error {
	if m == nil {
		return errors.New("the management API is needed: set Config.Management to its URL, as http://host:15672")
	}
	var errs []error
	for i, base := range m.bases {
		again, err := m.share(ctx, len(m.bases)-i, base.String()+path, answer)
		if err == nil || !again || ctx.Err() != nil {
			return err
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// share is ask with a share of the time that is left.
func (m *management) share(ctx context.Context, shares int, address string, answer any) (again bool, err error) {
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(end)/time.Duration(shares))
		defer cancel()
	}
	return m.ask(ctx, address, answer)
}

// ask tells whether another host might answer better.
func (m *management) ask(ctx context.Context, address string, answer any) (again bool, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return false, err
	}
	request.SetBasicAuth(m.user, m.password)
	response, err := m.client.Do(request)
	if err != nil { // it names the address
		return true, fmt.Errorf("the management API does not answer: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, managementAnswer))
	switch {
	case err != nil:
		return true, fmt.Errorf("the management API at %s: %w", address, err)
	case response.StatusCode == http.StatusNotFound:
		return false, fmt.Errorf("the management API at %s: %w", address, errNotFound)
	case response.StatusCode == http.StatusUnauthorized || response.StatusCode == http.StatusForbidden:
		return false, fmt.Errorf("the management API at %s refuses the user %q: it wants the right password, the tag \"management\" and rights on the virtual host: %s",
			address, m.user, reason(body))
	case response.StatusCode != http.StatusOK:
		return true, fmt.Errorf("the management API at %s: %s: %s", address, response.Status, reason(body))
	}
	if err = json.Unmarshal(body, answer); err != nil {
		err = fmt.Errorf("the management API at %s answers what is no answer of RabbitMQ: %w", address, err)
	}
	return true, err
}

// reason is what the server says, cut short.
func reason(body []byte) string {
	var said struct{ Error, Reason string }
	text := strings.TrimSpace(string(body))
	if json.Unmarshal(body, &said) == nil && said.Reason != "" {
		text = said.Reason
	}
	return text[:min(len(text), 200)]
}
