//go:build linux

package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rebalancer-go/rebalancer/internal/sqlservertest"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
	"github.com/rebalancer-go/rebalancer/internal/waittest"
)

// Exit codes, as the documentation of the program has them.
const (
	done     = 0
	usage    = 2
	notFound = 3
	refused  = 4
)

// command is one of an operator's, with the name of the group left out.
type command struct {
	line string // "resources add G a": G stands for the group
	code int
	says string // in what it writes
}

// TestStoreCommands: what operators do with the program, over each store: of a group that is not there, with names that are not there, and while
// nodes come and go.
func TestStoreCommands(t *testing.T) {
	t.Parallel()
	starts := map[string]func(t *testing.T) string{
		"sqlite":    func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "groups.db") },
		"postgres":  postgresWithTables,
		"redis":     func(t *testing.T) string { return "redis://" + testserver.StartRedis(t, testserver.Redis).Addr() },
		"zookeeper": func(t *testing.T) string { return "zk://" + testserver.StartZooKeeper(t, "").Addr() },
	}
	if os.Getenv(sqlservertest.Variable) != "" {
		starts["sqlserver"] = sqlserverWithTables
	}
	for name, start := range starts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &operator{newProgram(t, "REBALANCER_STORE="+start(t), "REBALANCER_ACTOR=ann"), t.TempDir()}
			o.all("g", done, "create G --registered --ttl 8s", "resources add G a b c")
			o.noGroup()
			stop := o.node("one")
			o.eventually("one works everything", "describe G", "HOLDS", "one")
			o.noSuchName()
			o.besideRebalances()
			o.evicts()
			o.checkpoints(stop)
			o.end()
		})
	}
}

// operations are all that is done with a group that has resources a, b and c and a node one, each of which may be done again.
func operations() []command {
	return []command{
		{"describe G", done, "Coordinator"},
		{"describe G -o json", done, `"resources"`},
		{"resources list G", done, "a"},
		{"resources add G d --weight 2", done, "d "},
		{"resources weight G a --weight 3", done, "a "},
		{"resources pause G b", done, "b paused"},
		{"resources resume G b", done, "b resumed"},
		{"resources pin G c --to one", done, "c"},
		{"resources unpin G c", done, "c"},
		{"resources move G c --to one", done, "c"},
		{"resources remove G d", done, "d "},
		{"nodes list G", done, "one"},
		{"nodes drain G two", done, "two drained"},
		{"nodes undrain G two", done, "two undrained"},
		{"nodes evict G two", done, "two"},
		{"step-down G", done, ""},
		{"checkpoints list G", done, ""},
		{"checkpoints export G", done, ""},
		{"checkpoints reset G none --execute", done, "none has no checkpoint"},
		{"history G", done, "create"},
		{"history G --resource a -o json", done, `"history"`},
	}
}

// noGroup: of a group that is not there each says so, and none makes it.
func (o *operator) noGroup() {
	o.t.Helper()
	for _, c := range append(operations(), command{line: "delete G --confirm G"}) {
		o.one("none", command{c.line, notFound, `"none"`})
	}
	if out, _, _ := o.run("groups"); strings.TrimSpace(out) != "g" {
		o.t.Errorf("groups: %q", out)
	}
}

// noSuchName: a name that is not there is told, or refused where that would be a mistake.
func (o *operator) noSuchName() {
	o.t.Helper()
	for _, c := range []command{
		{"resources remove G none", done, "none was not registered"},
		{"resources weight G none --weight 2", refused, `"none" is not registered`},
		{"resources unpin G none", done, "none was not pinned"},
		{"resources move G none --to one", refused, `"none"`},
		{"resources move G a --to none", refused, `"none" is not there`},
		{"create G --registered --ttl 8s", done, "exists already"},
		{"create G --registered --ttl 9s", refused, "other settings"},
		{"resources add G a", done, "a was registered already"},
		{"resources pin G a --to bad/name", usage, "bad/name"},
		{"nodes evict G none", done, "none is no member"},
		{"nodes drain G bad/name", usage, "bad/name"},
		{"checkpoints reset G none", done, "none has no checkpoint"},
		{"history G --resource none", notFound, `"none"`},
		{"delete G", usage, "--confirm"},
		{"delete G --confirm other", usage, "--confirm"},
		{"delete G --confirm G", refused, "member"},
	} {
		o.one("g", c)
	}
}

// besideRebalances: while a node comes and goes, each command does what it should, twice as well as once, and what changes something is in the history.
func (o *operator) besideRebalances() {
	o.t.Helper()
	ctx, end := context.WithCancel(o.t.Context())
	var guests sync.WaitGroup
	came := 0
	guests.Go(func() {
		for ; ctx.Err() == nil; came++ {
			stop := o.node("guest")
			o.eventually("the guest is there", "nodes list G", "guest")
			stop(done)
		}
	})
	for range 2 {
		for _, c := range operations() {
			o.one("g", c)
		}
	}
	end()
	guests.Wait()
	if came == 0 {
		o.t.Error("no node came and went meanwhile")
	}
	history := o.one("g", command{"history G", done, "rebalance"})
	for _, kind := range []string{"create", "register", "weight", "pause", "resume", "pin", "unpin", "move", "remove", "drain", "undrain", "step-down"} {
		if !slices.ContainsFunc(strings.Split(history, "\n"), func(l string) bool {
			f := strings.Fields(l)
			return len(f) > 2 && strings.Contains(f[1], kind) && f[2] == "ann"
		}) {
			o.t.Errorf("the history does not tell who did %q:\n%s", kind, history)
		}
	}
}

// evicts: a node that is told to go ends as one that was refused, and what was said of it is in the history once.
func (o *operator) evicts() {
	o.t.Helper()
	stop := o.node("visitor")
	o.eventually("the visitor is there", "nodes list G", "visitor")
	o.one("g", command{"nodes evict G visitor --wait 1m", done, "visitor evicted"})
	o.one("g", command{"nodes evict G visitor --wait 1m", done, "visitor is no member"})
	stop(refused)
	if history := o.one("g", command{"history G", done, "evict"}); strings.Count(history, "evict ") != 1 {
		o.t.Errorf("the history does not tell once that a node was evicted:\n%s", history)
	}
}

// checkpoints: what was worked is remembered, and can be forgotten when nobody holds it; then it is worked again. stop ends the last node.
func (o *operator) checkpoints(stop func(code int)) {
	o.t.Helper()
	if err := os.WriteFile(filepath.Join(o.dir, "a", "file"), []byte("text"), 0o600); err != nil {
		o.t.Fatal(err)
	}
	o.worked(1)
	o.one("g", command{"checkpoints list G", done, "a\t"})
	o.one("g", command{"checkpoints export G a", done, `{"resource":"a","key":`})
	o.one("g", command{"checkpoints reset G a --execute", refused, `"one" holds resource "a"`})
	stop(done)
	o.one("g", command{"checkpoints reset G a", done, "a would be reset"})
	o.one("g", command{"checkpoints list G", done, "a\t"})
	o.one("g", command{"checkpoints reset G a none --execute", done, "a reset"})
	o.one("g", command{"checkpoints reset G a --execute", done, "a has no checkpoint"})
	if left := o.one("g", command{line: "checkpoints export G a"}); left != "" {
		o.t.Errorf("left of the checkpoint: %s", left)
	}
	o.one("g", command{"history G", done, "reset"})
	stop = o.node("again")
	o.worked(2)
	stop(done)
}

// worked waits until the file was worked so often.
func (o *operator) worked(times int) {
	o.t.Helper()
	waittest.Until(o.t, fmt.Sprintf("the file was worked %d times", times), func() bool {
		b, _ := os.ReadFile(filepath.Join(o.dir, "worked"))
		return bytes.Count(b, []byte("\n")) == times
	})
}

// end: a group without nodes can be deleted, and is gone.
func (o *operator) end() {
	o.t.Helper()
	o.eventually("nobody is a member", "delete G --confirm G", "", "")
	o.all("g", notFound, "describe G", "resources list G", "step-down G")
	o.one("g", command{"history G", done, "delete"})
	if out, _, _ := o.run("groups"); strings.TrimSpace(out) != "" {
		o.t.Errorf("groups: %q", out)
	}
}
