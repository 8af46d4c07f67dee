package main

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/internal/programtest"
	"github.com/rebalancer-go/rebalancer/sources/sqs/sqstest"
)

// TestDiscoverDirectories: nothing matches at first, which is said and no failure; what comes is worked.
func TestDiscoverDirectories(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	args := []string{"consume", "g", "--source", "file://" + w.dir, "--discover", "new-*", "--discover-every", "200ms", "--ttl", "5s"}
	w.want(codeDone, "", "no resource of the source matches", append(args, "--exit-idle", "3s", "--", "true")...)
	ended := make(chan result, 1)
	go func() {
		ended <- w.run(t.Context(), append(args, "--count", "2", "--", "sh", "-c", `echo "$RB_RESOURCE $RB_KEY"`)...)
	}()
	for _, name := range []string{"new-1", "new-2", "old"} {
		if err := os.Mkdir(filepath.Join(w.dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(w.dir, name, "a"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := <-ended
	if r.code != codeDone || !strings.Contains(r.out, "new-1 a") || !strings.Contains(r.out, "new-2 a") || strings.Contains(r.out, "old") {
		t.Errorf("%d\n%s\n%s", r.code, r.out, r.err)
	}
}

// TestDiscoverQueues finds queues of SQS by name and by tag.
func TestDiscoverQueues(t *testing.T) {
	server := newSQS(t)
	t.Setenv("AWS_REGION", sqstest.Region)
	w := newWorld(t)
	for _, q := range []string{"orders-1", "orders-2", "mail"} {
		server.Create(q, nil)
		send(t, server, q, "", "to "+q)
	}
	args := []string{"--source", "sqs://", "--on-success", "delete", "--ttl", "5s", "--discover-every", "1s"}
	r := w.want(codeDone, `"body":"to orders-1"`, "", append([]string{"consume", "g", "--discover", "orders-*", "--count", "2"}, args...)...)
	if !strings.Contains(r.out, "to orders-2") || strings.Contains(r.out, "to mail") {
		t.Errorf("%s", r.out)
	}
	w.want(codeUsage, "", "tag:KEY=VALUE", append([]string{"consume", "h", "--discover", "tag:x"}, args...)...)
}

// TestBadPatterns are found before the group is joined, whatever the source and without asking it: there is no server at these addresses.
func TestBadPatterns(t *testing.T) {
	newSQS(t)
	w := newWorld(t)
	for _, source := range []string{
		"file://" + w.dir, "amqp://h.invalid", "sqs://eu-central-1", "s3://orders?region=r&endpoint=http://127.0.0.1:1", "ftp://u:p@127.0.0.1:1/d", "sftp://u:p@127.0.0.1:1/d?host_key=SHA256:" + strings.Repeat("A", 43),
	} {
		r := w.want(codeUsage, "", "--discover: ", "consume", "g", "--source", source, "--discover", "in[", "--on-success", "delete")
		if !strings.Contains(r.err, "syntax error in pattern") {
			t.Errorf("%s: %s", source, r.err)
		}
		u, err := url.Parse(source)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range sourceDrivers() {
			if d.scheme != u.Scheme {
				continue
			}
			s, err := d.open(t.Context(), u, sourceOptions{list: true, logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			c := &consumeFlags{discover: "in*", discoverEvery: time.Second}
			if _, err := c.discovery(t.Context(), s, nil); err != nil {
				t.Errorf("%s: a good pattern: %v", source, err)
			}
			if err := s.close(); err != nil {
				t.Error(err)
			}
		}
	}
	for _, pattern := range []string{"../x", "/"} {
		w.want(codeUsage, "", "--discover: ", "consume", "g", "--source", "file://"+w.dir, "--discover", pattern, "--on-success", "delete")
	}
	w.want(codeUsage, "", "--discover-every is 0s", "consume", "g", "--source", "file://"+w.dir, "--discover", "*", "--discover-every", "0s", "--on-success", "delete")
}

// lister lists what it is told to.
type lister struct {
	names []string
	err   error
}

func (l *lister) Discover(context.Context, string) ([]string, error) { return l.names, l.err }

// TestUnknownIsNotNone: that nothing matches is no trouble, and said once; that nobody knows is.
func TestUnknownIsNotNone(t *testing.T) {
	t.Parallel()
	var log programtest.Buffer
	l := &lister{}
	d := &discovery{source: l, pattern: "x*", log: slog.New(slog.NewTextHandler(&log, nil))}
	list := func() { _, _ = d.list(t.Context()) }
	list()
	list()
	if d.trouble() != nil || strings.Count(log.String(), "no resource of the source matches") != 1 {
		t.Errorf("%v, %s", d.trouble(), log.String())
	}
	l.err = errors.New("forbidden")
	list()
	if err := d.trouble(); err == nil || !strings.Contains(err.Error(), "could not be listed: forbidden") {
		t.Errorf("%v", err)
	}
	l.names, l.err = []string{"x"}, nil
	list()
	if d.trouble() != nil || (*discovery)(nil).trouble() != nil {
		t.Error("still in trouble")
	}
}

// TestUnlistedIsAFailure: a consume that ends because nothing came says that it does not know whether there was anything.
func TestUnlistedIsAFailure(t *testing.T) {
	_, endpoint := newS3(t, nil)
	w := newWorld(t)
	w.want(codeFailed, "", "could not be listed", "consume", "g", "--source", "s3://other?region=r&endpoint="+endpoint, "--discover", "*",
		"--exit-idle", "3s", "--ttl", "5s", "--on-success", "delete")
}
