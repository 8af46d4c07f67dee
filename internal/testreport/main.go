// Command testreport reads what `go test -json` prints and writes what a person wants to see: the line of each package, all that a
// failed test said, and of the others only what they were run with. It adds one line to a file of results and fails
// when a test failed, was skipped, or when none ran at all.
//
//	go test -json ./… | testreport -results FILE NAME
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"
)

func main() {
	results := flag.String("results", "", "add a line to this file: result, passed, failed, skipped, seconds, name")
	flag.Parse()
	began := time.Now()
	r := newReport(os.Stdout)
	if err := r.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(1)
	}
	if *results != "" {
		if err := r.save(*results, strings.Join(flag.Args(), " "), time.Since(began)); err != nil {
			fmt.Fprintln(os.Stderr, "testreport:", err)
			os.Exit(1)
		}
	}
	if !r.good() {
		os.Exit(1)
	}
}

// event is a line of go test -json.
type event struct {
	Action, Package, Test, Output string
}

// report is what is known so far.
type report struct {
	out                     io.Writer
	said                    map[event]*bytes.Buffer // by package and test: what it printed
	passed, failed, skipped int
	undeclared              int  // skipped, other than what a driver declares impossible
	broken                  bool // a package failed outside its tests, or did not build
}

func newReport(out io.Writer) *report { return &report{out: out, said: map[event]*bytes.Buffer{}} }

func (r *report) good() bool {
	return r.failed == 0 && r.undeclared == 0 && !r.broken && r.passed > 0
}

func (r *report) read(in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 1<<16), 64<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil || e.Action == "" {
			fmt.Fprintln(r.out, lines.Text()) // not of a test: the go command itself
			continue
		}
		r.take(e)
	}
	return lines.Err()
}

func (r *report) take(e event) {
	switch {
	case e.Action == "build-output":
		fmt.Fprint(r.out, e.Output)
	case e.Action == "build-fail":
		r.broken = true
	case e.Test == "":
		r.takePackage(e)
	default:
		r.takeTest(e)
	}
}

// takePackage passes on what a package says outside its tests: its one line, or how it broke.
func (r *report) takePackage(e event) {
	switch e.Action {
	case "output":
		if e.Output != "PASS\n" && !strings.HasPrefix(e.Output, "-test.shuffle") {
			fmt.Fprint(r.out, e.Output)
		}
	case "fail":
		r.broken = true
		for of, text := range r.said { // those that did not come to an end
			if of.Package == e.Package {
				fmt.Fprintf(r.out, "%s %s did not end:\n%s", of.Package, of.Test, text)
				delete(r.said, of)
			}
		}
	}
}

// chosen tells lines that are worth a look although the test passed.
var chosen = regexp.MustCompile(`\b(seeds?|rounds?|worlds?|states|overlaps?)\b`)

// chosenBelow are those of subtests, of which there are many.
var chosenBelow = regexp.MustCompile(`\bstates\b`)

// notPossible begins the reason of a skip that the suite of stores allows, because it checks it.
const notPossible = "the store cannot "

func (r *report) takeTest(e event) {
	key := event{Package: e.Package, Test: e.Test}
	text := r.said[key]
	if text == nil {
		text = &bytes.Buffer{}
		r.said[key] = text
	}
	switch e.Action {
	case "output":
		text.WriteString(e.Output)
		return
	case "pass":
		r.passed++
		r.remark(e.Test, text.String())
	case "fail":
		r.failed++
		fmt.Fprintf(r.out, "%s\n%s", e.Package, text)
	case "skip":
		r.skipped++
		if !strings.Contains(text.String(), notPossible) {
			r.undeclared++
			fmt.Fprintf(r.out, "skipped: %s\n%s", e.Package, text)
		}
	default: // run, pause, cont
		return
	}
	delete(r.said, key)
}

// remark notes and prints what a test that passed was run with.
func (r *report) remark(test, text string) {
	most := chosen
	if strings.Contains(test, "/") {
		most = chosenBelow
	}
	for _, line := range strings.Split(text, "\n") {
		_, said, ok := strings.Cut(line, ".go:") // as t.Log writes it
		if !ok || !most.MatchString(said) {
			continue
		}
		_, said, _ = strings.Cut(said, ": ")
		fmt.Fprintf(r.out, "    %s: %s\n", test, said)
	}
}

func (r *report) save(name, title string, took time.Duration) error {
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	result := "ok"
	switch {
	case r.failed > 0 || r.broken:
		result = "FAILED"
	case r.undeclared > 0:
		result = "SKIPPED"
	case r.passed == 0:
		result = "RAN NOTHING"
	}
	_, err = fmt.Fprintf(f, "%s\t%d\t%d\t%d\t%.0f\t%s\n", result, r.passed, r.failed, r.skipped, took.Seconds(), title)
	if err != nil {
		return err
	}
	return f.Close()
}
