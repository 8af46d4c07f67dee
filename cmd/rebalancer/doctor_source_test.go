package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/smithy-go"

	"github.com/rebalancer-go/rebalancer/sources/rabbitmq"
	"github.com/rebalancer-go/rebalancer/sources/sqs/sqstest"
)

func TestDoctorOfDirectories(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a", "b")
	delete(w.env, "REBALANCER_STORE")
	source := "file://" + w.dir
	r := w.want(codeDone, "is there; 2 messages waiting", "", "doctor", "--source", source, "--resource", "in", "--try-writes")
	if strings.Contains(r.out, "Store") || !strings.Contains(r.out, "Source\n") || !strings.Contains(r.out, "a file was made and removed") {
		t.Errorf("%s", r.out)
	}
	if left := w.left("in"); len(left) != 2 {
		t.Errorf("left %q", left)
	}
	w.want(codeDone, "Store\n", "", "doctor", "--source", source, "--resource", "in", "--store", "test:")
	w.want(codeFailed, "to do: make the resource", "resource none", "doctor", "--source", source, "--resource", "none", "--resource", "in")
	w.want(codeDone, "1 resource found", "", "doctor", "--source", source, "--discover", "i*")
	w.want(codeDone, "nothing matches", "", "doctor", "--source", source, "--discover", "x*")
	w.want(codeDone, "give --resource", "", "doctor", "--source", source)
	w.want(codeUsage, "", "syntax error in pattern", "doctor", "--source", source, "--discover", "[")
	w.want(codeUsage, "", "one directory", "doctor", "--source", source, "--resource", "in", "--resource", "in/")
	w.want(codeDone, "to do: set stable_for", "", "doctor", "--source", source+"?stable_for=0s", "--resource", "in")
	for i := range mostExamined + 1 {
		if err := os.Mkdir(filepath.Join(w.dir, fmt.Sprint("many", i)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w.want(codeDone, "51; the first 50", "", "doctor", "--source", source, "--discover", "many*")
}

func TestDoctorOfSQS(t *testing.T) {
	server := newSQS(t)
	t.Setenv("AWS_REGION", sqstest.Region)
	w := newWorld(t)
	server.Create("orders", map[string]string{"MessageRetentionPeriod": "3600"})
	send(t, server, "orders", "", "letter")
	r := w.want(codeDone, "1 message waiting", "", "doctor", "--source", "sqs://", "--resource", "orders")
	if !strings.Contains(r.out, "drops messages that waited longer than 1h0m0s") || !strings.Contains(r.out, "no RedrivePolicy") {
		t.Errorf("%s", r.out)
	}
	if len(server.Bodies("orders")) != 1 {
		t.Error("the message is gone")
	}
	w.want(codeFailed, "to do: set a RedrivePolicy", "", "doctor", "--source", "sqs://?redrive=true", "--resource", "orders")
	w.want(codeFailed, "to do: make the resource", "", "doctor", "--source", "sqs://", "--resource", "none")
	server.Intercept(func(call string, _ any) error {
		if call == "DeleteMessage" {
			return &smithy.GenericAPIError{Code: "AccessDenied", Message: "no"}
		}
		return nil
	})
	w.want(codeFailed, "to do: allow sqs:DeleteMessage", "sqs:DeleteMessage is not allowed", "doctor", "--source", "sqs://", "--resource", "orders")
}

func TestDoctorOfS3(t *testing.T) {
	store, endpoint := newS3(t, map[string]string{"base/in/a.csv": "1"})
	w := newWorld(t)
	source := "s3://orders/base?region=us-east-1&endpoint=" + endpoint
	w.want(codeDone, "an object was made and removed", "", "doctor", "--source", source, "--resource", "in", "--try-writes")
	if left := store.left(); len(left) != 1 {
		t.Errorf("left %q", left)
	}
	w.want(codeFailed, "to do: give the user the right", "", "doctor", "--source", "s3://other?region=us-east-1&endpoint="+endpoint, "--resource", "in")
}

// TestDoctorOfQueues holds what a management API says of queues against what a group needs.
func TestDoctorOfQueues(t *testing.T) {
	t.Parallel()
	queues := map[string]string{
		"good":    `{"type":"quorum","delivery_limit":20,"arguments":{"x-dead-letter-exchange":""},"effective_policy_definition":{}}`,
		"drops":   `{"type":"quorum","delivery_limit":20,"consumers":1,"arguments":{"x-message-ttl":1,"x-expires":5},"effective_policy_definition":{"max-length":5,"overflow":"drop-head"}}`,
		"rejects": `{"type":"classic","arguments":{"x-max-length":5},"effective_policy_definition":{"overflow":"reject-publish"}}`,
		"stream":  `{"type":"stream"}`,
		"loses":   `{"type":"quorum","arguments":{"x-delivery-limit":-1}}`,
	}
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/overview" {
			fmt.Fprint(w, `{"rabbitmq_version":"3.10.8"}`)
			return
		}
		name := filepath.Base(r.URL.Path)
		if user, password, _ := r.BasicAuth(); user != "u" || password != "secret" || queues[name] == "" || !strings.Contains(r.URL.EscapedPath(), "/v%2F1/") {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		fmt.Fprint(w, queues[name])
	}))
	defer api.Close()
	source, err := rabbitmq.New(rabbitmq.Config{URLs: []string{"amqp://u:secret@h/v%2F1"}, Management: []string{api.URL}})
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	overview, err := source.Overview(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	look := func(name string) string {
		r := &rabbitDoctor{source: source, overview: overview}
		d := &doctor{about: "source"}
		r.queue(t.Context(), d, "q", name, false)
		var b strings.Builder
		if err := errors.Join(d.text(&b), d.err()); err != nil {
			b.WriteString(err.Error())
		}
		return b.String()
	}
	for name, wants := range map[string][]string{
		"good":    {"a queue of type quorum with 0 consumers"},
		"drops":   {"returned 20 times", "longer than message-ttl", "when the queue is full", "nobody reads it for a while", "read by somebody"},
		"rejects": {"of type classic"},
		"stream":  {"FAILED", "it is a stream"},
		"loses":   {"FAILED", "at its first return"},
		"other":   {"FAILED", "refuses the user"},
	} {
		got := look(name)
		for _, want := range wants {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %q in\n%s", name, want, got)
			}
		}
		if name != "drops" && strings.Contains(got, "WARNING") || strings.Contains(got, "secret") {
			t.Errorf("%s:\n%s", name, got)
		}
	}
}
