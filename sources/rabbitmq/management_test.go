//go:build linux

package rabbitmq

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rebalancer-go/rebalancer/internal/waittest"
	"github.com/rebalancer-go/rebalancer/sources"
)

// checked is a configuration with these URLs of the management API.
func checked(t *testing.T, urls ...string) *settings {
	t.Helper()
	s, err := Config{URLs: []string{"amqp://u:secret@h/v%2F1"}, Management: urls}.check()
	if err != nil {
		t.Fatal(err)
	}
	return &s
}

func TestManagementURLsAreChecked(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "amqp://h", "http://", "http://u:secret@h?x=1", "://u:secret@", "http://u:secret@h:x", "http:h",
		"admin:secret@host:15672", "http:u:secret@h", "http:/u:secret@h", "http:///u:secret@h", "http://h?p=secret", "http://h#secret", "ftp://h/u:secret@h"} {
		_, err := Config{URLs: []string{"amqp://h"}, Management: []string{bad}}.check()
		if err == nil || !strings.Contains(err.Error(), "Management[0]: ") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	_, err := Config{URLs: []string{"amqp://h"}, Management: []string{"http://u:secret@h", "http://u:other@h2"}}.check()
	if err == nil || !strings.Contains(err.Error(), "Management[1]") || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "other") {
		t.Errorf("two passwords: %v", err)
	}
}

func TestManagementAsksTheNextHost(t *testing.T) {
	t.Parallel()
	down := httptest.NewServer(nil)
	down.Close()
	ill := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "starting", http.StatusServiceUnavailable) }))
	defer ill.Close()
	var got *http.Request
	well := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		_ = json.NewEncoder(w).Encode(map[string]any{"name": "a b/c", "type": "quorum"})
	}))
	defer well.Close()
	f, err := checked(t, down.URL, ill.URL, well.URL+"/under/").management().queue(t.Context(), "a b/c")
	if err != nil || f.kind != typeQuorum {
		t.Fatal(f, err)
	}
	if user, password, _ := got.BasicAuth(); user != "u" || password != "secret" {
		t.Errorf("login %s:%s, want that of URLs", user, password)
	}
	if want := "/under/api/queues/v%2F1/a%20b%2Fc"; got.URL.EscapedPath() != want {
		t.Errorf("path %s, want %s", got.URL.EscapedPath(), want)
	}
	_, err = checked(t, down.URL, ill.URL).management().queue(t.Context(), "q")
	if err == nil || !strings.Contains(err.Error(), "refused") || !strings.Contains(err.Error(), "starting") || strings.Contains(err.Error(), "secret") {
		t.Errorf("no host answers: %v", err)
	}
}

func TestManagementErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		body   string
		want   string
		is     error
	}{
		{http.StatusNotFound, `{"error":"Object Not Found","reason":"Not Found"}`, `queue "q"`, sources.ErrGone},
		{http.StatusUnauthorized, `{"error":"not_authorized","reason":"Login failed"}`, `refuses the user "u"`, nil},
		{http.StatusForbidden, `{}`, "the tag", nil},
		{http.StatusOK, `<html>`, "no answer of RabbitMQ", nil},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.status)
			_, _ = w.Write([]byte(c.body))
		}))
		_, err := checked(t, s.URL).management().queue(t.Context(), "q")
		s.Close()
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%d: %v, want %q", c.status, err, c.want)
		}
		if c.is == nil && errors.Is(err, sources.ErrGone) {
			t.Errorf("%d is taken for a queue that is gone", c.status)
		}
	}
	if _, err := checked(t).management().queue(t.Context(), "q"); err == nil || !strings.Contains(err.Error(), "Config.Management") {
		t.Errorf("without URLs: %v", err)
	}
}

// TestManagementHasADeadline: a server that is frozen accepts connections and answers nothing.
func TestManagementHasADeadline(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer s.Close()
	defer close(release)
	m := checked(t, s.URL).management()
	if m.client.Timeout != managementTimeout {
		t.Errorf("timeout %v", m.client.Timeout)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := m.queue(ctx, "q"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want the end of ctx", err)
	}
}

func TestDeliveryLimitOfTheManagementAPI(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]int{
		`{"type":"classic"}`: -1,
		`{"type":"quorum"}`:  0,
		`{"type":"quorum","arguments":{"x-delivery-limit":5}}`:                                                    5,
		`{"type":"quorum","effective_policy_definition":{"delivery-limit":7}}`:                                    7,
		`{"type":"quorum","arguments":{"x-delivery-limit":5},"effective_policy_definition":{"delivery-limit":3}}`: 3,
		`{"type":"quorum","arguments":{"x-delivery-limit":3},"effective_policy_definition":{"delivery-limit":5}}`: 3,
		`{"type":"quorum","arguments":{"x-delivery-limit":-1}}`:                                                   -1,
		`{"type":"quorum","delivery_limit":20}`:                                                                   20,
		`{"type":"quorum","delivery_limit":"unlimited"}`:                                                          -1,
		`{"arguments":{"x-queue-type":"quorum","x-delivery-limit":4}}`:                                            4,
	} {
		var q listed
		if err := json.Unmarshal([]byte(body), &q); err != nil {
			t.Fatal(err)
		}
		if got := q.limit(); got != want {
			t.Errorf("%s: %d, want %d", body, got, want)
		}
	}
}

// TestFactsOfQueues asks real servers.
func TestFactsOfQueues(t *testing.T) {
	t.Parallel()
	everywhere(t, []kind{{"", nil}}, func(t *testing.T, b *bench, _ kind) {
		b.declare("limited", kind{args: amqp.Table{"x-queue-type": "quorum", "x-delivery-limit": int64(5), "x-single-active-consumer": true}})
		b.declare("policy", kind{args: amqp.Table{"x-queue-type": "quorum"}})
		b.declare("classic", kind{args: amqp.Table{"x-queue-type": "classic"}})
		b.declare("stream", kind{args: amqp.Table{"x-queue-type": "stream"}})
		b.r.Must(http.MethodPut, "/api/policies/"+b.vhost+"/p", map[string]any{"pattern": "^policy$", "definition": map[string]any{"delivery-limit": 7}}, nil)
		m := b.source(b.managed).management()
		want := func(name string, w facts) {
			t.Helper()
			f := facts{}
			waittest.Until(t, name, func() bool { // statistics, which bring the policy, come within seconds
				var err error
				if f, err = m.queue(t.Context(), name); err != nil {
					t.Fatal(err)
				}
				return f.limit != 0 || f == w
			})
			if f != w {
				t.Errorf("%s: %+v, want %+v", name, f, w)
			}
		}
		want("limited", facts{kind: typeQuorum, limit: 5, told: true})
		want("policy", facts{kind: typeQuorum, limit: 7, told: true})
		want("classic", facts{kind: typeClassic, limit: -1, told: true})
		want("stream", facts{kind: typeStream, limit: -1, told: true})
		if _, err := m.queue(t.Context(), "missing"); !errors.Is(err, sources.ErrGone) {
			t.Errorf("missing: %v", err)
		}
	})
}

// managed adds the management API to a configuration.
func (b *bench) managed(c *Config) { c.Management = []string{b.r.ManagementURL()} }

func TestDiscover(t *testing.T) {
	t.Parallel()
	everywhere(t, []kind{{"", nil}}, func(t *testing.T, b *bench, _ kind) {
		for _, name := range []string{"orders.1", "orders.0", "orders.x/y", "invoices", "orders.dead", own + "orders.grow.1"} {
			b.declare(name, kinds[0])
		}
		b.declare("orders.stream", kind{args: amqp.Table{"x-queue-type": "stream"}})
		if _, err := b.ch.QueueDeclare("orders.exclusive", false, false, true, false, nil); err != nil {
			t.Fatal(err)
		}
		s := b.source(func(c *Config) { b.managed(c); c.DeadLetter = Queue("orders.dead") })
		var names []string
		waittest.Until(t, "the list is fresh", func() bool {
			var err error
			if names, err = s.Discover(t.Context(), "orders.*"); err != nil {
				t.Fatal(err)
			}
			return slices.Equal(names, []string{"orders.0", "orders.1"})
		})
		if names, err := s.Discover(t.Context(), "*"); err != nil || !slices.Equal(names, []string{"invoices", "orders.0", "orders.1"}) {
			t.Errorf("*: %q %v", names, err)
		}
		if names, err := s.Discover(t.Context(), "nothing*"); err != nil || names == nil || len(names) != 0 {
			t.Errorf("nothing*: %#v %v", names, err)
		}
		if _, err := s.Discover(t.Context(), "["); err == nil {
			t.Error("a pattern that is none was accepted")
		}
		if _, err := b.source(nil).Discover(t.Context(), "*"); err == nil || !strings.Contains(err.Error(), "Config.Management") {
			t.Errorf("without management: %v", err)
		}
		b.r.User("plain-"+b.vhost, "secret")
		b.r.Permit("plain-"+b.vhost, b.vhost, "", "", ".*")
		denied := b.source(func(c *Config) {
			c.Management = []string{(&url.URL{Scheme: "http", User: url.UserPassword("plain-"+b.vhost, "secret"), Host: b.r.ManagementAddr()}).String()}
		})
		if _, err := denied.Discover(t.Context(), "*"); err == nil || !strings.Contains(err.Error(), "management") || strings.Contains(err.Error(), "secret") {
			t.Errorf("without the tag: %v", err)
		}
		s.vhostGone(t)
	})
}

func (s *Source) vhostGone(t *testing.T) {
	t.Helper()
	other := s.settings
	other.hosts = []host{{vhost: "gone"}}
	if _, err := other.management().discover(t.Context(), "*", DeadLetter{}); err == nil || errors.Is(err, sources.ErrGone) || !strings.Contains(err.Error(), "virtual host") {
		t.Errorf("a virtual host that is gone: %v", err)
	}
}

// TestManagementThatIsFrozen: a queue is opened soon all the same, with what is known of it; and a host that answers is asked behind those that
// do not.
func TestManagementThatIsFrozen(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	frozen := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer frozen.Close()
	defer close(release)
	s := newStub(t).source()
	s.Management = []string{frozen.URL, frozen.URL, frozen.URL}
	known := facts{kind: typeQuorum, limit: 7}
	s.types.put("q", known)
	start := time.Now()
	if f, err := s.facts(t.Context(), nil, "q"); err != nil || f != known {
		t.Errorf("%+v %v", f, err)
	}
	if d := time.Since(start); d > managementTimeout {
		t.Errorf("three hosts took %v", d)
	}
	well := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"type":"quorum","delivery_limit":9}`))
	}))
	defer well.Close()
	s.Management = []string{frozen.URL, well.URL}
	if f, err := s.facts(t.Context(), nil, "q"); err != nil || f.limit != 9 {
		t.Errorf("the second answers: %+v %v", f, err)
	}
}
