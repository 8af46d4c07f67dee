// Command cmd judges traces of machines of package coord in Go, and writes them as modules for the specification's trace module.
//
//	go run ./spec/trace/cmd [-batch N] [-alter N] DIRECTORY FILE…
//
// The modules are Batch1, Batch2 and so on, each with traces of one kind of barrier, up to N in each. With -alter, files are written of one trace
// each, with one event altered in one of the ways that package coord/trace lists: the specification must refuse each of them.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rebalancer-go/rebalancer/coord/trace"
)

func main() {
	batch := flag.Int("batch", 50, "how many traces stand in a module")
	alter := flag.Int("alter", 0, "of how many traces altered ones are written, instead of the traces themselves")
	flag.Parse()
	if flag.NArg() < 2 {
		fmt.Fprintln(os.Stderr, "usage: cmd [-batch N] [-alter N] DIRECTORY FILE…")
		os.Exit(2)
	}
	w := &work{dir: flag.Arg(0), batch: *batch}
	var err error
	if *alter > 0 {
		err = w.altered(flag.Args()[1:], *alter)
	} else {
		err = w.all(flag.Args()[1:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// work is a set of modules that are being written.
type work struct {
	dir           string
	batch         int
	modules       int
	traces, steps int
	lines, empty  int
	pending       map[bool][]*trace.History // by kind of barrier
}

func read(file string) ([]trace.Line, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	lines, err := trace.Decode(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return lines, nil
}

// all judges each file, and writes modules of those in which something is worked.
func (w *work) all(files []string) error {
	w.pending = map[bool][]*trace.History{}
	var bad []error
	for _, file := range files {
		lines, err := read(file)
		if err != nil {
			return err
		}
		h, err := trace.Explain(lines)
		if err == nil {
			err = trace.Check(h)
		}
		if errors.Is(err, trace.ErrNothing) {
			w.empty++
			continue
		}
		if err != nil { // the specification is asked all the same
			bad = append(bad, fmt.Errorf("%s: %w", file, err))
		}
		if h == nil {
			continue
		}
		w.traces, w.lines, w.steps = w.traces+1, w.lines+len(lines), w.steps+len(h.Steps)
		if w.pending[h.Global] = append(w.pending[h.Global], h); len(w.pending[h.Global]) == w.batch {
			if err := w.flush(h.Global); err != nil {
				return err
			}
		}
	}
	for _, global := range []bool{false, true} {
		if err := w.flush(global); err != nil {
			return err
		}
	}
	fmt.Printf("%d traces, %d lines, %d steps, in %d modules; %d in which nothing is worked left out; %d refused in Go\n", w.traces, w.lines, w.steps, w.modules, w.empty, len(bad))
	return errors.Join(bad...)
}

func (w *work) flush(global bool) error {
	all := w.pending[global]
	if len(all) == 0 {
		return nil
	}
	w.pending[global] = nil
	return w.write(all)
}

func (w *work) write(all []*trace.History) error {
	w.modules++
	name := fmt.Sprintf("Batch%d", w.modules)
	module, config, err := trace.Module(name, all)
	if err != nil {
		return err
	}
	base := filepath.Join(w.dir, name)
	return errors.Join(os.WriteFile(base+".tla", []byte(module), 0o600), os.WriteFile(base+".cfg", []byte(config), 0o600))
}

// altered writes a module for each way to alter one of the first traces in which there is something to alter. What Go does not refuse is an
// error already.
func (w *work) altered(files []string, traces int) error {
	var bad []error
	for _, file := range files {
		if w.traces == traces {
			break
		}
		lines, err := read(file)
		if err != nil {
			return err
		}
		if h, err := trace.Explain(lines); err != nil || trace.Check(h) != nil {
			continue
		}
		w.traces++
		for _, a := range trace.Alterations() {
			other, ok, err := trace.Alter(lines, a, 0)
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
			h, err := trace.Explain(other)
			if err != nil {
				continue // it cannot even be put into an order
			}
			if trace.Check(h) == nil {
				bad = append(bad, fmt.Errorf("%s: %s: not refused in Go", file, a.Name))
			}
			if err := w.write([]*trace.History{h}); err != nil {
				return err
			}
			fmt.Printf("Batch%d: %s: %s\n", w.modules, filepath.Base(file), a.Name)
		}
	}
	return errors.Join(bad...)
}
