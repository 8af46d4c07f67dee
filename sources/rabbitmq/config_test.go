package rabbitmq

import (
	"crypto/tls"
	"fmt"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources"
)

func TestConfigTellsEverythingAtOnce(t *testing.T) {
	t.Parallel()
	_, err := New(Config{
		Heartbeat: 1500 * time.Millisecond, DialTimeout: -1, Prefetch: MaxPrefetch + 1, DeliveryLimit: -2, Name: "\xff",
		DeadLetter: DeadLetter{Exchange: strings.Repeat("x", 256), RoutingKey: "\xff"},
	})
	for _, field := range []string{"URLs", "Heartbeat", "DialTimeout", "Prefetch", "DeliveryLimit", "Name", "DeadLetter.Exchange", "DeadLetter.RoutingKey"} {
		if err == nil || !strings.Contains(err.Error(), "Config."+field+" ") {
			t.Errorf("nothing about %s in: %v", field, err)
		}
	}
}

func TestURLs(t *testing.T) {
	t.Parallel()
	const secret = "s3cret"
	for _, bad := range [][]string{
		{"amqp://u:" + secret + "@"}, {"http://u:" + secret + "@h/v"}, {"amqp://u:" + secret + "@h:0/v"}, {"amqp://u:" + secret + "@h:99999/v"},
		{"amqp://u:" + secret + "@h/a/b"}, {"amqp://u:" + secret + "%zz@h/v"}, {"amqp://u:" + secret + "@h/v#x"}, {"amqp://u:" + secret + " @h"},
		{"amqp://u:" + secret + "@h/v?heartbeat=" + secret}, {"amqp://u:" + secret + "@h/v?auth_mechanism=magic"},
		{"amqp://u:" + secret + "@h/" + strings.Repeat("x", 256)}, {"u:" + secret + "@h"}, {"amqp://u:" + secret + "@h:5:" + secret},
		{"amqp://u:" + secret + "@h/v", "amqp://u:" + secret + "@h/w"}, {"amqp://u:" + secret + "@h/v", "amqp://u:x@h/v"}, {"amqp://h/v", "amqps://h/v"},
	} {
		_, err := New(Config{URLs: bad})
		if err == nil || !strings.Contains(err.Error(), "Config.URLs[") {
			t.Errorf("%q: %v", bad, err)
		} else if strings.Contains(err.Error(), secret) {
			t.Errorf("%q: the error holds the secret: %v", bad, err)
		}
	}
	if _, err := New(Config{URLs: []string{"amqp://h"}, TLS: &tls.Config{}}); err == nil {
		t.Error("TLS settings that are not used")
	}
	for raw, want := range map[string]string{
		"amqp://h":                               "h:5672 / false",
		"amqps://h":                              "h:5671 / true",
		"amqp://u:p@h:1/%2Fa%2Fb":                "h:1 /a/b false",
		"amqp://[::1]/v?auth_mechanism=external": "[::1]:5672 v false",
	} {
		s, err := New(Config{URLs: []string{raw, raw}})
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		if got := fmt.Sprintln(s.hosts[0].addr, s.hosts[0].vhost, s.hosts[0].tls); got != want+"\n" {
			t.Errorf("%s: %s, want %s", raw, got, want)
		}
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	s, err := New(Config{URLs: []string{"amqp://h"}})
	if err != nil {
		t.Fatal(err)
	}
	if s.HeldFor() != 3*DefaultHeartbeat || s.DialTimeout != DefaultDialTimeout || s.DeadLetters() {
		t.Errorf("%+v", s.Config)
	}
	var _ sources.Holder = s
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close again: %v", err)
	}
	if _, err := s.Open(t.Context(), &rebalancer.Claim{Resource: "q"}); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("Open after Close: %v", err)
	}
	if _, err := s.Lag(t.Context(), "q"); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("Lag after Close: %v", err)
	}
}

// TestWait: the wait before another try is random, below a bound that doubles from half a second to half a minute.
func TestWait(t *testing.T) {
	t.Parallel()
	for fails, bound := range map[int]time.Duration{0: minWait, 1: 2 * minWait, 5: 32 * minWait, 6: maxWait, 60: maxWait, 600: maxWait} {
		var most time.Duration
		for range 2000 {
			most = max(most, wait(fails))
		}
		if most > bound || most < bound*9/10 {
			t.Errorf("after %d failures up to %v, want %v", fails, most, bound)
		}
	}
}

func TestHeadersAsText(t *testing.T) {
	t.Parallel()
	got := texts(amqp.Table{
		"s": "text", "b": []byte("bytes"), "i": int64(-7), "j": int32(7), "t": time.Unix(0, 0), "n": nil, "f": 1.5, "y": true,
		"d": amqp.Decimal{Scale: 2, Value: 123}, "l": []any{"a", int64(1)},
	})
	want := map[string]string{"s": "text", "b": "bytes", "i": "-7", "j": "7", "t": "1970-01-01T00:00:00Z", "n": "", "f": "1.5", "y": "true", "d": "123e-2", "l": "[a 1]"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if texts(nil) != nil {
		t.Error("headers where there are none")
	}
}

func TestCutKeepsCharactersWhole(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "", 1: "", 2: "ü", 3: "ü", 4: "üö", 9: "üö"} {
		if got := cut("üö", n); got != want {
			t.Errorf("cut to %d: %q, want %q", n, got, want)
		}
	}
}

// TestMapping: what of a delivery becomes what of a message.
func TestMapping(t *testing.T) {
	t.Parallel()
	stamp := time.Unix(1700000000, 0)
	d := amqp.Delivery{Body: []byte("body"), MessageId: "id", RoutingKey: "key", Timestamp: stamp, Headers: amqp.Table{"a": "b", headerCount: int64(3)}, Redelivered: true, DeliveryTag: 9}
	e := newEntry(&d, &rebalancer.Claim{Resource: "q", Fence: 7}, true)
	m := e.m
	native, ok := m.Native.(*amqp.Delivery)
	if !ok || native.DeliveryTag != 9 || native.Acknowledger != nil {
		t.Errorf("native: %+v", m.Native)
	}
	if m.Resource != "q" || m.Fence != 7 || m.ID != "id" || m.Key != "key" || string(m.Body) != "body" || m.Size != 4 || m.Attempt != 4 || !m.Published.Equal(stamp) || m.Headers["a"] != "b" {
		t.Errorf("message: %+v", m)
	}
	if n := newEntry(&d, &rebalancer.Claim{}, false).m.Attempt; n != 1 {
		t.Errorf("attempt %d of a queue that does not count", n)
	}
	d.Redelivered = false
	if n := newEntry(&d, &rebalancer.Claim{}, true).m.Attempt; n != 1 {
		t.Errorf("attempt %d of a message that was never delivered before", n)
	}
}
