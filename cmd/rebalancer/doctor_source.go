package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/rebalancer-go/rebalancer/sources"
)

// mostExamined bounds how many resources are looked at one by one.
const mostExamined = 50

// examineSource tries a source. It returns an error only for wrong usage.
func (d *doctor) examineSource(ctx context.Context, src *openSource, c *doctorFlags) error {
	names, err := src.Names(c.resources)
	if err != nil {
		return usagef("--resource: %v", err)
	}
	if src.examine != nil {
		src.examine(ctx, d)
	}
	if c.discover != "" {
		found, err := d.list(ctx, src, c.discover)
		if err != nil {
			return err
		}
		names = append(names, found...)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) > mostExamined {
		d.find(stateNote, "resources", "", "%d; the first %d are looked at", len(names), mostExamined)
		names = names[:mostExamined]
	}
	if len(names) == 0 {
		d.find(stateNote, "resources", "give --resource NAME or --discover PATTERN", "none is looked at")
	}
	lag, _ := src.Source.(sources.Lagger)
	for _, name := range names {
		check := "resource " + quoteIfOdd(name)
		if lag != nil && !d.step(ctx, check, func(ctx context.Context) (string, error) {
			n, err := lag.Lag(ctx, name)
			return fmt.Sprintf("is there; %s waiting", countOf(int(n), "message")), err
		}) {
			continue
		}
		if src.examineResource != nil {
			ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
			src.examineResource(ctx, d, check, name, c.tryWrites)
			cancel()
		}
	}
	return nil
}

// list is what a pattern finds.
func (d *doctor) list(ctx context.Context, src *openSource, pattern string) (found []string, _ error) {
	lister, ok := src.Source.(sources.Discoverer)
	if !ok {
		return nil, usagef("--discover: this source cannot list its resources")
	}
	if err := checkPattern(ctx, lister, pattern); err != nil {
		return nil, err
	}
	if d.step(ctx, "list", func(ctx context.Context) (_ string, err error) {
		found, err = lister.Discover(ctx, pattern)
		return countOf(len(found), "resource") + " found", err
	}) && len(found) == 0 {
		d.find(stateWarning, "list", "look at the pattern, and whether this user may see what it should find", "nothing matches %q", pattern)
	}
	return found, nil
}
