//go:build linux

package testserver

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"
)

// Link is a proxy in front of a server, with faults of the network that the test puts on and takes off. Its methods fail the test when they cannot
// do what they are for. It is for one goroutine.
type Link struct {
	t     testing.TB
	proxy *toxiproxy.Proxy
	cut   bool
}

// Proxy puts a proxy in front of the server at an address of the form host:port, which need not serve yet.
func Proxy(t testing.TB, upstream string) *Link {
	t.Helper()
	quiet := zerolog.New(io.Discard)
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), quiet)
	l := &Link{t: t, proxy: toxiproxy.NewProxy(server, "link", fmt.Sprintf("127.0.0.1:%d", Port(t)), upstream)}
	if err := l.proxy.Start(); err != nil {
		t.Fatalf("testserver: a proxy in front of %s: %v", upstream, err)
	}
	t.Cleanup(func() {
		if !l.cut {
			l.proxy.Stop()
		}
	})
	return l
}

// Addr is where clients connect to.
func (l *Link) Addr() string { return l.proxy.Listen }

// Cut closes all connections and refuses new ones.
func (l *Link) Cut() {
	if !l.cut {
		l.proxy.Stop()
		l.cut = true
	}
}

// Blackhole keeps connections open, and accepts new ones, but carries nothing in either direction: what a firewall does that drops packets.
func (l *Link) Blackhole() {
	l.t.Helper()
	l.both("timeout", map[string]any{"timeout": 0})
}

// Deaf carries what clients send, but none of the answers: every outcome is unknown to them.
func (l *Link) Deaf() {
	l.t.Helper()
	l.toxic("timeout", "downstream", map[string]any{"timeout": 0})
}

// Latency delays each direction by half of a round trip.
func (l *Link) Latency(roundTrip time.Duration) {
	l.t.Helper()
	l.both("latency", map[string]any{"latency": roundTrip.Milliseconds() / 2})
}

// Slow limits each direction to so many KB per second.
func (l *Link) Slow(kbps int) {
	l.t.Helper()
	l.both("bandwidth", map[string]any{"rate": kbps})
}

// Heal takes all faults off. Connections that were in a Blackhole or deaf are closed by that.
func (l *Link) Heal() {
	l.t.Helper()
	l.proxy.Toxics.ResetToxics(l.t.Context())
	if l.cut {
		if err := l.proxy.Start(); err != nil {
			l.t.Fatalf("testserver: the proxy at %s: %v", l.Addr(), err)
		}
		l.cut = false
	}
}

// Leftovers are goroutines that the proxy may leave behind when a connection ends in the middle of a fault, or while it is full; tests that look for leaks
// ignore them.
func Leftovers() []goleak.Option {
	return []goleak.Option{
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*ToxicStub).Run"),
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicLink).read"),
	}
}

func (l *Link) both(kind string, attributes map[string]any) {
	l.t.Helper()
	l.toxic(kind, "upstream", attributes)
	l.toxic(kind, "downstream", attributes)
}

func (l *Link) toxic(kind, stream string, attributes map[string]any) {
	l.t.Helper()
	b, err := json.Marshal(map[string]any{"name": kind + "-" + stream, "type": kind, "stream": stream, "toxicity": 1.0, "attributes": attributes})
	if err == nil {
		_, err = l.proxy.Toxics.AddToxicJson(strings.NewReader(string(b)))
	}
	if err != nil {
		l.t.Fatalf("testserver: %s on the proxy at %s: %v", kind, l.Addr(), err)
	}
}
