package group

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/sources/memory"
)

func TestNewReportsEverythingAtOnce(t *testing.T) {
	t.Parallel()
	_, err := New(Config{})
	for _, field := range []string{"Name", "Store", "Resources"} {
		if err == nil || !strings.Contains(err.Error(), field+" is ") {
			t.Errorf("nothing about %s in: %v", field, err)
		}
	}
	if !errors.Is(err, ErrInvalid) {
		t.Error("not ErrInvalid")
	}
}

func TestValidation(t *testing.T) {
	t.Parallel()
	list := func(context.Context) ([]string, error) { return nil, nil }
	cases := map[string]func(*Config){
		"Name":               func(c *Config) { c.Name = "a/b" },
		"Node":               func(c *Config) { c.Node = "a\x00" },
		"Labels":             func(c *Config) { c.Labels = map[string]string{"": "x"} },
		"Concurrency":        func(c *Config) { c.Concurrency = -1 },
		"MaxConcurrency":     func(c *Config) { c.MaxConcurrency = -1 },
		"BatchSize":          func(c *Config) { c.BatchSize = -1 },
		"BatchWait":          func(c *Config) { c.BatchWait = -1 },
		"Timeout":            func(c *Config) { c.Timeout = -1 },
		"Retry.Min":          func(c *Config) { c.Retry.Min = -1 },
		"Retry.Max":          func(c *Config) { c.Retry.Min, c.Retry.Max = 2, 1 },
		"Retry.Exhausted":    func(c *Config) { c.Retry.Exhausted = 7 },
		"Weight":             func(c *Config) { c.Weight = -1 },
		"MaxResources":       func(c *Config) { c.MaxResources = -1 },
		"Drain":              func(c *Config) { c.Drain = -1 },
		"Grace":              func(c *Config) { c.Grace = -1 },
		"StartDelay":         func(c *Config) { c.StartDelay = -1 },
		"TTL":                func(c *Config) { c.TTL, c.Tuning.Renew = 10*time.Second, 3*time.Second },
		"Tuning.Renew":       func(c *Config) { c.Tuning.Renew = -1 },
		"Tuning.Margin":      func(c *Config) { c.Tuning.Margin = c.TTL + DefaultTTL/2 },
		"Tuning.Debounce":    func(c *Config) { c.Tuning.Debounce = -1 },
		"Tuning.DebounceMax": func(c *Config) { c.Tuning.Debounce, c.Tuning.DebounceMax = 2, 1 },
		"Resources":          func(c *Config) { c.Resources = Static("ok", "a\x00b") },
		"Resources ":         func(c *Config) { c.Resources = Discover(-1, list) },
		"Resources  ":        func(c *Config) { c.Resources = Discover(1, nil) },
		"Resources   ":       func(c *Config) { c.Resources = Static(strings.Repeat("x", 513)) },
		"Resources    ":      func(c *Config) { c.Resources = Static("a", "a") }, // the source refuses doubles
		"Resources     ":     func(c *Config) { c.Resources = Static("\xff") },
	}
	for field, breakIt := range cases {
		cfg := newWorld(t).config("a", "q")
		if _, err := New(cfg); err != nil {
			t.Fatalf("the sound one: %v", err)
		}
		breakIt(&cfg)
		_, err := New(cfg)
		if err == nil || !strings.Contains(err.Error(), strings.TrimSpace(field)) || !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	c := Config{Source: memory.New()}.withDefaults()
	if c.TTL != DefaultTTL || c.Tuning.Renew != DefaultTTL/6 || c.Tuning.Margin != DefaultTTL/5 || c.Drain != DefaultDrain ||
		c.Grace != DefaultGrace || c.BatchSize != DefaultBatchSize || c.Concurrency != 1 || c.Weight != 1 ||
		c.Retry != (Retry{Attempts: DefaultAttempts, Min: DefaultRetryMin, Max: DefaultRetryMax}) ||
		c.Tuning.Debounce != DefaultDebounce || c.Tuning.DebounceMax != DefaultDebounceMax || c.Logger == nil {
		t.Errorf("defaults: %+v", c)
	}
	if why := checkName(c.Node); why != "" || c.Node == (Config{}).withDefaults().Node {
		t.Errorf("node %q: %s", c.Node, why)
	}
	none := Config{Source: memory.New(memory.WithoutDeadLetters())}
	if a := none.withDefaults().Retry.Attempts; a >= 0 {
		t.Errorf("without a dead-letter place: %d attempts, want for ever", a)
	}
	none.Retry.Exhausted = Skip
	if a := none.withDefaults().Retry.Attempts; a != DefaultAttempts {
		t.Errorf("with Skip: %d attempts", a)
	}
}

// held is a source whose server holds messages for a node that froze.
type held struct {
	*memory.Source
	long time.Duration
}

func (h held) HeldFor() time.Duration { return h.long }

func TestServerThatHoldsMessages(t *testing.T) {
	t.Parallel()
	// TTL 30 s, a renewal every 5 s, a margin of 6 s: 19 s are left.
	for long, ok := range map[time.Duration]bool{0: true, 15 * time.Second: true, 18999 * time.Millisecond: true, 19 * time.Second: false} {
		cfg := newWorld(t).config("a", "q")
		cfg.TTL, cfg.Tuning = DefaultTTL, Tuning{}
		cfg.Source = held{memory.New(), long}
		_, err := New(cfg)
		if ok != (err == nil) || err != nil && (!errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "TTL is 30s: the source's server")) {
			t.Errorf("held for %v: %v", long, err)
		}
	}
}

// spelled is a source whose canonical names are in lower case.
type spelled struct{ *memory.Source }

func (s spelled) Names(names []string) ([]string, error) {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = strings.ToLower(n)
	}
	return s.Source.Names(out)
}

func TestCanonicalNames(t *testing.T) {
	t.Parallel()
	cfg := newWorld(t).config("a", "Q", "b")
	cfg.Source = spelled{memory.New()}
	g, err := New(cfg)
	if err != nil || !slices.Equal(g.names, []string{"b", "q"}) {
		t.Fatalf("%q %v", g.names, err)
	}
	cfg.Resources = Static("Q", "q")
	if _, err := New(cfg); !errors.Is(err, ErrInvalid) {
		t.Fatalf("two spellings of one resource: %v", err)
	}
}

// TestNameThatIsNotCanonical: a registered name is checked when it is claimed.
func TestNameThatIsNotCanonical(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		cfg := w.config("a", "q")
		cfg.Source = spelled{w.source}
		r := w.startWith(cfg, func(ctx context.Context, g *Group) error {
			g.names = []string{"Q"} // as if it came from the store
			return consumeNothing(ctx, g)
		})
		time.Sleep(time.Minute)
		_ = r.end()
		e, ok := w.event("a", KindDeclined)
		if !ok || slices.Contains(w.kinds("a"), KindStarted) {
			t.Fatalf("events: %v", w.kinds("a"))
		}
		if e.Err == nil || !strings.Contains(e.Err.Error(), `register it under that name`) {
			t.Fatalf("event: %+v", e)
		}
	})
}
