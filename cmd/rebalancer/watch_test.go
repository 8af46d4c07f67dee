package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/admin"
	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/programtest"
	"github.com/rebalancer-go/rebalancer/internal/waittest"
)

// moody is a store that can be made to answer nothing but an error.
type moody struct {
	kept
	ill atomic.Bool
}

func (m *moody) Open(ctx context.Context, o backends.SessionOptions) (backends.Session, error) {
	if m.ill.Load() {
		return nil, errors.New("the store is\naway")
	}
	return m.kept.Open(ctx, o)
}

func (m *moody) Groups(ctx context.Context) ([]string, error) {
	if m.ill.Load() {
		return nil, errors.New("the store is\naway")
	}
	return m.kept.Groups(ctx)
}

// watching runs describe --watch over a store until the test ends it, and returns what it wrote so far.
func watching(t *testing.T, w *world, store backends.Store, stdout *os.File, flags ...string) (errs *programtest.Buffer, end func() int) {
	t.Helper()
	errs = &programtest.Buffer{}
	p := w.program(stdout, errs)
	p.stores = memoryOf(store)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		ended <- p.run(ctx, append([]string{"describe", "g", "--watch", "--interval", "100ms"}, flags...))
	}()
	return errs, func() int {
		cancel()
		select {
		case code := <-ended:
			return code
		case <-time.After(30 * time.Second):
			t.Fatal("it does not end")
			return -1
		}
	}
}

// TestWatchAppends: where nobody watches, only what changed is written, and an error of the store is said once and does not end it.
func TestWatchAppends(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	store := &moody{kept: kept{w.store}}
	w.want(codeDone, "", "", "create", "g", "--registered")
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	written := func() string { b, _ := os.ReadFile(out.Name()); return string(b) }
	errs, end := watching(t, w, store, out)
	waittest.Until(t, "the group is shown", func() bool { return strings.Contains(written(), "Group        g") })
	whole := written()
	w.want(codeDone, "", "", "resources", "add", "g", "a")
	waittest.Until(t, "a change is written", func() bool { return strings.Contains(written(), "resource a: - → unshared") })
	store.ill.Store(true)
	waittest.Until(t, "the error is said", func() bool { return strings.Contains(errs.String(), "the store is away") })
	w.want(codeDone, "", "", "resources", "remove", "g", "a")
	store.ill.Store(false)
	waittest.Until(t, "it goes on", func() bool { return strings.Contains(written(), "resource a: unshared") })
	if code := end(); code != codeDone {
		t.Errorf("code %d", code)
	}
	changes := strings.TrimPrefix(written(), whole)
	for line := range strings.SplitSeq(strings.TrimSpace(changes), "\n") {
		if _, err := time.Parse(time.RFC3339, strings.Fields(line)[0]); err != nil {
			t.Errorf("no time in %q", line)
		}
	}
	if strings.Contains(changes, "Group  ") || strings.Contains(changes, "\x1b") || strings.Count(errs.String(), "away") != 1 || !strings.Contains(errs.String(), "answers again") {
		t.Errorf("stdout\n%s\nstderr\n%s", changes, errs)
	}
}

// TestWatchOnATerminal: the picture is drawn anew, cut to the screen; the last one is left whole.
func TestWatchOnATerminal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	store := &moody{kept: kept{w.store}}
	w.want(codeDone, "", "", "create", "g", "--registered")
	w.want(codeDone, "", "", "resources", "add", "g", "a", "b", "c")
	outside, inside := terminal(t, 200, 10)
	var screen programtest.Buffer
	read := make(chan struct{})
	go func() { _, _ = io.Copy(&screen, outside); close(read) }()
	_, end := watching(t, w, store, inside)
	waittest.Until(t, "it is drawn twice", func() bool { return strings.Count(screen.String(), home+"Every 100ms") > 1 })
	store.ill.Store(true)
	waittest.Until(t, "the error is shown", func() bool {
		return strings.Contains(screen.String(), "ERROR        describe: ") && strings.Contains(screen.String(), "the store is away")
	})
	store.ill.Store(false)
	if code := end(); code != codeDone {
		t.Errorf("code %d", code)
	}
	waittest.Until(t, "the screen is given back", func() bool { return strings.Contains(screen.String(), leaveScreen) })
	inside.Close()
	<-read
	drawn, left, _ := strings.Cut(screen.String(), leaveScreen)
	if !strings.HasPrefix(drawn, enterScreen) || !strings.Contains(drawn, "lines more") || !strings.Contains(left, "RESOURCE") || strings.Contains(left, "lines more") {
		t.Errorf("%q", screen.String())
	}
	for picture := range strings.SplitSeq(drawn, home) {
		if n := strings.Count(picture, "\n"); n > 9 {
			t.Errorf("%d lines: %q", n, picture)
		}
	}
}

func TestWatchInJSON(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.want(codeDone, "", "", "create", "g", "--registered")
	r, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var lines programtest.Buffer
	read := make(chan struct{})
	go func() { _, _ = io.Copy(&lines, r); close(read) }()
	_, end := watching(t, w, kept{w.store}, out, "-o", "json")
	waittest.Until(t, "the group is shown", func() bool { return strings.Count(lines.String(), "\n") == 1 })
	w.want(codeDone, "", "", "resources", "add", "g", "a")
	waittest.Until(t, "a change is written", func() bool { return strings.Count(lines.String(), "\n") > 1 })
	if code := end(); code != codeDone {
		t.Errorf("code %d", code)
	}
	out.Close()
	<-read
	for line := range strings.SplitSeq(strings.TrimSpace(lines.String()), "\n") {
		var g jsonGroup
		if err := json.Unmarshal([]byte(line), &g); err != nil || g.Group != "g" {
			t.Errorf("%v: %s", err, line)
		}
	}
}

// TestWatchEnds at once for what cannot become right by waiting.
func TestWatchEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.want(codeNotFound, "", "no such group", "describe", "g", "--watch")
	w.want(codeUsage, "", `contains "/"`, "describe", "a/b", "--watch")
	w.want(codeUsage, "", "--interval is 1ms", "describe", "g", "--watch", "--interval", "1ms")
}

func TestChanges(t *testing.T) {
	t.Parallel()
	a := admin.Description{
		Coordinator: "one", Generation: 1,
		Nodes:     []admin.Node{{Name: "two", Weight: 1, Left: time.Second}, {Name: "one", Weight: 1}},
		Resources: []admin.Resource{{Name: "b", State: admin.StateHeld, Owner: "one", Fence: 1}, {Name: "a", State: admin.StateHeld, Owner: "one", Fence: 2}},
	}
	b := admin.Description{
		Coordinator: "one", Generation: 2, Drained: []string{"one"},
		Reserved:  []admin.Reservation{{Node: "gone", Resources: []string{"x", "y"}}},
		Nodes:     []admin.Node{{Name: "one", Weight: 1, Holds: 1, Drained: true}, {Name: "three", Weight: 1, Max: 4}},
		Resources: []admin.Resource{{Name: "a", State: admin.StateHeld, Owner: "three", Fence: 3, Paused: admin.PausedKept}, {Name: "b", State: admin.StateHeld, Owner: "one", Fence: 1}},
	}
	want := []string{
		"generation: 1 → 2", "drained: - → one", "reserved: - → 2 resources for gone",
		"node one: holds 0, assigned 0, priority 0, weight 1 → holds 1, assigned 0, priority 0, weight 1, drained",
		"node three: - → holds 0, assigned 0, priority 0, weight 1, max 4",
		"node two: holds 0, assigned 0, priority 0, weight 1 → -",
		"resource a: held by one, fence 2 → held by three, fence 3, paused (" + admin.PausedKept + ")",
	}
	if got := changesOf(a, b); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	a.Nodes[0].Left = time.Minute
	if got := changesOf(a, a); len(got) > 0 {
		t.Errorf("%q", got)
	}
}

func TestFit(t *testing.T) {
	t.Parallel()
	text := "aé\nbcd\nefg\nh\n"
	if got, want := fit(text, 2, 3), "aé"+clearLine+"\r\nbc"+clearLine+"\r\n… "+clearLine; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := fit(text, 0, 0); strings.Count(got, clearLine) != 4 || !strings.Contains(got, "efg") {
		t.Errorf("%q", got)
	}
}
