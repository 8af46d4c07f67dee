//go:build linux

package rabbitmq

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rebalancer-go/rebalancer/internal/waittest"
	"github.com/rebalancer-go/rebalancer/sources/sourcetest"
)

// TestSuite is the contract on each kind of queue. The start is eager: the suite takes many messages before it settles one.
func TestSuite(t *testing.T) {
	everywhere(t, kinds, func(t *testing.T, b *bench, k kind) {
		sourcetest.Run(t, harness(b, k, true))
	})
}

// TestSuiteWithoutDeadLetters is the contract where there is no place for what is given up.
func TestSuiteWithoutDeadLetters(t *testing.T) {
	everywhere(t, kinds[1:2], func(t *testing.T, b *bench, k kind) {
		sourcetest.Run(t, harness(b, k, false))
	})
}

func harness(b *bench, k kind, deadLetters bool) sourcetest.Harness {
	var checks atomic.Int32
	return sourcetest.Harness{Quiet: 200 * time.Millisecond, New: func(tb testing.TB) *sourcetest.Fixture {
		prefix := fmt.Sprintf("%d ", checks.Add(1))
		f := &sourcetest.Fixture{Missing: prefix + "missing", MaxBody: 1 << 20, BurnsOnClose: k.quorum(), Wrong: []string{strings.Repeat("x", 256), "a\xff"}}
		for _, name := range []string{"a", "b", "c/d", "e ü"} {
			b.declare(prefix+name, k)
			f.Resources = append(f.Resources, prefix+name)
		}
		dead := prefix + "dead"
		f.Source = b.source(func(c *Config) {
			c.EagerStart, c.Prefetch, c.Management = true, 100, []string{b.r.ManagementURL()}
			if deadLetters {
				b.declare(dead, kinds[0])
				c.DeadLetter = Queue(dead)
			}
		})
		tb.Cleanup(func() { _ = f.Source.(*Source).Close() })
		f.Send = func(resource, key string, body []byte) error {
			return b.publish(resource, amqp.Publishing{Body: body, MessageId: resource + key})
		}
		f.Left = func(name string) int { return settled(tb, func() int { return b.total(name) }) }
		var rejected []string
		f.Rejected = func(string) []string {
			for _, d := range b.get(dead) {
				rejected = append(rejected, string(d.Body))
			}
			return rejected
		}
		f.Remove = b.remove
		return f
	}}
}

// settled is a number when it has not changed for a while: acknowledgements take their time, also those that should not be.
func settled(t testing.TB, f func() int) int {
	t.Helper()
	n, since := f(), time.Now()
	waittest.Until(t, "a number that stays", func() bool {
		if now := f(); now != n {
			n, since = now, time.Now()
		}
		return time.Since(since) > 200*time.Millisecond
	})
	return n
}
