package main

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/admin"
	"github.com/rebalancer-go/rebalancer/internal/waittest"
	"github.com/rebalancer-go/rebalancer/sources"
)

func TestDescribeGolden(t *testing.T) {
	t.Parallel()
	lag := int64(12)
	d := admin.Description{
		Group: "orders", Settings: admin.Settings{Barrier: "global", Origin: "registered", TTL: 30 * time.Second, MaxActive: 2, FailBack: true, MaxMoving: 4, MaxMovingPerNode: 1},
		Coordinator: "one", Epoch: 7, Generation: 3, Barrier: "closed",
		Paused: admin.PausedKept, Pending: 3, Drained: []string{"away", "two"},
		Reserved: []admin.Reservation{{Node: "gone", Until: time.Unix(1700000090, 0), Resources: []string{"log"}}},
		Nodes: []admin.Node{
			{Name: "one", Version: "v0.1.0", Weight: 1, Holds: 2, Assigned: 1, Left: 28340 * time.Millisecond, Labels: map[string]string{"zone": "a", "x": "y"}},
			{Name: "two", Priority: 5, Weight: 2, Max: 10, Leaving: true, Left: -1, Assigned: 1, Static: true, Draining: true, Drained: true},
			{Name: "zero", Weight: 1, Standby: true, Left: -1},
		},
		Resources: []admin.Resource{
			{Name: "in", State: admin.StateHeld, Owner: "one", Fence: 1700000000000001, Since: time.Unix(1700000000, 0), Weight: 1,
				Paused: admin.PausedKept, Reason: "it is paused; its claim is kept", Lag: &lag, LastError: "no\nroom", LastErrorAt: time.Unix(1700000030, 0)},
			{Name: "log", State: admin.StateReserved, Weight: 1, Reason: "kept for gone, which has left, until 2023-11-14T22:14:50Z"},
			{Name: "new\nline", State: admin.StateWaiting, Next: "two", Reason: "two has not\nclaimed it yet", Weight: 3, Require: []string{"net=x", "zone=a b"},
				Prefer: []string{"disk=ssd"}, Pinned: "two"},
			{Name: "out", State: admin.StateMoving, Owner: "one", Next: "two", Fence: 5, Since: time.Unix(1700000060, 0), Reason: "one has not given it back yet", Weight: 1, Move: "two"},
			{Name: "stopped", State: admin.StatePaused, Weight: 1, Paused: admin.PausedReleased, Reason: "it is paused; nobody holds it"},
		},
	}
	for name, write := range map[string]func(f *strings.Builder) error{
		"describe.txt":  func(b *strings.Builder) error { return describeText(b, d) },
		"describe.json": func(b *strings.Builder) error { return describeJSON(b, d) },
	} {
		var b strings.Builder
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("testdata", name)
		if os.Getenv("REWRITE") != "" {
			if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil || b.String() != string(want) {
			t.Errorf("%v; %s is not (REWRITE=1 go test writes it anew)\n%s", err, file, b.String())
		}
	}
}

// With a source describe tells how many messages wait; a resource that the source does not know is shown without.
func TestDescribeLag(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a", "b")
	w.want(codeDone, "", "", "create", "g", "--registered")
	w.want(codeDone, "", "", "resources", "add", "g", "in", "none")
	w.want(codeDone, "LAG", "", "describe", "g", "--source", "file://"+w.dir)
	w.want(codeDone, `"lag": 2`, "", "describe", "g", "--source", "file://"+w.dir, "-o", "json")
	if out := w.want(codeDone, "in", "", "describe", "g").out; strings.Contains(out, "LAG") || strings.Contains(out, "LAST ERROR") {
		t.Errorf("columns for nothing:\n%s", out)
	}
	w.want(codeUsage, "", "--source", "describe", "g", "--source", "nonsense://x")
}

// A source that tells nothing, or cannot be opened, is an error, but the group is shown all the same.
func TestDescribeLagUnknown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.want(codeDone, "", "", "create", "g", "--registered")
	w.want(codeDone, "", "", "resources", "add", "g", "none")
	w.want(codeFailed, "none", "how many messages wait", "describe", "g", "--source", "file://"+w.dir)
	w.want(codeFailed, `"name": "none"`, "how many messages wait", "describe", "g", "--source", "file://"+w.dir, "-o", "json")
	w.want(codeNotFound, "none", "nowhere", "describe", "g", "--source", "file://"+w.dir+"/nowhere")
}

// silent is a source that does not answer how many messages wait.
type silent struct{ sources.Source }

func (silent) Lag(ctx context.Context, _ string) (int64, error) {
	<-ctx.Done()
	return 0, ctx.Err()
}

// A source that does not answer is waited for a few seconds, not for ever; with --watch the group is shown without.
func TestDescribeSilentSource(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sources = []sourceDriver{{scheme: "silent", open: func(context.Context, *url.URL, sourceOptions) (*openSource, error) {
		return &openSource{Source: silent{}, close: func() error { return nil }}, nil
	}}}
	w.want(codeDone, "", "", "create", "g", "--registered")
	w.want(codeDone, "", "", "resources", "add", "g", "a")
	w.want(codeFailed, "unshared", "how many messages wait", "describe", "g", "--source", "silent:")
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	_, end := watching(t, w, kept{w.store}, out, "--source", "silent:")
	waittest.Until(t, "the group is shown", func() bool { b, _ := os.ReadFile(out.Name()); return strings.Contains(string(b), "unshared") })
	if code := end(); code != codeDone {
		t.Errorf("exit %d", code)
	}
}
