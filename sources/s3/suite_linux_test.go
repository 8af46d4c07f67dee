package s3

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
	"github.com/rebalancer-go/rebalancer/sources/pickup"
	"github.com/rebalancer-go/rebalancer/sources/sourcetest"
)

var leftovers = testserver.Leftovers()

func TestSuite(t *testing.T) {
	t.Parallel()
	server := testserver.StartVersityGW(t)
	for what, change := range map[string]func(*Config){
		"delete":        func(*Config) {},
		"move":          func(c *Config) { c.OnSuccess = pickup.MoveTo("done/{2006-01-02}") },
		"move away":     func(c *Config) { c.OnSuccess = pickup.MoveTo("/archive") },
		"other bucket":  func(c *Config) { c.OnSuccess = pickup.MoveTo("s3://" + c.Bucket + "-archive") },
		"subtree":       func(c *Config) { c.Subtree, c.Base = true, "base/of/it/" },
		"by time":       func(c *Config) { c.Order, c.OnFailure = pickup.ByTime, pickup.Action{} }, // and no dead letters
		"with donefile": func(c *Config) { c.DoneFile = "*.done" },
		"checked":       func(c *Config) { c.Deletion = DeleteChecked },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			sourcetest.Run(t, sourcetest.Harness{New: func(tb testing.TB) *sourcetest.Fixture { return fixture(tb, server, change) }})
		})
	}
}

// gateway is a client of a server.
func gateway(tb testing.TB, s *testserver.VersityGW) *s3.Client {
	tb.Helper()
	return dial(tb, s.Endpoint(), s.Access, s.Secret)
}

var buckets atomic.Int64

// bucket makes an empty one.
func bucket(tb testing.TB, c *s3.Client) string {
	tb.Helper()
	name := fmt.Sprintf("bucket-%d", buckets.Add(1))
	makeBucket(tb, c, name)
	return name
}

func makeBucket(tb testing.TB, c *s3.Client, name string) {
	tb.Helper()
	if _, err := c.CreateBucket(tb.Context(), &s3.CreateBucketInput{Bucket: &name}); err != nil {
		tb.Fatal(err)
	}
}

func put(tb testing.TB, c *s3.Client, bucket, key, body string) {
	tb.Helper()
	_, err := c.PutObject(context.Background(), &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: strings.NewReader(body)})
	if err != nil {
		tb.Fatal(err)
	}
}

// all are the keys in a bucket that begin with a prefix.
func all(tb testing.TB, c *s3.Client, bucket, prefix string) []string {
	tb.Helper()
	var keys []string
	p := s3.NewListObjectsV2Paginator(c, &s3.ListObjectsV2Input{Bucket: &bucket, Prefix: &prefix})
	for p.HasMorePages() {
		out, err := p.NextPage(context.Background())
		if err != nil {
			tb.Fatal(err)
		}
		for _, o := range out.Contents {
			keys = append(keys, *o.Key)
		}
	}
	return keys
}

func get(tb testing.TB, c *s3.Client, bucket, key string) string {
	tb.Helper()
	out, err := c.GetObject(context.Background(), &s3.GetObjectInput{Bucket: &bucket, Key: &key})
	if err != nil {
		tb.Fatal(err)
	}
	defer out.Body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(out.Body); err != nil {
		tb.Fatal(err)
	}
	return b.String()
}

func fixture(tb testing.TB, server *testserver.VersityGW, change func(*Config)) *sourcetest.Fixture {
	c := gateway(tb, server)
	cfg := quick(c)
	cfg.Bucket = bucket(tb, c)
	change(&cfg)
	if strings.HasPrefix(cfg.OnSuccess.Folder(), scheme) {
		makeBucket(tb, c, cfg.Bucket+"-archive")
	}
	s := newSource(tb, cfg)
	f := &sourcetest.Fixture{
		Source:    s,
		Resources: []string{"in", "eu/orders", " spaces + 100% & \"é\"", "-rf"},
		Missing:   "missing",
		Same:      [][]string{{"in", "in/"}, {".", "./"}, {"eu/orders/", "eu/orders"}},
		Wrong:     []string{"/in", "..", "../in", "in/../eu", "a\x00b", "/", "eu//orders", "./in", "in//", "\xff"},
		Spellings: map[string]string{"in/": "in", ".": ".", "./": ".", " a ": " a "},
		MaxBody:   1 << 20,
	}
	f.Send = func(resource, key string, body []byte) error {
		_, err := c.PutObject(context.Background(), &s3.PutObjectInput{Bucket: &cfg.Bucket, Key: aws.String(s.prefix(resource) + key), Body: bytes.NewReader(body)})
		if err == nil && cfg.DoneFile != "" {
			_, err = c.PutObject(context.Background(), &s3.PutObjectInput{Bucket: &cfg.Bucket, Key: aws.String(s.prefix(resource) + key + ".done")})
		}
		return err
	}
	f.Left = func(resource string) (n int) {
		for _, key := range all(tb, c, cfg.Bucket, s.prefix(resource)) {
			if name := strings.TrimPrefix(key, s.prefix(resource)); !strings.Contains(name, "/") && !strings.HasSuffix(name, ".done") {
				n++
			}
		}
		return n
	}
	f.Rejected = func(resource string) []string {
		var bodies []string
		for _, key := range all(tb, c, cfg.Bucket, s.prefix(resource)+"failed/") {
			if strings.HasSuffix(key, ".reason.txt") {
				continue
			}
			if reason := get(tb, c, cfg.Bucket, key+".reason.txt"); !strings.Contains(reason, "the handler said no") {
				tb.Errorf("reason beside %q: %q", key, reason)
			}
			bodies = append(bodies, get(tb, c, cfg.Bucket, key))
		}
		return bodies
	}
	return f
}
