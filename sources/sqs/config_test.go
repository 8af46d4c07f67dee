package sqs

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/rebalancer-go/rebalancer/sources/sqs/sqstest"
)

func TestDefaults(t *testing.T) {
	t.Parallel()
	for visibility, wait := range map[time.Duration]time.Duration{0: 20 * time.Second, time.Hour: 20 * time.Second, 10 * time.Second: 6 * time.Second, 3 * time.Second: 2 * time.Second} {
		c := Config{Client: sqstest.New(), Visibility: visibility}
		if err := c.complete(); err != nil || c.Wait != wait || c.Linger != time.Second || c.GroupAhead != 1 || c.Logger == nil {
			t.Errorf("visibility %v: %+v, %v", visibility, c, err)
		}
	}
}

// TestViolations: all at once, each with its field.
func TestViolations(t *testing.T) {
	t.Parallel()
	_, err := New(Config{Account: "1", Visibility: 2 * time.Hour, Wait: time.Minute, Linger: time.Hour, GroupAhead: 11, Redrive: true, DeadLetter: "a b"})
	for _, want := range []string{"Client is nil", "Account is", "Visibility is", "Wait is", "Linger is", "GroupAhead is", "Redrive and DeadLetter", "DeadLetter is"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New: %v; want %q", err, want)
		}
	}
	for _, c := range []Config{{Visibility: 1500 * time.Millisecond}, {Visibility: 3500 * time.Millisecond}, {Wait: 500 * time.Millisecond}, {Visibility: 10 * time.Second, Wait: 8 * time.Second},
		{DeadLetter: "*"}, {DeadLetter: "*.fifo"}, {DeadLetter: "*a*"}, {GroupAhead: -1}} {
		c.Client = sqstest.New()
		if _, err := New(c); err == nil {
			t.Errorf("New(%+v) was accepted", c)
		}
	}
}

// TestNamesWithoutAccount: a URL or ARN cannot be told from a name then, and is refused with what to do; two nodes that spell one queue
// differently would else have it as two resources.
func TestNamesWithoutAccount(t *testing.T) {
	t.Parallel()
	s := newSource(t, Config{Client: sqstest.New()})
	if got, err := s.Names([]string{"a", "b.fifo"}); err != nil || !slices.Equal(got, []string{"a", "b.fifo"}) {
		t.Errorf("Names: %q, %v", got, err)
	}
	for name, want := range map[string]string{
		sqstest.ARN("a"): "Config.Region", sqstest.URL("a"): "Config.Region", sqstest.Account + "/a": "Config.Account", "http://localhost:1/" + sqstest.Account + "/a": "Config.Account",
	} {
		if _, err := s.Names([]string{name}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Names(%q): %v; want that it says %q", name, err, want)
		}
	}
}

func TestDeadLetterNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ pattern, queue, want string }{
		{"dead", "q", "dead"}, {"dead", "q.fifo", "dead.fifo"}, {"dead.fifo", "q.fifo", "dead.fifo"}, {"*-dead", "q", "q-dead"}, {"*-dead", "q.fifo", "q-dead.fifo"}, {"x-*", "q", "x-q"},
	} {
		cfg := Config{DeadLetter: c.pattern}
		if got := cfg.deadLetterOf(c.queue); got != c.want || !cfg.isDeadLetter(got) || cfg.isDeadLetter(c.queue) {
			t.Errorf("dead-letter queue %q of %q is %q, want %q", c.pattern, c.queue, got, c.want)
		}
	}
}

// TestDeadLetterMustExist: that is no missing resource, but a missing set-up, and found before the first message is given up.
func TestDeadLetterMustExist(t *testing.T) {
	onStage(t, "", func(c *Config) { c.DeadLetter = "nowhere" }, func(t *testing.T, s *stage) {
		if _, err := s.source.lookUp(t.Context(), s.queue); err == nil || !strings.Contains(err.Error(), `"nowhere" must exist`) {
			t.Errorf("Open: %v", err)
		}
	})
	onStageAgain(t, "its own", "", func(c *Config) { c.DeadLetter = "q" }, func(t *testing.T, s *stage) {
		if _, err := s.source.lookUp(t.Context(), s.queue); err == nil || !strings.Contains(err.Error(), "its own dead-letter queue") {
			t.Errorf("Open: %v", err)
		}
	})
}

// TestMapping is the table of the package's comment.
func TestMapping(t *testing.T) {
	for _, suffix := range []string{"", fifoSuffix} {
		t.Run(suffix, func(t *testing.T) {
			onStage(t, suffix, nil, func(t *testing.T, s *stage) {
				in := &sqs.SendMessageInput{
					QueueUrl: aws.String(sqstest.URL(s.queue)), MessageBody: aws.String("body"), MessageGroupId: aws.String("g"),
					MessageAttributes: map[string]types.MessageAttributeValue{
						"traceparent": {DataType: aws.String("String"), StringValue: aws.String("00-1-2-01")},
						"n":           {DataType: aws.String("Number"), StringValue: aws.String("7")},
						"bin":         {DataType: aws.String("Binary"), BinaryValue: []byte{0}},
					},
				}
				if suffix != "" {
					in.MessageDeduplicationId = aws.String("d")
				}
				sent := time.Now().Truncate(time.Millisecond)
				out, err := s.SendMessage(t.Context(), in)
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				r := s.open()
				m := s.one(r)
				key := ""
				if suffix != "" {
					key = "g"
				}
				if m.Resource != s.queue || m.ID != *out.MessageId || m.Key != key || string(m.Body) != "body" || m.Size != 4 || m.Attempt != 1 || !m.Published.Equal(sent) || m.Fence != s.fence {
					t.Errorf("message %+v", m)
				}
				if fmt.Sprint(m.Headers) != "map[n:7 traceparent:00-1-2-01]" {
					t.Errorf("headers %v", m.Headers)
				}
				if n := m.Native.(*types.Message); string(n.MessageAttributes["bin"].BinaryValue) != "\x00" {
					t.Errorf("native %+v", n)
				}
			})
		})
	}
}
