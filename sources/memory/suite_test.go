package memory_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources/memory"
	"github.com/rebalancer-go/rebalancer/sources/sourcetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSuite(t *testing.T) { sourcetest.Run(t, sourcetest.Harness{New: fixture()}) }

func TestSuiteWithoutDeadLetters(t *testing.T) {
	sourcetest.Run(t, sourcetest.Harness{New: fixture(memory.WithoutDeadLetters())})
}

func fixture(opts ...memory.Option) func(testing.TB) *sourcetest.Fixture {
	return func(tb testing.TB) *sourcetest.Fixture {
		s := memory.New(opts...)
		f := &sourcetest.Fixture{
			Source:    s,
			Resources: []string{"a", "b", "c/d", "e f"},
			Missing:   "missing",
			Send: func(resource, key string, body []byte) error {
				return s.SendMessages(resource, rebalancer.Message{Key: key, Body: body})
			},
			Left: func(resource string) int {
				c := s.Counts(resource)
				return c.Waiting + c.InFlight
			},
			Rejected: func(resource string) []string {
				var bodies []string
				for _, r := range s.Rejected(resource) {
					bodies = append(bodies, string(r.Message.Body))
				}
				return bodies
			},
			Remove: func(resource string) error { s.Remove(resource); return nil },
		}
		s.Remove(f.Missing)
		tb.Cleanup(func() { _ = s.Close() })
		return f
	}
}
