//go:build linux

package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/rebalancer-go/rebalancer/internal/waittest"
	"github.com/rebalancer-go/rebalancer/sources"
)

// api is a management API of a broker of some version with some queues.
func api(t *testing.T, version string, queues map[string]string) *Source {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := path.Base(r.URL.Path)
		switch {
		case r.URL.Path == "/api/overview":
			fmt.Fprintf(w, `{"rabbitmq_version":%q}`, version)
		case queues[name] != "" && strings.Contains(r.URL.EscapedPath(), "/v%2F1/"):
			fmt.Fprint(w, queues[name])
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(server.Close)
	s, err := New(Config{URLs: []string{"amqp://u:secret@h/v%2F1"}, Management: []string{server.URL}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// TestQueueStates: the limit is the broker's own, by version, and what a group refuses is said.
func TestQueueStates(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		version, queue string
		kind           string
		limit          int
		refused        string
	}{
		"told":                         {"4.0.5", `{"type":"quorum","delivery_limit":7,"arguments":{"x-delivery-limit":3}}`, typeQuorum, 7, ""},
		"told to be none":              {"4.0.5", `{"type":"quorum","delivery_limit":"unlimited"}`, typeQuorum, 0, ""},
		"the lower of two":             {"3.10.8", `{"type":"quorum","arguments":{"x-delivery-limit":9},"effective_policy_definition":{"delivery-limit":4}}`, typeQuorum, 4, ""},
		"the default, not told yet":    {"4.0.5", `{"type":"quorum"}`, typeQuorum, defaultLimit, ""},
		"none before 4.0":              {"3.10.8", `{"type":"quorum"}`, typeQuorum, 0, ""},
		"of a version nobody told":     {"", `{"type":"quorum"}`, typeQuorum, 0, ""},
		"classic":                      {"4.0.5", `{"type":"classic"}`, typeClassic, 0, ""},
		"classic where nobody says so": {"3.10.8", `{}`, typeClassic, 0, ""},
		"below 1 before 4.0":           {"3.10.8", `{"type":"quorum","arguments":{"x-delivery-limit":-1}}`, typeQuorum, 0, "at its first return"},
		"below 1 from 4.0 on":          {"4.0.5", `{"type":"quorum","arguments":{"x-delivery-limit":-1}}`, typeQuorum, 0, ""},
		"a stream":                     {"4.0.5", `{"type":"stream"}`, typeStream, 0, "stream"},
		"exclusive":                    {"4.0.5", `{"type":"classic","exclusive":true}`, typeClassic, 0, "exclusive"},
	} {
		o, err := api(t, c.version, map[string]string{"q": c.queue}).Overview(t.Context())
		if err != nil || o.Version != c.version {
			t.Fatalf("%s: %+v, %v", what, o, err)
		}
		q, err := o.Queue(t.Context(), "q")
		if err != nil || q.Type != c.kind || q.DeliveryLimit != c.limit || (q.Refused == nil) != (c.refused == "") {
			t.Errorf("%s: %+v, %v", what, q, err)
		} else if q.Refused != nil && !strings.Contains(q.Refused.Error(), c.refused) {
			t.Errorf("%s: %v", what, q.Refused)
		}
	}
}

// TestQueueRules: an argument goes before a policy.
func TestQueueRules(t *testing.T) {
	t.Parallel()
	s := api(t, "4.0.5", map[string]string{"q": `{"consumers":2,"arguments":{"x-expires":5},"effective_policy_definition":{"expires":9,"overflow":"drop-head"}}`})
	o, err := s.Overview(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	q, err := o.Queue(t.Context(), "q")
	if err != nil || q.Consumers != 2 || q.Exclusive || q.Rule("expires") != 5.0 || q.Rule("overflow") != "drop-head" || q.Rule("message-ttl") != nil {
		t.Errorf("%+v, %v", q, err)
	}
	if _, err := o.Queue(t.Context(), "none"); !errors.Is(err, sources.ErrGone) || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
	bare, err := New(Config{URLs: []string{"amqp://h"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bare.Overview(t.Context()); err == nil || !strings.Contains(err.Error(), "Config.Management") {
		t.Errorf("without management: %v", err)
	}
}

// TestTry: of one host, in the end of a connection that answers nothing, and of a Source that is closed.
func TestTry(t *testing.T) {
	t.Parallel()
	b := newStub(t)
	s := b.source()
	hosts := s.Hosts()
	if !slices.Equal(hosts, []string{b.at.Addr().String()}) {
		t.Fatalf("hosts: %q", hosts)
	}
	if _, err := s.Try(t.Context(), hosts[0]); err != nil {
		t.Error(err)
	}
	if _, err := s.Try(t.Context(), "elsewhere:5672"); err == nil || !strings.Contains(err.Error(), "elsewhere:5672") {
		t.Errorf("another host: %v", err)
	}
	defer b.holding("open")()
	ctx, cancel := context.WithCancel(t.Context())
	tried := make(chan error, 1)
	go func() { _, err := s.Try(ctx, hosts[0]); tried <- err }()
	waittest.Until(t, "a channel is asked for again", func() bool { return b.count("open") == 2 })
	cancel()
	if err := <-tried; !errors.Is(err, context.Canceled) {
		t.Errorf("no answer: %v", err)
	}
	_ = s.Close()
	if _, err := s.Try(t.Context(), hosts[0]); !errors.Is(err, sources.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// TestTryOfServers: the answer names the broker.
func TestTryOfServers(t *testing.T) {
	t.Parallel()
	everywhere(t, []kind{{"", nil}}, func(t *testing.T, b *bench, _ kind) {
		s := b.source(b.managed)
		said, err := s.Try(within30(t), s.Hosts()[0])
		if err != nil || !strings.HasPrefix(said, "RabbitMQ ") {
			t.Fatalf("%q, %v", said, err)
		}
		o, err := s.Overview(within30(t))
		if err != nil || "RabbitMQ "+o.Version != said {
			t.Errorf("%+v, %v, want %s", o, err, said)
		}
	})
}
