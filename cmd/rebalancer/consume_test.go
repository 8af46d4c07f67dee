package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/internal/programtest"
	"github.com/rebalancer-go/rebalancer/internal/waittest"
)

func TestCommandPerMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a", "b", "c d")
	out := filepath.Join(t.TempDir(), "out")
	script := `echo "$RB_GROUP|$RB_NODE|$RB_RESOURCE|$RB_KEY|$RB_ATTEMPT|$RB_HEADERS|$(cat)|$1|$RB_FENCE" >>"$0"; echo output`
	r := w.want(codeDone, "output\noutput\noutput\n", "", w.consume("--node", "n", "--count", "3", "--", "sh", "-c", script, out, "arg")...)
	b, _ := os.ReadFile(out)
	lines := strings.Split(string(b), "\n")
	for i, name := range []string{"a", "b", "c d"} {
		want := fmt.Sprintf("g|n|in|%s|1|{}|body of %s|arg|", name, name)
		if len(lines) != 4 || !strings.HasPrefix(lines[i], want) || len(lines[i]) < len(want)+10 {
			t.Errorf("got %q, want %s…", b, want)
		}
	}
	if left := w.left("in"); len(left) > 0 {
		t.Errorf("left: %q\n%s", left, r.err)
	}
}

// Failures: tried again in place, exit 65 at once, then moved away with what the command said.
func TestFailures(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("bad", "flaky", "good", "worse")
	log := filepath.Join(t.TempDir(), "log")
	script := `echo $RB_KEY >>"$0"; case $RB_KEY in good) ;; flaky) test $RB_ATTEMPT = 2;; bad) echo it is bad >&2; exit 65;; worse) echo it is worse >&2; exit 3;; esac`
	w.want(codeDone, "", "", w.consume("--on-success", "move:done", "--on-failure", "move:failed", "--attempts", "2", "--exit-idle", "4s", "--", "sh", "-c", script, log)...)
	b, _ := os.ReadFile(log)
	if got := strings.Join(strings.Fields(string(b)), " "); got != "bad flaky flaky good worse worse" {
		t.Errorf("worked %q", got)
	}
	if got := strings.Join(w.left("in/done"), " "); got != "flaky good" {
		t.Errorf("done: %q", got)
	}
	var reasons strings.Builder
	for _, n := range w.left("in/failed") {
		b, _ := os.ReadFile(filepath.Join(w.dir, "in/failed", n))
		reasons.WriteString(n + " " + string(b) + "\n")
	}
	for _, want := range []string{"bad ", "worse ", "exited with 65: it is bad", "exited with 3: it is worse"} {
		if !strings.Contains(reasons.String(), want) {
			t.Errorf("failed folder lacks %q:\n%s", want, reasons.String())
		}
	}
}

func TestOnFailureStop(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a", "b")
	log := filepath.Join(t.TempDir(), "log")
	w.want(codeFailed, "", "resource in does not get on", w.consume("--on-failure", "stop", "--exit-idle", "3s", "--", "sh", "-c", `echo $RB_KEY >>"$0"; exit 65`, log)...)
	if b, _ := os.ReadFile(log); string(b) != "a\n" {
		t.Errorf("worked %q", b)
	}
	if got := strings.Join(w.left("in"), " "); got != "a b" {
		t.Errorf("left: %q", got)
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a")
	if err := os.WriteFile(filepath.Join(w.dir, "in", "b\xff"), []byte{0xff, 0}, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.dir, "in", "c"), make([]byte, maxLineBody+1), 0o600); err != nil {
		t.Fatal(err)
	}
	r := w.want(codeDone, "", "", w.consume("--node", "n", "--count", "3", "--on-success", "move:done")...)
	var got []line
	for l := range strings.SplitSeq(strings.TrimSpace(r.out), "\n") {
		var v line
		if err := json.Unmarshal([]byte(l), &v); err != nil {
			t.Fatalf("%v: %s", err, l)
		}
		got = append(got, v)
	}
	if len(got) != 3 {
		t.Fatalf("%s", r.out)
	}
	a, b, c := got[0], got[1], got[2]
	if a.Group != "g" || a.Node != "n" || a.Resource != "in" || *a.Key != "a" || a.Attempt != 1 || a.Fence == 0 || *a.Size != 9 ||
		*a.Path != filepath.Join(w.dir, "in", "a") || *a.Body != "body of a" || a.Published == nil || *a.ID == "" {
		t.Errorf("%s", r.out)
	}
	if b.Key != nil || string(b.Key64) != "b\xff" || b.Body != nil || string(b.Body64) != "\xff\x00" || string(b.Path64) != filepath.Join(w.dir, "in", "b\xff") {
		t.Errorf("%s", r.out)
	}
	if !c.BodyTooBig || c.Body != nil || *c.Size != maxLineBody+1 {
		t.Errorf("%+v", c)
	}
	if got := w.left("in/done"); len(got) != 3 {
		t.Errorf("done: %q", got)
	}
}

// A reader that goes away gets nothing more, and what it did not get is given back.
func TestClosedOutput(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a", "b")
	r, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer out.Close()
	var errs programtest.Buffer
	code := w.program(out, &errs).run(t.Context(), w.consume("--on-success", "delete"))
	if code != codeFailed || !strings.Contains(errs.String(), "standard output") {
		t.Errorf("exit %d: %s", code, errs.String())
	}
	if got := strings.Join(w.left("in"), " "); got != "a b" {
		t.Errorf("left: %q", got)
	}
}

// A reader may go away while no message comes.
func TestClosedOutputIsNoticedWithoutAMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	var errs programtest.Buffer
	code := make(chan int, 1)
	go func() { code <- w.program(out, &errs).run(t.Context(), w.consume("--on-success", "delete")) }()
	waittest.Until(t, "the node has joined", func() bool { return strings.Contains(errs.String(), "msg=joined") })
	r.Close()
	waittest.Until(t, "the program ends", func() bool { return len(code) > 0 })
	if c := <-code; c != codeFailed || !strings.Contains(errs.String(), "standard output: nobody reads it any more") {
		t.Errorf("exit %d: %s", c, errs.String())
	}
}

// What does not fit into its line is not deleted: the line would be all that is left of it.
func TestLinesDoNotDeleteWhatTheyDoNotHold(t *testing.T) {
	t.Parallel()
	for _, failure := range []string{"", "move:failed"} {
		w := newWorld(t)
		w.put("b")
		if err := os.WriteFile(filepath.Join(w.dir, "in", "a"), make([]byte, maxLineBody+1), 0o600); err != nil {
			t.Fatal(err)
		}
		place, code := "in", codeFailed
		args := w.consume("--on-success", "delete", "--exit-idle", "3s")
		if failure != "" {
			place, code = "in/failed", codeDone
			args = append(args, "--on-failure", failure)
		}
		r := w.want(code, "", "does not fit into a line", args...)
		if strings.Contains(r.out, "body_too_big") {
			t.Errorf("a line that lacks its body was written: %s", r.out)
		}
		if got := w.left(place); len(got) == 0 || got[0] != "a" {
			t.Errorf("on failure %q: %q are in %s", failure, got, place)
		}
	}
}

func TestRegisteredResources(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.want(codeDone, "", "", "create", "g", "--registered", "--ttl", "5s")
	w.want(codeDone, "", "", "resources", "add", "g", "in")
	w.put("a")
	w.want(codeDone, "", "", "consume", "g", "--source", "file://"+w.dir, "--registered", "--ttl", "5s", "--count", "1", "--", "true")

	// A node that differs from those that run is refused by what differs.
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan result)
	go func() {
		ended <- w.run(ctx, "consume", "g", "--source", "file://"+w.dir, "--registered", "--ttl", "5s", "--", "true")
	}()
	waittest.Until(t, "the node is there", func() bool { return strings.Contains(w.run(ctx, "describe", "g").out, "held") })
	w.want(codeRefused, "", "resources of group", w.consume("--", "true")...)
	w.want(codeRefused, "", "ttl", "consume", "g", "--source", "file://"+w.dir, "--registered", "--ttl", "6s", "--", "true")
	w.want(codeRefused, "", "barrier", "consume", "g", "--source", "file://"+w.dir, "--registered", "--ttl", "5s", "--barrier", "global", "--", "true")
	cancel()
	if r := <-ended; r.code != codeDone {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
}

func TestMissingDirectory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.want(codeNotFound, "", "no directory", "consume", "g", "--source", "file:///no/such/root", "--resource", "in", "--on-success", "delete")
}

// A stop lets the command in hand finish, and takes no further message.
func TestStopDrains(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a", "b")
	log := filepath.Join(t.TempDir(), "log")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		waittest.Until(t, "a command has started", func() bool { return lineCount(log) == 1 })
		cancel()
	}()
	r := w.run(ctx, w.consume("--", "sh", "-c", `echo start >>"$0"; sleep 1; echo end >>"$0"`, log)...)
	if b, _ := os.ReadFile(log); r.code != codeDone || string(b) != "start\nend\n" {
		t.Errorf("exit %d, worked %q\n%s", r.code, b, r.err)
	}
	if got := strings.Join(w.left("in"), " "); got != "b" {
		t.Errorf("left: %q", got)
	}
}

// At the end of the drain the command is told to end, then killed; its message is kept.
func TestDrainEnds(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"obeys":   `trap 'echo term >>"$0"; exit 0' TERM; echo start >>"$0"; while :; do sleep 0.05; done`,
		"ignores": `trap 'echo term >>"$0"' TERM; echo start >>"$0"; while :; do sleep 0.05; done`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.put("a")
			log := filepath.Join(t.TempDir(), "log")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				waittest.Until(t, "a command has started", func() bool { return lineCount(log) == 1 })
				cancel()
			}()
			began := time.Now()
			r := w.run(ctx, w.consume("--drain", "500ms", "--", "sh", "-c", script, log)...)
			if b, _ := os.ReadFile(log); r.code != codeDone || string(b) != "start\nterm\n" {
				t.Errorf("exit %d after %v, worked %q\n%s", r.code, time.Since(began), b, r.err)
			}
			if got := strings.Join(w.left("in"), " "); got != "a" {
				t.Errorf("left: %q", got)
			}
		})
	}
}
