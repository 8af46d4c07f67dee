package sqs

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rebalancer-go/rebalancer/sources/sourcetest"
	"github.com/rebalancer-go/rebalancer/sources/sqs/sqstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, leftovers...) }

func TestSuite(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(*Config){
		"dead-letter queue": func(c *Config) { c.DeadLetter = "*-failed" },
		"none":              func(*Config) {},
	} {
		for _, suffix := range []string{"", fifoSuffix} {
			t.Run(what+suffix, func(t *testing.T) {
				t.Parallel()
				sourcetest.Run(t, sourcetest.Harness{New: func(tb testing.TB) *sourcetest.Fixture { return fixture(tb, suffix, change) }})
			})
		}
	}
}

// quick is a configuration for tests in real time.
func quick(c Client) Config {
	return Config{Client: c, Account: sqstest.Account, Region: sqstest.Region, Wait: time.Second, Linger: 20 * time.Millisecond}
}

func fixture(tb testing.TB, suffix string, change func(*Config)) *sourcetest.Fixture {
	server := sqstest.New()
	cfg := quick(server)
	change(&cfg)
	s := newSource(tb, cfg)
	f := fixtureOf(s, place{sqstest.Account, sqstest.Region}, "", suffix)
	for _, name := range f.Resources {
		server.Create(name, nil)
		server.Create(strings.TrimSuffix(name, fifoSuffix)+"-failed"+suffix, nil)
	}
	f.Send = func(resource, key string, body []byte) error {
		if suffix == "" {
			key = ""
		}
		send(server, resource, key, string(body))
		return nil
	}
	f.Left = func(resource string) int { return len(server.Bodies(resource)) }
	f.Rejected = func(resource string) []string {
		return server.Bodies(strings.TrimSuffix(resource, fifoSuffix) + "-failed" + suffix)
	}
	f.Remove = func(resource string) error { server.Remove(resource); return nil }
	return f
}

// place is where queues are.
type place struct{ account, region string }

func (p place) url(name string) string {
	return "https://sqs." + p.region + ".amazonaws.com/" + p.account + "/" + name
}
func (p place) arn(name string) string {
	return "arn:aws:sqs:" + p.region + ":" + p.account + ":" + name
}

// fixtureOf is what does not depend on the server. Names begin with prefix.
func fixtureOf(s *Source, p place, prefix, suffix string) *sourcetest.Fixture {
	orders := prefix + "orders" + suffix
	other := "999999999999/" + orders
	return &sourcetest.Fixture{
		Source:    s,
		Resources: []string{orders, prefix + "a" + suffix, prefix + "under_score-AND" + suffix, prefix + "Orders" + suffix},
		Missing:   "missing" + suffix,
		Same: [][]string{
			{other, "arn:aws:sqs:" + p.region + ":" + strings.Replace(other, "/", ":", 1)},
			{p.url(orders), p.arn(orders)},
		},
		Wrong: []string{
			"a b", "a/b", "1/orders", "orders.fifo.fifo", ".fifo", "a.b", strings.Repeat("x", 81), "arn:aws:sqs:orders",
			"arn:aws:sns:" + p.region + ":" + p.account + ":orders", "https://example.com/orders", "ftp://sqs.eu-central-1.amazonaws.com/123456789012/orders",
			"https://sqs.ap-south-1.amazonaws.com/123456789012/orders", "arn:aws:sqs:ap-south-1:123456789012:orders", p.url(orders) + "?x=1",
		},
		Spellings: map[string]string{
			p.url(orders): orders, p.arn(orders): orders, p.account + "/" + orders: orders,
			"https://" + p.region + ".queue.amazonaws.com/" + p.account + "/" + orders: orders,
			"http://localhost:4566/" + p.account + "/" + orders:                        orders,
			"https://sqs-fips." + p.region + ".amazonaws.com/" + other:                 other,
			"https://vpce-1.sqs." + p.region + ".vpce.amazonaws.com/" + other:          other,
			other: other,
		},
		Text: true, MaxBody: 200 << 10, BurnsOnClose: true,
	}
}

func newSource(tb testing.TB, c Config) *Source {
	tb.Helper()
	s, err := New(c)
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
