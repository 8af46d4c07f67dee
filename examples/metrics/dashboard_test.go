package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rebalancer-go/rebalancer"
	stores "github.com/rebalancer-go/rebalancer/backends/memory"
	"github.com/rebalancer-go/rebalancer/group"
	"github.com/rebalancer-go/rebalancer/sources/memory"
	"github.com/rebalancer-go/rebalancer/telemetry"
)

// dashboard is what is checked of one.
type dashboard struct {
	Panels []struct {
		Title   string
		Targets []struct{ Expr, LegendFormat string }
	}
}

var (
	series = regexp.MustCompile(`\b(?:rebalancer|messaging)_[a-z_]*`)
	by     = regexp.MustCompile(`by \(([a-z_, ]+)\)`)
	filter = regexp.MustCompile(`\b([a-z_]+)\s*=~?\s*"`)
	values = regexp.MustCompile(`label_values\((\w+), (\w+)\)`)
	legend = regexp.MustCompile(`\{\{([a-z_]+)\}\}`)
)

// Each query of the dashboard names series, and labels of these, that Prometheus reads from this program.
func TestQueriesOfTheDashboard(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile("dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(src, &d); err != nil {
		t.Fatal(err)
	}
	known := exported(t)
	queries, used := 0, map[string]bool{}
	check := func(title, expr, legendFormat string) {
		queries++
		var labels []string
		names := series.FindAllString(expr, -1)
		for _, list := range by.FindAllStringSubmatch(expr, -1) {
			labels = append(labels, strings.Split(strings.ReplaceAll(list[1], " ", ""), ",")...)
		}
		for _, f := range append(filter.FindAllStringSubmatch(expr, -1), legend.FindAllStringSubmatch(legendFormat, -1)...) {
			labels = append(labels, f[1])
		}
		names = slices.DeleteFunc(names, func(n string) bool { return slices.Contains(labels, n) }) // labels are called alike
		if len(names) == 0 {
			t.Errorf("%s: no series of ours in %q", title, expr)
		}
		for _, n := range names {
			have, ok := known[n]
			if !ok {
				t.Errorf("%s: nothing exports %s", title, n)
				continue
			}
			used[n] = true
			for _, l := range labels {
				if !slices.Contains(have, l) {
					t.Errorf("%s: %s has no label %s, it has %v", title, n, l, have)
				}
			}
		}
	}
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			check(p.Title, q.Expr, q.LegendFormat)
		}
	}
	if queries < 15 || len(used) < 20 {
		t.Errorf("%d queries of %d series: was the dashboard read?", queries, len(used))
	}
	choice := values.FindSubmatch(src)
	if choice == nil || !slices.Contains(known[string(choice[1])], string(choice[2])) {
		t.Errorf("the group is chosen by %q, which nothing exports", choice)
	}
}

// exported are the series that Prometheus gets when everything has happened once, with their labels.
func exported(t *testing.T) map[string][]string {
	t.Helper()
	registry := prometheus.NewRegistry()
	provider, err := meters(registry)
	if err != nil {
		t.Fatal(err)
	}
	source := memory.New()
	cfg := telemetry.Instrument(group.Config{
		Name: "orders", Node: "a", Store: stores.New(), Source: lagger{source}, Resources: group.Static("q"), Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}, telemetry.Config{Meters: provider, System: "memory", Resources: 1, LagEvery: time.Second})
	happen(t, cfg.Probes[0])
	g, err := group.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- g.Consume(ctx, handle) }()
	names := map[string][]string{}
	for deadline := time.Now().Add(time.Minute); names["rebalancer_lag"] == nil || names["rebalancer_group_members"] == nil; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the gauges do not come: %v", names)
		}
		names = gather(t, registry)
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return names
}

// gather reads what a scrape would.
func gather(t *testing.T, registry *prometheus.Registry) map[string][]string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string][]string{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName())
			}
			suffixes := []string{""}
			if m.GetHistogram() != nil {
				suffixes = []string{"_bucket", "_count", "_sum"}
				labels = append(labels, "le")
			}
			for _, s := range suffixes {
				names[f.GetName()+s] = append(names[f.GetName()+s], labels...)
			}
		}
	}
	return names
}

type lagger struct{ *memory.Source }

func (lagger) Lag(context.Context, string) (int64, error) { return 3, nil }

// happen has everything happen once.
func happen(t *testing.T, p *group.Probe) {
	t.Helper()
	now := time.Now()
	m := &rebalancer.Message{Resource: "q", Published: now}
	for _, err := range []error{nil, errors.New("bad")} {
		_ = p.Handler(func(context.Context, *rebalancer.Message) error { return err })(t.Context(), m)
		p.Fetched(group.Fetched{Resource: "q", Messages: []*rebalancer.Message{m}, Began: now, Err: err})
		p.Settled(group.Settled{Resource: "q", Began: now, Err: err})
	}
	p.StoreCall(group.StoreCall{Call: group.CallCommit, Began: now, Outcome: "ok", Claims: 2, Refused: 1})
	for _, e := range []group.Event{
		{Kind: group.KindFailed, Resource: "q", Message: "1"}, {Kind: group.KindRejected, Resource: "q"}, {Kind: group.KindKept, Resource: "q"},
		{Kind: group.KindStuck}, {Kind: group.KindLost}, {Kind: group.KindDeclined},
		{Kind: group.KindRebalanced, Plan: &group.Plan{Causes: []string{"join"}, Moved: 1, Moves: []group.Move{{Resource: "q", Reason: "new"}}}},
		{Kind: group.KindAssigned, Share: &group.Share{Generation: 1, Causes: []string{"join"}, Gained: []string{"q"}, Lost: []string{"r"}}},
		{Kind: group.KindRevoked, Resource: "r"}, {Kind: group.KindReleased, Resource: "r"}, {Kind: group.KindClaimed, Resource: "q"}, {Kind: group.KindStarted, Resource: "q"},
		{Kind: group.KindFenced},
	} {
		e.Time = now
		p.Event(e)
	}
}
