package s3

import (
	"context"
	"flag"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"go.uber.org/goleak"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources"
	"github.com/rebalancer-go/rebalancer/sources/pickup"
)

var soak = flag.Bool("soak", false, "run the long versions")

func TestMain(m *testing.M) {
	flag.Parse()
	goleak.VerifyTestMain(m, leftovers...)
}

// patience is long, as a listing that took a while on a busy machine is not repeated soon.
const patience = 2 * time.Minute

// dial makes a client of the SDK that puts the bucket into the path.
func dial(tb testing.TB, endpoint, access, secret string) *s3.Client {
	tb.Helper()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	tb.Cleanup(transport.CloseIdleConnections)
	return s3.New(s3.Options{
		Region: "us-east-1", BaseEndpoint: &endpoint, UsePathStyle: true, HTTPClient: &http.Client{Transport: transport},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: access, SecretAccessKey: secret}, nil
		}),
	})
}

// client is one of a stub, which does not try again by itself.
func (s *stub) client() *s3.Client {
	c := dial(s.t, s.url, "id", "hush")
	return s3.New(c.Options(), func(o *s3.Options) { o.Retryer = aws.NopRetryer{} })
}

// quick is a configuration for tests in real time.
func quick(c Client) Config {
	return Config{
		Client: c, Bucket: "bkt",
		Policy: pickup.Policy{OnSuccess: pickup.Delete(), OnFailure: pickup.MoveTo("failed"), Interval: 5 * time.Millisecond, IdleInterval: 5 * time.Millisecond},
	}
}

func newSource(tb testing.TB, cfg Config) *Source {
	tb.Helper()
	s, err := New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

func claim(resource string) *rebalancer.Claim {
	return &rebalancer.Claim{Group: "g", Node: "n", Resource: resource, Fence: 1, TTL: time.Minute}
}

func open(tb testing.TB, s *Source, resource string) sources.Reader {
	tb.Helper()
	r, err := s.Open(tb.Context(), claim(resource))
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func keysOf(ms []*rebalancer.Message) []string {
	var keys []string
	for _, m := range ms {
		keys = append(keys, m.Key)
	}
	return keys
}

// apiError is an answer of a store.
type apiError struct{ code string }

func (e *apiError) Error() string                 { return e.code }
func (e *apiError) ErrorCode() string             { return e.code }
func (e *apiError) ErrorMessage() string          { return e.code }
func (e *apiError) ErrorFault() smithy.ErrorFault { return smithy.FaultUnknown }
