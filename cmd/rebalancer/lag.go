package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/rebalancer-go/rebalancer/admin"
	"github.com/rebalancer-go/rebalancer/sources"
)

// lagWithin is how long a source is asked how many messages wait, so that a look that shows the rest stays short.
const lagWithin = 3 * time.Second

// lagger opens a source that tells how many messages wait. done closes it.
func (p *program) lagger(ctx context.Context, url string, logger *slog.Logger) (l sources.Lagger, done func(), err error) {
	src, err := p.openSource(ctx, url, sourceOptions{success: settle{action: "delete"}, logger: logger})
	if err != nil {
		return nil, nil, err
	}
	l, ok := src.Source.(sources.Lagger)
	if !ok {
		_ = src.close()
		return nil, nil, usagef("--source: this source does not tell how many messages wait")
	}
	return l, func() { _ = src.close() }, nil
}

// lags fills in how many messages wait in the resources of a group; without a source it leaves that open.
func (p *program) lags(ctx context.Context, url string) (fill func(context.Context, *admin.Description) error, done func(), err error) {
	if url == "" {
		return func(context.Context, *admin.Description) error { return nil }, func() {}, nil
	}
	opening, cancel := context.WithTimeout(ctx, lagWithin)
	defer cancel()
	l, done, err := p.lagger(opening, url, slog.New(slog.DiscardHandler))
	switch {
	case errors.Is(err, errUsage):
		return nil, nil, err
	case err != nil: // the group is shown all the same
		failed := err // which the return sets to nil
		return func(context.Context, *admin.Description) error { return failed }, func() {}, nil
	}
	return func(ctx context.Context, d *admin.Description) error {
		names := make([]string, len(d.Resources))
		for i, r := range d.Resources {
			names[i] = r.Name
		}
		ctx, cancel := context.WithTimeout(ctx, lagWithin)
		defer cancel()
		known, err := sources.Lags(ctx, l, names)
		for i, r := range d.Resources {
			if n, ok := known[r.Name]; ok {
				d.Resources[i].Lag = &n
			}
		}
		if err != nil {
			return fmt.Errorf("--source does not tell how many messages wait: %w", err)
		}
		return nil
	}, done, nil
}
