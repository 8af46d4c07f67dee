package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/rebalancer-go/rebalancer/group"
	"github.com/rebalancer-go/rebalancer/sources"
)

// discoverHelp is for --discover.
const discoverHelp = "share the resources of the source that match a pattern, looked for every --discover-every by one node of the\n" +
	"group: * ? [a-z] as in file names, for queues (amqp://, and sqs:// where it may be tag:KEY=VALUE too), and for\n" +
	"directories and prefixes, of which each part between slashes matches one level. Quote it. While the source cannot\n" +
	"be listed the last list stays; what no longer matches goes when it is missing twice, and when more than three\n" +
	"tenths go at once only after ten listings."

// discovery lists resources for a group, and remembers how it went last.
type discovery struct {
	source  sources.Discoverer
	pattern string
	every   time.Duration
	log     *slog.Logger

	mu    sync.Mutex
	none  bool  // the last list was empty
	wrong error // why there is no list, nil when there is one or nobody has asked yet
}

// discovery is that of --discover, nil without it. A pattern that can never match is an error.
func (c *consumeFlags) discovery(ctx context.Context, src *openSource, log *slog.Logger) (*discovery, error) {
	if c.discover == "" {
		return nil, nil
	}
	d, ok := src.Source.(sources.Discoverer)
	if !ok {
		return nil, usagef("--discover: this source cannot list its resources: give each by --resource")
	}
	return &discovery{source: d, pattern: c.discover, every: c.discoverEvery, log: log}, checkPattern(ctx, d, c.discover)
}

// checkPattern finds out whether the pattern is one: a source looks at it first, and with a context that has ended it does no more than that.
func checkPattern(ctx context.Context, d sources.Discoverer, pattern string) error {
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err := d.Discover(ended, pattern)
	if err == nil || errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "canceled") {
		return nil
	}
	return usagef("--discover: %v", err)
}

// resources are what the group shares.
func (d *discovery) resources() group.Resources { return group.Discover(d.every, d.list) }

func (d *discovery) list(ctx context.Context) ([]string, error) {
	names, err := d.source.Discover(ctx, d.pattern)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil && len(names) == 0 && !d.none {
		d.log.Warn("no resource of the source matches; looked for again and again", "pattern", d.pattern, "every", d.every)
	}
	if ctx.Err() == nil {
		d.none, d.wrong = err == nil && len(names) == 0, err
	}
	return names, err
}

// trouble is why nobody knows whether there are resources: none is no trouble. Only the node that lists for the group has one.
func (d *discovery) trouble() error {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.wrong == nil {
		return nil
	}
	return fmt.Errorf("the resources could not be listed: %w", d.wrong)
}
