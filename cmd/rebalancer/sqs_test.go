package main

import (
	"net/http/httptest"
	"strings"
	"testing"

	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/rebalancer-go/rebalancer/sources/sqs/sqstest"
)

// newSQS starts a server and makes the environment of AWS point to it.
func newSQS(t *testing.T) *sqstest.Server {
	t.Helper()
	server := sqstest.New()
	server.Intercept(func(_ string, in any) error {
		if in, ok := in.(*awssqs.ReceiveMessageInput); ok {
			in.WaitTimeSeconds = min(in.WaitTimeSeconds, 1) // what ends does not wait for it
		}
		return nil
	})
	front := httptest.NewServer(server.Handler())
	t.Cleanup(front.Close)
	for k, v := range map[string]string{
		"AWS_ENDPOINT_URL_SQS": front.URL, "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "key", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_PROFILE": "",
	} {
		t.Setenv(k, v)
	}
	return server
}

func TestConsumeSQS(t *testing.T) {
	server := newSQS(t)
	w := newWorld(t)
	for _, q := range []string{"orders.fifo", "orders-dead.fifo", "mail", "mail-dead"} {
		server.Create(q, nil)
	}
	for _, body := range []string{"1", "2", "bad", "3"} {
		send(t, server, "orders.fifo", "customer 7", body)
	}
	send(t, server, "mail", "", "letter")
	source := "sqs://" + sqstest.Account + "@" + sqstest.Region
	r := w.want(0, "", "", "consume", "g", "--source", source, "--resource", sqstest.ARN("orders.fifo"), "--resource", "mail", "--count", "4",
		"--on-failure", "move:*-dead", "--ttl", "5s", "--", "sh", "-c", `read -r line; [ "$line" = bad ] && exit 65; echo "$RB_RESOURCE $RB_KEY $line" >&2`)
	for _, line := range []string{"orders.fifo customer 7 1", "orders.fifo customer 7 2", "orders.fifo customer 7 3", "mail  letter"} {
		if !strings.Contains(r.err, line) {
			t.Errorf("%q was not worked:\n%s", line, r.err)
		}
	}
	if dead := server.Bodies("orders-dead.fifo"); len(dead) != 1 || dead[0] != "bad" {
		t.Errorf("dead letters %q", dead)
	}
	t.Setenv("AWS_REGION", sqstest.Region) // is enough, with names
	send(t, server, "mail", "", "second")
	w.want(0, `"body":"second"`, "", "consume", "h", "--source", "sqs://", "--resource", "mail", "--count", "1", "--on-success", "delete", "--ttl", "5s")
}

func TestSQSRefused(t *testing.T) {
	newSQS(t)
	w := newWorld(t)
	for url, want := range map[string]string{
		"sqs://":                              "no region",
		"sqs://eu-central-1/queue":            "queues are given by --resource",
		"sqs://me:secret@eu-central-1":        "credentials do not belong",
		"sqs://me@eu-central-1":               "12 digits",
		"sqs://eu-central-1?visibility=1s":    "Visibility",
		"sqs://eu-central-1?wait=1h&x=secret": "parameter x",
		"sqs://eu-central-1?payloads=no":      "delete or keep",
		"sqs://eu-central-1?redrive=perhaps":  "parameter redrive",
		"sqs://?x=secret":                     "parameter x",
		"sqs://eu-central-1/q?x=secret":       "--source sqs://eu-central-1: the form is",
		"sqs://eu-central-1/secret#secret":    "queues are given by --resource",
		"sqs:secret":                          "the form is",
		"sqs://eu-central-1:secret":           "no URL",
		"sqs://eu-central-1?wait=secret":      "parameter wait",
		"sqs://eu-central-1?linger=secret":    "parameter linger",
		"sqs://eu-central-1?redrive=secret":   "parameter redrive",
		"sqs://eu-central-1?payloads=secret":  "parameter payloads",
		"sqs://?wait=1s#secret":               "the form is",
	} {
		r := w.want(2, "", want, "consume", "g", "--source", url, "--resource", "q", "--on-success", "delete")
		if strings.Contains(r.err, "secret") {
			t.Errorf("%s: the error shows the secret: %s", url, r.err)
		}
	}
	w.want(2, "", "cannot be moved", "consume", "g", "--source", "sqs://eu-central-1", "--resource", "q", "--on-success", "move:done")
	w.want(2, "", "cannot be moved", "consume", "g", "--source", "sqs://eu-central-1?payloads=keep", "--resource", "q", "--on-success", "move:done")
	w.want(2, "", "one queue", "consume", "g", "--source", "sqs://"+sqstest.Account+"@eu-central-1", "--resource", "q", "--resource", sqstest.URL("q"), "--on-success", "delete")
}

func send(t *testing.T, to *sqstest.Server, queue, group, body string) {
	t.Helper()
	if _, err := to.Send(queue, group, body); err != nil {
		t.Fatal(err)
	}
}
