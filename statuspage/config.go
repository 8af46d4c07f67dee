package statuspage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/names"
)

const (
	// DefaultEvery is the default of Config.Every.
	DefaultEvery = time.Second
	// DefaultTimeout is the default of Config.Timeout.
	DefaultTimeout = 10 * time.Second
	// MinToken is the least length of Config.Token, in bytes.
	MinToken = 16
	// lagEvery is the time between two questions for the lag of a group.
	lagEvery = 10 * time.Second
	// hold is how long an answer waits for something to have changed.
	hold = 10 * time.Second
	// idleAfter is how long a group is read on after the last question for it.
	idleAfter = 15 * time.Second
	// slowAfter is how long a read may last until the page says so.
	slowAfter = 3 * time.Second
)

// ErrInvalid is wrapped by New when its Config is wrong.
var ErrInvalid = errors.New("invalid configuration of the status page")

// Config describes a page. The zero value of every field but Store is a working default.
type Config struct {
	// Store is where the groups are. The caller closes it, after Close of the Handler. Required.
	Store backends.Store
	// Groups are those that are shown, in this order, whether the store has them already or not. Defaults to all that the store has, also later ones.
	Groups []string
	// Token is what a request must show to change something, at least MinToken bytes. "" means that nothing can be changed. Defaults to "".
	Token string
	// Hosts are the names of hosts, without ports, by which browsers may reach the page, besides localhost and addresses: a site elsewhere
	// could give its name the page's address, and read it through the browser of somebody who may. nil means any name. Defaults to nil.
	Hosts []string
	// Lag tells how many messages wait in the resources of a group; those that it leaves out are shown without. While somebody looks it
	// is called about every 10 s, one call at a time for each group, with a ctx that ends 10 s later. nil means that no lag is shown. Defaults to nil.
	Lag func(ctx context.Context, group string, resources []string) (map[string]int64, error)
	// Every is the time between two reads of a group that somebody looks at, at least 100 ms. Defaults to DefaultEvery.
	Every time.Duration
	// Timeout bounds each read and each change, at least 100 ms. Defaults to DefaultTimeout.
	Timeout time.Duration
	// Secrets are blotted out of all errors and reasons that are shown, besides what looks like one. Shorter ones than 4 bytes are not. Defaults to none.
	Secrets []string
	// Logger gets a line for each change that was asked for. Defaults to slog.Default().
	Logger *slog.Logger
}

// check finds everything that is wrong.
func (c *Config) check() error {
	var errs []error
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...))
		}
	}
	bad(c.Store == nil, "Store is missing")
	bad(c.Token != "" && len(c.Token) < MinToken, "Token has %d bytes: it must have at least %d", len(c.Token), MinToken)
	bad(c.Every != 0 && c.Every < 100*time.Millisecond, "Every is %v: it must be at least 100ms", c.Every)
	bad(c.Timeout != 0 && c.Timeout < 100*time.Millisecond, "Timeout is %v: it must be at least 100ms", c.Timeout)
	seen := map[string]bool{}
	for _, g := range c.Groups {
		why := names.Group(g)
		bad(why != "", "Groups has %q: %s", g, why)
		bad(seen[g], "Groups has %q twice", g)
		seen[g] = true
	}
	return errors.Join(errs...)
}

func (c *Config) defaults() {
	if c.Every == 0 {
		c.Every = DefaultEvery
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
}
