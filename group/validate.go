package group

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rebalancer-go/rebalancer/coord"
	"github.com/rebalancer-go/rebalancer/sources"
)

const (
	maxName     = 128 // bytes of a group's or node's name, and of a label's sides
	maxResource = 512 // bytes of a resource's name
	maxLabels   = 32
	minTTL      = 100 * time.Millisecond // below it, scheduling alone ends the trust
)

// violations collects what is wrong with a configuration: field, what it is, what is allowed.
type violations []error

func (v *violations) add(ok bool, field string, got any, allowed string) {
	if !ok {
		*v = append(*v, fmt.Errorf("%w: %s is %v: %s", ErrInvalid, field, got, allowed))
	}
}

// withDefaults fills in zero fields.
func (c Config) withDefaults() Config {
	setDefault(&c.Concurrency, 1)
	setDefault(&c.BatchSize, DefaultBatchSize)
	setDefault(&c.Drain, DefaultDrain)
	setDefault(&c.Grace, DefaultGrace)
	setDefault(&c.TTL, DefaultTTL)
	setDefault(&c.Weight, 1)
	setDefault(&c.Tuning.Renew, c.TTL/6)
	setDefault(&c.Tuning.Margin, c.TTL/5)
	setDefault(&c.Tuning.Debounce, DefaultDebounce)
	setDefault(&c.Tuning.DebounceMax, max(DefaultDebounceMax, c.Tuning.Debounce))
	setDefault(&c.Retry.Min, DefaultRetryMin)
	setDefault(&c.Retry.Max, max(DefaultRetryMax, c.Retry.Min))
	if c.Retry.Attempts == 0 {
		c.Retry.Attempts = -1
		if c.Retry.Exhausted != DeadLetter || c.Source != nil && c.Source.DeadLetters() {
			c.Retry.Attempts = DefaultAttempts
		}
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Node == "" && !c.Static {
		c.Node = defaultNode()
	}
	return c
}

func setDefault[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

// defaultNode is the host's name, as far as it may stand in a node's name, and a random suffix.
func defaultNode() string {
	host, err := os.Hostname()
	if err != nil || checkName(host) != "" {
		host = "node"
	}
	if len(host) > maxName-12 {
		host = host[:maxName-12] // a host's name is ASCII; checkName looks again
	}
	return host + "-" + strings.ToLower(rand.Text()[:8])
}

// validate returns everything that is wrong with a configuration whose defaults are filled in.
func (c Config) validate() error {
	var v violations
	c.validateNames(&v)
	c.validateHandling(&v)
	c.validateTimes(&v)
	return errors.Join(v...)
}

func (c Config) validateNames(v *violations) {
	const name = "it must be 1 to 128 bytes of printable UTF-8 without \"/\""
	v.add(checkName(c.Name) == "", "Name", fmt.Sprintf("%q", c.Name), name)
	if c.Static && c.Node == "" {
		v.add(false, "Node", `""`, "with Static it must be a name that the next process of this node has too")
	} else {
		v.add(checkName(c.Node) == "", "Node", fmt.Sprintf("%q", c.Node), name)
	}
	v.add(c.Store != nil, "Store", "nil", "a store is required")
	v.add(len(c.Labels) <= maxLabels, "Labels", fmt.Sprintf("%d pairs", len(c.Labels)), "at most 32 are allowed")
	keys := make([]string, 0, len(c.Labels))
	for k := range c.Labels {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		ok := k != "" && len(k) <= maxName && len(c.Labels[k]) <= maxName && utf8.ValidString(k) && utf8.ValidString(c.Labels[k])
		v.add(ok, "Labels", fmt.Sprintf("%q: %q", k, c.Labels[k]), "each side must be UTF-8 of at most 128 bytes, and the key not empty")
	}
	c.validateResources(v)
}

func (c Config) validateResources(v *violations) {
	r := c.Resources
	switch r.origin {
	case coord.OriginStatic:
		for _, n := range r.names {
			why := checkResource(n)
			v.add(why == "", "Resources", fmt.Sprintf("%q", n), why)
		}
	case coord.OriginDiscovered:
		v.add(r.list != nil, "Resources", "Discover with a nil function", "a function is required")
		v.add(r.every > 0, "Resources", fmt.Sprintf("Discover every %v", r.every), "the interval must be above 0")
	case coord.OriginRegistered:
	default:
		v.add(false, "Resources", "empty", "use Static, Registered or Discover")
	}
}

func (c Config) validateHandling(v *violations) {
	v.add(c.Concurrency >= 1, "Concurrency", c.Concurrency, "it must be at least 1")
	v.add(c.MaxConcurrency >= 0, "MaxConcurrency", c.MaxConcurrency, "it must be at least 0 (no limit)")
	v.add(c.BatchSize >= 1, "BatchSize", c.BatchSize, "it must be at least 1")
	v.add(c.BatchWait >= 0, "BatchWait", c.BatchWait, "it must be at least 0")
	v.add(c.Timeout >= 0, "Timeout", c.Timeout, "it must be at least 0 (no bound)")
	v.add(c.Retry.Min > 0, "Retry.Min", c.Retry.Min, "it must be above 0")
	v.add(c.Retry.Max >= c.Retry.Min, "Retry.Max", c.Retry.Max, fmt.Sprintf("it must be at least Retry.Min (%v)", c.Retry.Min))
	v.add(c.Retry.Exhausted >= DeadLetter && c.Retry.Exhausted <= Skip, "Retry.Exhausted", int(c.Retry.Exhausted), "use DeadLetter, Stop or Skip")
	v.add(c.Weight >= 1 && c.Weight <= 1000, "Weight", c.Weight, "it must be 1 to 1000")
	v.add(c.MaxResources >= 0, "MaxResources", c.MaxResources, "it must be at least 0 (no limit)")
	v.add(c.MaxActive >= 0, "MaxActive", c.MaxActive, "it must be at least 0 (all nodes)")
	v.add(!c.FailBack || c.MaxActive > 0, "FailBack", c.FailBack, "it needs MaxActive above 0")
	v.add(c.MaxMoving >= 0, "MaxMoving", c.MaxMoving, "it must be at least 0 (no limit)")
	v.add(c.MaxMovingPerNode >= 0, "MaxMovingPerNode", c.MaxMovingPerNode, "it must be at least 0 (no limit)")
}

func (c Config) validateTimes(v *violations) {
	t := c.Tuning
	v.add(c.Drain > 0, "Drain", c.Drain, "it must be above 0")
	v.add(c.Grace > 0, "Grace", c.Grace, "it must be above 0")
	v.add(c.StartDelay >= 0, "StartDelay", c.StartDelay, "it must be at least 0")
	v.add(c.TTL >= minTTL, "TTL", c.TTL, fmt.Sprintf("it must be at least %v", minTTL))
	v.add(t.Renew > 0, "Tuning.Renew", t.Renew, "it must be above 0")
	v.add(c.TTL >= 5*t.Renew, "TTL", c.TTL, fmt.Sprintf("it must be at least 5 × Tuning.Renew (%v)", t.Renew))
	v.add(t.Margin > 0, "Tuning.Margin", t.Margin, "it must be above 0")
	v.add(2*t.Margin < c.TTL, "Tuning.Margin", t.Margin, fmt.Sprintf("it must be below TTL/2 (%v)", c.TTL/2))
	v.add(t.Renew < c.TTL-t.Margin, "Tuning.Renew", t.Renew, fmt.Sprintf("it must be below TTL − Tuning.Margin (%v)", c.TTL-t.Margin))
	if h, ok := c.Source.(sources.Holder); ok {
		held := h.HeldFor()
		v.add(held == 0 || held+t.Renew < c.TTL-t.Margin, "TTL", c.TTL, fmt.Sprintf(
			"the source's server may hold messages of a node that froze for %v: with Tuning.Renew (%v) that must be below TTL − Tuning.Margin (%v)", held, t.Renew, c.TTL-t.Margin))
	}
	v.add(t.Debounce > 0, "Tuning.Debounce", t.Debounce, "it must be above 0")
	v.add(t.DebounceMax >= t.Debounce, "Tuning.DebounceMax", t.DebounceMax, fmt.Sprintf("it must be at least Tuning.Debounce (%v)", t.Debounce))
}

// checkName says what is wrong with the name of a group or node; "" when nothing is.
func checkName(name string) string {
	switch {
	case name == "":
		return "it is empty"
	case len(name) > maxName:
		return "it is longer than 128 bytes"
	case !utf8.ValidString(name):
		return "it is not UTF-8"
	case strings.Contains(name, "/"):
		return "it contains \"/\""
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return "it contains a character that cannot be printed"
	}
	return ""
}

// checkResource says what is wrong with the name of a resource; "" when nothing is.
func checkResource(name string) string {
	switch {
	case name == "":
		return "a resource's name must not be empty"
	case len(name) > maxResource:
		return "a resource's name has at most 512 bytes"
	case !utf8.ValidString(name):
		return "a resource's name must be UTF-8"
	case strings.Contains(name, "\x00"):
		return "a resource's name must not contain NUL"
	}
	return ""
}

// canonical returns the names in the form that the source gives them, without doubles, or why they cannot be worked. A node
// without a source takes them as they are.
func canonical(source sources.Source, names []string) ([]string, error) {
	if source != nil && len(names) > 0 {
		canon, err := source.Names(names)
		if err != nil {
			return nil, err
		}
		if len(canon) != len(names) {
			return nil, fmt.Errorf("the source answered %d names for %d", len(canon), len(names))
		}
		names = canon
	}
	names = slices.Clone(names)
	slices.Sort(names)
	names = slices.Compact(names)
	for _, n := range names {
		if why := checkResource(n); why != "" {
			return nil, fmt.Errorf("resource %q: %s", n, why)
		}
	}
	return names, nil
}
