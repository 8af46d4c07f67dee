package main

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/sources/rabbitmq"
)

func parsed(t *testing.T, raw string) *url.URL {
	t.Helper()
	u, err := parseURL("--source", raw)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestRabbitMQURL(t *testing.T) {
	t.Parallel()
	u := parsed(t, "amqp://u:secret@h1:1,h2:2/v%2F1?heartbeat=2&prefetch=7&delivery_limit=9&dead_letter_exchange=x&management=http://m:3&auth_mechanism=plain")
	c, err := rabbitmqConfig(u, true)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(c.URLs, " "), "amqp://u:secret@h1:1/v%2F1?auth_mechanism=plain amqp://u:secret@h2:2/v%2F1?auth_mechanism=plain"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if c.Heartbeat != 2*time.Second || c.Prefetch != 7 || c.DeliveryLimit != 9 || c.DeadLetter.Exchange != "x" || len(c.Management) != 1 || c.Management[0] != "http://m:3" {
		t.Errorf("%+v", c)
	}
	if _, err := rabbitmq.New(c); err != nil {
		t.Error(err)
	}
	for raw, want := range map[string]string{"amqp://h1,h2/v": "http://h1:15672 http://h2:15672", "amqps://h": "https://h:15671"} {
		if c, err = rabbitmqConfig(parsed(t, raw), true); err != nil || strings.Join(c.Management, " ") != want {
			t.Errorf("%s: %q, %v", raw, c.Management, err)
		}
	}
	if c, err = rabbitmqConfig(parsed(t, "amqp://h?heartbeat=1m"), false); err != nil || c.Management != nil || c.Heartbeat != time.Minute {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestRabbitMQUsage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	none := filepath.Join(w.dir, "none.pem")
	junk := filepath.Join(w.dir, "junk.pem")
	if err := os.WriteFile(junk, []byte("junk"), 0o600); err != nil {
		t.Fatal(err)
	}
	consume := func(source string, flags ...string) []string {
		return append(append([]string{"consume", "g", "--source", source}, flags...), "--", "true")
	}
	partitions := func(args ...string) []string { return append([]string{"rabbitmq", "partitions"}, args...) }
	for _, c := range []struct {
		args []string
		want string
	}{
		{consume("amqp://u:secret@h?heartbeat=x", "--resource", "q"), "heartbeat"},
		{consume("amqp://u:secret@h?nonsense=1", "--resource", "q"), "nonsense"},
		{consume("amqp://h?heartbeat=secret&prefetch=secret&delivery_limit=secret", "--resource", "q"), "delivery_limit: it must be a number"},
		{partitions("show", "x", "--source", "http:u:secret@h?password=secret"), "it must be amqp://"},
		{consume("amqp://u:secret@h/a/b", "--resource", "q"), "vhost"},
		{consume("amqp://u:secret@h?heartbeat=90", "--resource", "q"), "Heartbeat"},
		{consume("amqp://u:secret@h", "--resource", "q", "--on-success", "move:x"), "use delete"},
		{consume("amqp://u:secret@h?dead_letter_exchange=x", "--resource", "q"), "--on-failure move:KEY"},
		{consume("amqp://u:secret@h", "--discover", "x", "--registered"), "--discover excludes"},
		{partitions(), `no command "rabbitmq"`},
		{partitions("create", "x"), "arguments are missing"},
		{partitions("create", "x", "2"), "--source is missing"},
		{partitions("grow", "x", "no", "--source", "amqp://u:secret@h"), "no number"},
		{partitions("shrink", "x", "0", "--source", "amqp://u:secret@h"), "at least 1"},
		{partitions("create", "x", "2", "--source", "amqp://u:secret@h", "--type", "stream"), "stream"},
		{partitions("show", "x", "--source", "file:///u"), "must be amqp://"},
		{partitions("show", "x", "--source", "amqp://u:secret@h", "-o", "xml"), "text or json"},
	} {
		if r := w.want(codeUsage, "", c.want, c.args...); strings.Contains(r.err, "secret") {
			t.Errorf("%q shows a password: %s", c.args, r.err)
		}
	}
	for _, file := range []string{none, junk} {
		w.want(codeFailed, "", file, "consume", "g", "--resource", "q", "--source", "amqps://u:secret@h?cacertfile="+file, "--", "true")
		w.want(codeFailed, "", file, "consume", "g", "--resource", "q", "--source", "amqps://u:secret@h?certfile="+file+"&keyfile="+file, "--", "true")
	}
}
