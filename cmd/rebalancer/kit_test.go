package main

import (
	"bytes"
	"context"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/backends/memory"
	"github.com/rebalancer-go/rebalancer/internal/programtest"
	"github.com/rebalancer-go/rebalancer/internal/supervise"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == superviseMode {
		os.Exit(supervise.Main())
	}
	if len(os.Args) > 1 && slices.Contains([]string{completeMode, "completion"}, os.Args[1]) { // a shell under test calls the program
		main()
	}
	goleak.VerifyTestMain(m)
}

// world is a program whose only store is in memory, shared by its calls.
type world struct {
	t     *testing.T
	store *memory.Store
	dir   string // root of the file source, with a directory "in"
	env   map[string]string

	sources []sourceDriver // nil: those of the program
}

type kept struct{ backends.Store }

func (kept) Close() error { return nil }

func newWorld(t *testing.T) *world {
	w := &world{t: t, store: memory.New(), dir: t.TempDir(), env: map[string]string{"REBALANCER_STORE": "test:"}}
	if err := os.Mkdir(filepath.Join(w.dir, "in"), 0o700); err != nil {
		t.Fatal(err)
	}
	return w
}

// result is what one call of the program did.
type result struct {
	code     int
	out, err string
}

func (w *world) program(out *os.File, errs *programtest.Buffer) *program {
	drivers := w.sources
	if drivers == nil {
		drivers = sourceDrivers()
	}
	return &program{
		stdout: out, stderr: errs, supervisor: []string{superviseMode}, sources: drivers,
		lookup: func(k string) (string, bool) { v, ok := w.env[k]; return v, ok },
		stores: []storeDriver{{scheme: "test", form: "test:", open: func(context.Context, *url.URL, bool) (backends.Store, error) {
			return kept{w.store}, nil
		}}, memoryStore()},
	}
}

func (w *world) run(ctx context.Context, args ...string) result {
	w.t.Helper()
	return w.runOn(ctx, nil, args)
}

// runOn runs the program with these drivers of stores; nil: those of the world.
func (w *world) runOn(ctx context.Context, stores []storeDriver, args []string) result {
	w.t.Helper()
	out, err := os.CreateTemp(w.t.TempDir(), "out")
	if err != nil {
		w.t.Fatal(err)
	}
	defer out.Close()
	var errs programtest.Buffer
	p := w.program(out, &errs)
	if stores != nil {
		p.stores = stores
	}
	code := p.run(ctx, args)
	b, err := os.ReadFile(out.Name())
	if err != nil {
		w.t.Fatal(err)
	}
	return result{code, string(b), errs.String()}
}

// runOver runs the program over another store.
func (w *world) runOver(s backends.Store, args ...string) (out, errs string) {
	w.t.Helper()
	return w.runWith(memoryOf(s), args...)
}

// memoryOf are drivers whose only store is this one.
func memoryOf(s backends.Store) []storeDriver {
	return []storeDriver{{scheme: "test", open: func(context.Context, *url.URL, bool) (backends.Store, error) { return s, nil }}}
}

// runWith runs the program with other drivers.
func (w *world) runWith(stores []storeDriver, args ...string) (out, errs string) {
	w.t.Helper()
	r := w.runOn(w.t.Context(), stores, args)
	return r.out, r.err
}

// want runs the program and checks its exit code and that both outputs hold what is asked for.
func (w *world) want(code int, out, errs string, args ...string) result {
	w.t.Helper()
	r := w.run(w.t.Context(), args...)
	if r.code != code || !strings.Contains(r.out, out) || !strings.Contains(r.err, errs) {
		w.t.Errorf("rebalancer %s: exit %d, want %d\n--- stdout (want %q)\n%s--- stderr (want %q)\n%s",
			strings.Join(args, " "), r.code, code, out, r.out, errs, r.err)
	}
	return r
}

// put writes messages into the directory in.
func (w *world) put(names ...string) {
	w.t.Helper()
	for _, n := range names {
		if err := os.WriteFile(filepath.Join(w.dir, "in", n), []byte("body of "+n), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) left(dir string) []string {
	w.t.Helper()
	es, err := os.ReadDir(filepath.Join(w.dir, dir))
	if err != nil {
		w.t.Fatal(err)
	}
	var names []string
	for _, e := range es {
		if !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}

// consume is a call of consume on the directory in, with flags and perhaps a command.
func (w *world) consume(flags ...string) []string {
	return append([]string{"consume", "g", "--source", "file://" + w.dir, "--resource", "in", "--ttl", "5s"}, flags...)
}

func lineCount(file string) int {
	b, _ := os.ReadFile(file)
	return bytes.Count(b, []byte("\n"))
}
