package s3

import (
	"testing"

	"github.com/rebalancer-go/rebalancer/internal/files/seen"
	"github.com/rebalancer-go/rebalancer/internal/keeptest"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
	"github.com/rebalancer-go/rebalancer/sources/pickup"
	"github.com/rebalancer-go/rebalancer/sources/sourcetest"
)

// TestKeepSuite: objects stay, with and without a tag, those that failed too.
func TestKeepSuite(t *testing.T) {
	t.Parallel()
	server := testserver.StartVersityGW(t)
	for what, change := range map[string]func(*Config){
		"keep": func(c *Config) { c.OnSuccess = pickup.Keep() },
		"tag":  func(c *Config) { c.OnSuccess, c.OnFailure = pickup.Tag("state", "done"), pickup.Tag("state", "failed") },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			sourcetest.Run(t, sourcetest.Harness{New: func(tb testing.TB) *sourcetest.Fixture {
				var cfg Config
				f := fixture(tb, server, func(c *Config) { change(c); cfg = *c })
				all := &keeptest.Stores{}
				inPlace := f.Left
				f.Checkpoint = all.Claim
				f.Left = func(resource string) int { return inPlace(resource) - all.Worked(tb, resource) }
				if cfg.OnFailure.Kind() == pickup.Tags {
					f.Rejected = func(resource string) (bodies []string) {
						for _, name := range all.Names(tb, resource, seen.Failed) {
							bodies = append(bodies, get(tb, gateway(tb, server), cfg.Bucket, f.Source.(*Source).prefix(resource)+name))
						}
						return bodies
					}
				}
				return f
			}})
		})
	}
}
