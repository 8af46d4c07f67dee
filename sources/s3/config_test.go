package s3

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/sources"
	"github.com/rebalancer-go/rebalancer/sources/pickup"
)

func TestConfig(t *testing.T) {
	t.Parallel()
	_, err := New(Config{Base: "a//b", Deletion: 9, Policy: pickup.Policy{OnFailure: pickup.MoveTo("../x"), Interval: -1}})
	for _, want := range []string{"Client", "Bucket", "Base", "Deletion", "OnSuccess", "OnFailure", "Interval"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not tell of %s", err, want)
		}
	}
	c := newStub(t).client()
	for bucket, want := range map[string]string{
		"logs--use1-az4--x-s3": "directory bucket", "arn:aws:s3express:eu-west-1:1:bucket/x": "directory bucket", "a/b": "no name", "http://x": "no name",
		"arn:aws:s3:::orders": "write the name", "arn:aws:s3-object-lambda:eu-west-1:123456789012:accesspoint/mine": "no ARN of an access point",
		"arn:aws:s3::123456789012:accesspoint/mfzwi23gnjvgw.mrap": "several regions", "arn:aws:s3-outposts:eu-west-1:123456789012:outpost/op-1/accesspoint/mine": "",
		"orders": "", "orders.example.org": "", "arn:aws:s3:eu-west-1:123456789012:accesspoint/mine": "", "mine-abc-s3alias": "",
	} {
		cfg := quick(c)
		cfg.Bucket = bucket
		if _, err := New(cfg); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", bucket, err, want)
		}
	}
	newSource(t, Config{Client: c, Bucket: "arn:aws:s3::123456789012:accesspoint/mfzwi23gnjvgw.mrap", Policy: pickup.Policy{OnSuccess: pickup.Delete()}})
	s := newSource(t, Config{Client: c, Bucket: "bkt", Base: "in/", Policy: pickup.Policy{OnSuccess: pickup.Delete()}})
	if o := s.options; o.StableFor != 0 || o.IdleInterval != DefaultIdleInterval || s.Base != "in" || s.DeadLetters() {
		t.Errorf("defaults: StableFor %v, IdleInterval %v, Base %q, dead letters %v", o.StableFor, o.IdleInterval, s.Base, s.DeadLetters())
	}
	s = newSource(t, Config{Client: c, Bucket: "bkt", Policy: pickup.Policy{OnSuccess: pickup.Delete(), StableFor: time.Second, IdleInterval: time.Minute, OnFailure: pickup.MoveTo("f")}})
	if o := s.options; o.StableFor != time.Second || o.IdleInterval != time.Minute || !s.DeadLetters() {
		t.Errorf("chosen: StableFor %v, IdleInterval %v", o.StableFor, o.IdleInterval)
	}
}

// TestNamesThatCollide: what only some configurations refuse; see the suite for the rest.
func TestNamesThatCollide(t *testing.T) {
	t.Parallel()
	c := newStub(t).client()
	for _, k := range []struct {
		change func(*Config)
		list   []string
		want   string // "": it may be worked
	}{
		{nil, []string{"a", "a/b", "."}, ""},
		{nil, []string{strings.Repeat("n", 1100)}, "no key can be so long"},
		{func(c *Config) { c.Subtree = true }, []string{"a", "a/b"}, "is inside"},
		{func(c *Config) { c.Subtree = true }, []string{"a/b/c", "x", "a"}, "is inside"},
		{func(c *Config) { c.Subtree = true }, []string{"a", "."}, "is inside"},
		{func(c *Config) { c.Subtree = true }, []string{"a", "ab", "a-b"}, ""},
		{nil, []string{"a", "a/failed"}, "are moved"},
		{nil, []string{"a", "a/failed/x"}, "are moved"},
		{nil, []string{"a", "b/failed"}, ""},
		{func(c *Config) { c.OnSuccess = pickup.MoveTo("/old") }, []string{"a", "old/a"}, "are moved"},
		{func(c *Config) { c.OnSuccess = pickup.MoveTo("/old/{2006}") }, []string{"a", "old/2026"}, "are moved"},
		{func(c *Config) { c.OnSuccess = pickup.MoveTo("/old/{2006}") }, []string{"a", "old/x"}, ""},
		{func(c *Config) { c.OnSuccess, c.Base = pickup.MoveTo("/in/old"), "in" }, []string{"a", "old"}, "are moved"},
		{func(c *Config) { c.OnSuccess = pickup.MoveTo("s3://other/old") }, []string{"a", "old/a"}, ""},
	} {
		cfg := quick(c)
		if k.change != nil {
			k.change(&cfg)
		}
		out, err := newSource(t, cfg).Names(k.list)
		if k.want == "" && (err != nil || !slices.Equal(out, k.list)) || k.want != "" && (err == nil || !strings.Contains(err.Error(), k.want)) {
			t.Errorf("%q: %q, %v; want %q", k.list, out, err, k.want)
		}
	}
}

func TestDiscover(t *testing.T) {
	t.Parallel()
	st := newStub(t)
	st.most = 2
	for _, key := range []string{"base/in/a", "base/out/a", "base/eu/orders/a", "base/eu/mail/a", "base/eu/orders/failed/x", "base/us/orders/a", "base/.hidden/a", "base/file",
		"base/eu//x", "base/failed/x", "elsewhere/a"} {
		st.put(key, "")
	}
	cfg := quick(st.client())
	cfg.Base = "base"
	s := newSource(t, cfg)
	for pattern, want := range map[string][]string{
		"*": {"eu", "in", "out", "us"}, "in": {"in"}, "none": nil, "*/orders": {"eu/orders", "us/orders"}, "eu/*": {"eu/mail", "eu/orders"},
		".*": {".hidden"}, "o[tu]*": {"out"}, ".": {"."}, "*/orders/*": nil, "file": nil,
	} {
		got, err := s.Discover(t.Context(), pattern)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v; want %q", pattern, got, err, want)
		}
	}
	for _, pattern := range []string{"", "/x", "[", "a/../b"} {
		if got, err := s.Discover(t.Context(), pattern); err == nil {
			t.Errorf("%q: %q", pattern, got)
		}
	}
	st.refuse = func(string, string) (int, string, string) { return 403, "AccessDenied", "" }
	if got, err := s.Discover(t.Context(), "*"); err == nil || !strings.Contains(err.Error(), "s3:ListBucket") {
		t.Errorf("Discover without a right: %q, %v", got, err)
	}
	if n, err := s.Lag(t.Context(), "in"); err == nil {
		t.Errorf("Lag without a right: %d", n)
	}
}

func TestClosedSource(t *testing.T) {
	t.Parallel()
	st := newStub(t)
	s := newSource(t, quick(st.client()))
	r := open(t, s, "in")
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Fetch(t.Context(), 1); !errors.Is(err, sources.ErrClosed) {
		t.Errorf("Fetch: %v", err)
	}
	if _, err := s.Open(t.Context(), claim("in")); !errors.Is(err, sources.ErrClosed) {
		t.Errorf("Open: %v", err)
	}
	if n := len(s.readers.All()); n != 0 {
		t.Errorf("%d Readers are remembered", n)
	}
	if _, err := s.Open(t.Context(), claim("in/")); err == nil {
		t.Error("Open of a name that is not canonical")
	}
}
