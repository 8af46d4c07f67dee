package sqs

import (
	"context"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/rebalancer-go/rebalancer/sources/sqs/sqstest"
)

// other is an account that is not the server's.
const other = "999999999999"

// TestWrongAccount: a node whose Config.Account is not that of its client has other names than the others; it opens nothing, however a queue is spelt.
func TestWrongAccount(t *testing.T) {
	for spelling, want := range map[string]string{
		"q":              "it is in the account " + sqstest.Account + ", and Config.Account is " + other,
		sqstest.ARN("q"): sqstest.Account + " is the client's own account, and Config.Account is " + other,
		sqstest.URL("q"): sqstest.Account + " is the client's own account, and Config.Account is " + other,
	} {
		t.Run(spelling, func(t *testing.T) {
			onStage(t, "", func(c *Config) { c.Account, c.Region = other, sqstest.Region }, func(t *testing.T, s *stage) {
				if _, err := s.source.lookUp(t.Context(), spelling); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("Open: %v; want that it says %q", err, want)
				}
			})
		})
	}
}

// foreign is a client of another account than the server's, to whose queues it has access.
type foreign struct {
	*sqstest.Server
	own error // of asking for a queue of the client's own account
}

func (f *foreign) GetQueueUrl(ctx context.Context, in *sqs.GetQueueUrlInput, o ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error) {
	if in.QueueOwnerAWSAccountId == nil && f.own != nil {
		return nil, f.own
	}
	out, err := f.Server.GetQueueUrl(ctx, in, o...)
	if err == nil && in.QueueOwnerAWSAccountId == nil {
		*out.QueueUrl = strings.Replace(*out.QueueUrl, sqstest.Account, other, 1)
	}
	return out, err
}

// TestOtherAccount: a queue of another account opens, whether the client's account has one of that name or not, or may not say; only where nothing
// was said it is asked again.
func TestOtherAccount(t *testing.T) {
	for what, c := range map[string]struct {
		own  error
		want string
	}{
		"one of that name": {},
		"none":             {own: sqstest.Error(codeNoQueue, "no such queue")},
		"no right to know": {own: sqstest.Error("AccessDenied", "no")},
		"no answer":        {own: errLost, want: "whether it is of the client's own account"},
	} {
		t.Run(what, func(t *testing.T) {
			onStage(t, "", nil, func(t *testing.T, s *stage) {
				source := newSource(t, Config{Client: &foreign{s.Server, c.own}, Account: other, Region: sqstest.Region})
				q, err := source.lookUp(t.Context(), sqstest.ARN("q"))
				if c.want != "" {
					if err == nil || !strings.Contains(err.Error(), c.want) {
						t.Fatalf("Open: %v; want that it says %q", err, c.want)
					}
					return
				}
				if err != nil || q.name != sqstest.Account+"/q" || q.url != sqstest.URL("q") {
					t.Fatalf("Open: %+v, %v", q, err)
				}
			})
		})
	}
}

// TestOwnerIgnored: some servers give their own queue whichever account is asked for.
func TestOwnerIgnored(t *testing.T) {
	onStage(t, "", func(c *Config) { c.Account, c.Region = sqstest.Account, sqstest.Region }, func(t *testing.T, s *stage) {
		s.Intercept(func(_ string, in any) error {
			if in, ok := in.(*sqs.GetQueueUrlInput); ok {
				in.QueueOwnerAWSAccountId = nil
			}
			return nil
		})
		if _, err := s.source.lookUp(t.Context(), other+"/q"); err == nil || !strings.Contains(err.Error(), "in the account "+sqstest.Account) {
			t.Errorf("Open: %v", err)
		}
	})
}
