package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/admin"
	"github.com/rebalancer-go/rebalancer/group"
)

func TestWrongUsage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	src := []string{"--source", "file://" + w.dir, "--resource", "in"}
	consume := func(flags ...string) []string {
		return append(append([]string{"consume", "g"}, src...), flags...)
	}
	parameters := func(query string) []string {
		return []string{"consume", "g", "--source", "file://" + w.dir + "?" + query, "--resource", "in", "--on-success", "delete"}
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "a command is missing"},
		{[]string{"frobnicate"}, `no command "frobnicate"`},
		{[]string{"resources"}, "resources list"},
		{[]string{"help", "frobnicate"}, `no command "frobnicate"`},
		{[]string{"consume"}, "arguments are missing"},
		{[]string{"consume", "g"}, "--source is missing"},
		{[]string{"consume", "g"}, "--resource NAME, --registered or --discover PATTERN is missing"},
		{[]string{"consume", "g"}, "--on-success must say"},
		{consume("--registered", "--", "true"), "exclude each other"},
		{consume("--frob", "--", "true"), "flag provided but not defined: -frob"},
		{consume("--ttl", "soon", "--", "true"), "invalid value"},
		{consume("--ttl", "30", "--", "true"), "with its unit"},
		{consume("--ttl", "0s", "--", "true"), "--ttl is 0s"},
		{consume("--barrier", "none", "--", "true"), `--barrier is "none"`},
		{consume("--on-success", "leave"), `--on-success is "leave": it must be delete, move:DIR, keep or tag:KEY=VALUE`},
		{consume("--on-success", "move:"), `--on-success is "move:"`},
		{consume("--on-success", "delete", "--on-failure", "delete"), `--on-failure is "delete": it must be stop, move:DIR, keep or tag:KEY=VALUE`},
		{consume("--on-success", "tag:x"), `--on-success is "tag:x"`},
		{consume("--on-success", "tag:k=v"), "only objects have tags"},
		{consume("--on-success", "move:../x"), "inside"},
		{parameters("done_file=%.done"), "cannot be read"}, // not left out: files would be taken before they are whole
		{parameters("ignore=a;b"), "cannot be read"},
		{consume("--on-success", "delete", "--store", "redis://h?password=%secret"), "--store: the parameters"},
		{parameters("frob=1&other=secret"), "frob, other is not known"},
		{parameters("stable_for=soon"), "stable_for: it must be a duration"},
		{parameters("min_age=-1s"), "min_age: it must be a duration"},
		{parameters("done_file="), "done_file must be given once"},
		{parameters("order=name&order=time"), "order must be given once"},
		{parameters("order=size"), "order: it must be one of name, time"},
		{parameters("empty=drop"), "empty: it must be one of deliver, reject, wait"},
		{parameters("strict_order=perhaps"), "strict_order: it must be true or false"},
		{parameters("done_file=done"), "DoneFile"},
		{parameters("empty=reject"), "OnFailure"},
		{consume("--concurrency", "0", "--", "true"), "--concurrency is 0"},
		{consume("--count", "-1", "--", "true"), "--count is -1"},
		{consume("--"), "the command after -- is missing"},
		{consume("--", "/no/such/command"), "cannot be run"},
		{consume("--on-success", "delete", "--node", "a/b"), "Node"},
		{append(consume("--on-success", "delete"), "surplus"), "too many arguments"},
		{consume("--resource", "in/", "--on-success", "delete"), "one directory"},
		{[]string{"consume", "g", "--source", "gopher://user:secret@host/x", "--resource", "in", "--on-success", "delete"}, `"gopher" is not known`},
		{[]string{"consume", "g", "--source", "file://dir/x", "--resource", "in", "--on-success", "delete"}, "three slashes"},
		{[]string{"consume", "g", "--source", "/data", "--resource", "in", "--on-success", "delete"}, "must be a URL"},
		{consume("--on-success", "delete", "--store", "memory://"), "one process"},
		{consume("--on-success", "delete", "--store", "mysql://u:secret@h/d"), `"mysql" is not known`},
		{consume("--on-success", "delete", "--store", "mysql://u:secret@h:port/d"), "no URL"},
		{consume("--on-success", "delete", "--store", "mysql://u:secret/part@h/d"), "no URL"},
		{consume("--on-success", "delete", "--store", "mysql:u:secret@h/d"), `"mysql" is not known`},
		{consume("--on-success", "delete", "--store", "mysql://h/d?password=secret#secret"), `"mysql" is not known`},
		{[]string{"consume", "g", "--source", "gopher://h/d?password=secret", "--resource", "in", "--on-success", "delete"}, `"gopher" is not known`},
		{[]string{"describe", "g", "-o", "xml"}, "text or json"},
		{[]string{"describe", "a/b"}, `contains "/"`},
		{[]string{"describe", "g", "--", "x"}, "nothing is expected after --"},
		{[]string{"resources", "add", "g"}, "arguments are missing"},
		{consume("--static", "--", "true"), "--static needs --node"},
		{consume("--weight", "0", "--", "true"), "--weight is 0"},
		{consume("--max-resources", "-1", "--", "true"), "--max-resources is -1"},
		{consume("--max-active", "-1", "--", "true"), "--max-active is -1"},
		{consume("--fail-back", "--", "true"), "--fail-back needs --max-active"},
		{consume("--max-moving", "-1", "--", "true"), "--max-moving is -1"},
		{consume("--max-moving-per-node", "-1", "--", "true"), "--max-moving-per-node is -1"},
		{consume("--label", "zone", "--", "true"), `--label is "zone": it must be KEY=VALUE`},
		{consume("--label", "z=a", "--label", "z=b", "--", "true"), "--label z is given twice"},
		{[]string{"create", "g", "--fail-back"}, "--fail-back needs --max-active"},
		{[]string{"create", "g", "--max-active", "-1"}, "--max-active is -1"},
		{[]string{"create", "g", "--max-moving", "-1", "--max-moving-per-node", "-2"}, "--max-moving-per-node is -2"},
		{[]string{"resources", "pause", "g"}, "NAME or --all is missing"},
		{[]string{"resources", "pause", "g", "a", "--all"}, "exclude each other"},
		{[]string{"resources", "resume", "g"}, "NAME or --all is missing"},
		{[]string{"resources", "resume", "g", "a", "--keep"}, "flag provided but not defined"},
		{[]string{"resources", "pin", "g", "a"}, "--to NODE is missing"},
		{[]string{"resources", "move", "g", "a"}, "--to NODE is missing"},
		{[]string{"resources", "unpin", "g"}, "arguments are missing"},
		{[]string{"nodes"}, "nodes list"},
		{[]string{"nodes", "list"}, "arguments are missing"},
		{[]string{"nodes", "drain", "g"}, "arguments are missing"},
		{[]string{"nodes", "drain", "g", "a/b"}, `contains "/"`},
		{[]string{"create", "g", "--ttl", "1ms"}, "at least 100ms"},
	} {
		r := w.want(codeUsage, "", c.want, c.args...)
		if strings.Contains(r.err, "secret") {
			t.Errorf("%q shows a password: %s", c.args, r.err)
		}
		if r.out != "" || !strings.Contains(r.err, " -h`") {
			t.Errorf("%q: stdout %q, stderr without a hint: %q", c.args, r.out, r.err)
		}
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, args := range [][]string{{"help"}, {"-h"}, {"--help"}} {
		if r := w.want(codeDone, "rebalancer consume orders", "", args...); r.err != "" {
			t.Errorf("%q wrote to stderr: %s", args, r.err)
		}
	}
	for _, c := range w.program(nil, nil).commands() {
		args := strings.Fields(c.name)
		a := w.want(codeDone, "Usage: rebalancer "+c.name, "", append([]string{"help"}, args...)...)
		b := w.want(codeDone, "Usage: rebalancer "+c.name, "", append(args, "-h")...)
		if a.out != b.out || a.err != "" {
			t.Errorf("%s: help differs from -h, or wrote to stderr: %q", c.name, a.err)
		}
		f := newFlags(&c)
		c.setup(f)
		f.VisitAll(func(fl *flag.Flag) {
			if !strings.Contains(a.out, "-"+fl.Name) {
				t.Errorf("%s: the help lacks --%s", c.name, fl.Name)
			}
		})
	}
	w.want(codeDone, "rebalancer ", "", "version")
}

// Every flag of every command has its variable, and the flag wins.
func TestFlagsFromTheEnvironment(t *testing.T) {
	t.Parallel()
	values := map[keyKind]string{kindTruth: "true", kindNumber: "7", kindDuration: "7s", kindText: "value", kindURL: "value", kindList: "a=b,c d"}
	w := newWorld(t)
	for _, c := range w.program(nil, nil).commands() {
		f := newFlags(&c)
		c.setup(f)
		var names []string
		f.VisitAll(func(fl *flag.Flag) { names = append(names, fl.Name) })
		for _, name := range names {
			v := values[kindOf(f.Lookup(name))]
			variable := "REBALANCER_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
			get := func(env string, args ...string) string {
				f := newFlags(&c)
				c.setup(f)
				if _, _, err := f.parse(args, func(k string) (string, bool) { return env, k == variable }); err != nil {
					t.Errorf("%s %s: %v", c.name, name, err)
				}
				return f.Lookup(name).Value.String()
			}
			if got := get(v); got != v {
				t.Errorf("%s: %s=%s gives %q", c.name, variable, v, got)
			}
			if got, want := get(""), f.Lookup(name).DefValue; got != want {
				t.Errorf("%s: an empty %s gives %q, want the default %q", c.name, variable, got, want)
			}
			if strings.Contains(v, "7") {
				other := strings.ReplaceAll(v, "7", "9")
				if got := get(other, "--"+name+"="+v); got != v {
					t.Errorf("%s: the flag does not win over %s: %q", c.name, variable, got)
				}
			}
		}
	}
	w.env["REBALANCER_TTL"] = "soon"
	w.want(codeUsage, "", `invalid value "soon" in REBALANCER_TTL`, "create", "g")
	w.env["REBALANCER_TTL"] = "7s"
	w.env["REBALANCER_OUTPUT"] = "json"
	w.want(codeDone, "", "", "create", "g")
	w.want(codeDone, `"ttl": 7`, "", "describe", "g")
	w.want(codeDone, "ttl 7s", "", "describe", "g", "-o", "text")
}

func TestArgumentsAnywhere(t *testing.T) {
	t.Parallel()
	f := newFlags(&command{})
	n := f.Int("n", 0, "")
	pos, rest, err := f.parse([]string{"a", "-n", "1", "b", "--n=2", "c", "--", "-n", "x", "--"}, func(string) (string, bool) { return "", false })
	if err != nil || !reflect.DeepEqual(pos, []string{"a", "b", "c"}) || !reflect.DeepEqual(rest, []string{"-n", "x", "--"}) || *n != 2 {
		t.Errorf("%q, %q, %d, %v", pos, rest, *n, err)
	}
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	for want, errs := range map[int][]error{
		codeFailed:   {errors.New("x"), context.Canceled},
		codeUsage:    {usagef("x"), group.ErrInvalid, admin.ErrInvalid, errors.Join(usagef("x"), usagef("y"))},
		codeNotFound: {admin.ErrNotFound, fmt.Errorf("x: %w", &kindError{errNotFound, "y"})},
		codeRefused:  {admin.ErrRefused, group.ErrMismatch, group.ErrSuperseded, group.ErrDeleted, &kindError{errRefused, "y"}},
		codeStuck:    {group.ErrStuck},
	} {
		for _, err := range errs {
			if got := exitCode(fmt.Errorf("wrapped: %w", err)); got != want {
				t.Errorf("%v: %d, want %d", err, got, want)
			}
		}
	}
}

func TestDefaultStore(t *testing.T) {
	t.Parallel()
	w, state := newWorld(t), t.TempDir()
	w.env["XDG_STATE_HOME"] = filepath.Join(state, "a b?")
	got, err := w.program(nil, nil).defaultStore(false)
	if want := "sqlite://" + state + "/a%20b%3F/rebalancer/rebalancer.db"; err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	if fi, err := os.Stat(filepath.Join(state, "a b?", "rebalancer")); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", fi, err)
	}
	w.env["XDG_STATE_HOME"] = filepath.Join(state, "looking makes nothing")
	if _, err := w.program(nil, nil).defaultStore(true); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(w.env["XDG_STATE_HOME"]); !os.IsNotExist(err) {
		t.Errorf("%v", err)
	}
}

// Wrappers like timeout(1) pass on a signal that the whole group got already.
func TestEchoOfASignal(t *testing.T) {
	t.Parallel()
	start := time.Now()
	var e echo
	for i, step := range []struct {
		s    os.Signal
		at   time.Duration
		want bool
	}{
		{os.Interrupt, 0, false},
		{os.Interrupt, echoTime / 2, true},
		{syscall.SIGTERM, echoTime / 2, false},
		{syscall.SIGTERM, 2 * echoTime, false},
		{syscall.SIGTERM, 3*echoTime - 1, true},
		{syscall.SIGTERM, 3 * echoTime, false},
	} {
		if got := e.is(step.s, start.Add(step.at)); got != step.want {
			t.Errorf("step %d: %v, want %v", i, got, step.want)
		}
	}
}

func TestOperators(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.want(codeNotFound, "", "no such group", "describe", "g")
	w.want(codeNotFound, "", "no such group", "resources", "add", "g", "a")
	w.want(codeDone, "", "", "create", "g", "--registered", "--ttl", "30s")
	w.want(codeDone, "", "exists already", "create", "g", "--registered", "--ttl", "30s")
	w.want(codeRefused, "", "other settings", "create", "g")
	w.want(codeDone, "", "", "create", "g", "--change", "--registered", "--ttl", "40s")
	w.want(codeDone, "", "", "create", "g", "--change", "--registered", "--ttl", "30s")
	w.want(codeDone, "", "b registered\na registered", "resources", "add", "g", "b", "a", "new\nline")
	w.want(codeDone, "", "a was registered already", "resources", "add", "g", "a")
	if r := w.want(codeDone, "", "", "resources", "list", "g"); r.out != "a\nb\n\"new\\nline\"\n" {
		t.Errorf("list: %q", r.out)
	}
	w.want(codeDone, "", "b removed\nc was not registered", "resources", "remove", "g", "b", "c")
	w.want(codeDone, "", "", "create", "static")
	w.want(codeRefused, "", "not registered", "resources", "list", "static")
	if r := w.want(codeDone, "", "", "groups"); r.out != "g\nstatic\n" {
		t.Errorf("groups: %q", r.out)
	}
}
