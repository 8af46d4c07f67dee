package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rebalancer-go/rebalancer"
)

// The marks of a record.
const (
	began = "began"
	ended = "ended"
)

// openJournal opens the file into which one node's handlers write.
func openJournal(dir, node string) (*os.File, error) {
	return os.OpenFile(filepath.Join(dir, node+".journal"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
}

// record writes one line, at once: what was written before a kill stays. It tells the stage too.
func record(journal *os.File, mark string, m *rebalancer.Message) error {
	_, err := fmt.Fprintf(journal, "%s %d %d %s %s\n", mark, time.Now().UnixNano(), m.Fence, m.Resource, m.ID)
	fmt.Println(mark, m.Resource)
	return err
}

// work is one call of a handler.
type work struct {
	node, directory, file string
	fence                 int64
	from, to              time.Time
}

// findings are what the journals of all nodes say.
type findings struct {
	calls    []work
	files    map[string]int // how often each was begun
	overlaps int            // of two nodes in one directory
	shrunk   int            // fences that were not greater than an earlier holder's
}

// readJournals reads what the handlers wrote. A call without an end ended with its process, at dead.
func readJournals(dir string, dead time.Time) (*findings, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.journal"))
	if err != nil {
		return nil, err
	}
	f := &findings{files: map[string]int{}}
	for _, name := range names {
		if err := f.read(name, dead); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(f.calls, func(a, b work) int { return a.from.Compare(b.from) })
	f.compare()
	return f, nil
}

func (f *findings) read(name string, dead time.Time) error {
	in, err := os.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	node := strings.TrimSuffix(filepath.Base(name), ".journal")
	open := map[string]int{} // the call that works a directory
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var mark, directory, file string
		var at, fence int64
		if _, err := fmt.Sscan(lines.Text(), &mark, &at, &fence, &directory, &file); err != nil {
			return fmt.Errorf("%s: %q: %w", name, lines.Text(), err)
		}
		if mark == ended {
			f.calls[open[directory]].to = time.Unix(0, at)
			continue
		}
		open[directory] = len(f.calls)
		f.calls = append(f.calls, work{node: node, directory: directory, file: file, fence: fence, from: time.Unix(0, at), to: dead})
		f.files[directory+"/"+file]++
	}
	return lines.Err()
}

// compare looks for two nodes in one directory at once. The calls are in the order of their beginnings.
func (f *findings) compare() {
	last := map[string]work{} // by directory: the call that ended last
	for _, c := range f.calls {
		l, ok := last[c.directory]
		if ok && l.node != c.node {
			if c.from.Before(l.to) {
				f.overlaps++
			}
			if c.fence <= l.fence {
				f.shrunk++
			}
		}
		if !ok || c.to.After(l.to) {
			last[c.directory] = c
		}
	}
}

// takeOver is the time from the kill until every directory that the victim had worked was worked by another.
func (f *findings) takeOver(victim string, killed time.Time) (longest time.Duration, directories int) {
	had := map[string]bool{}
	for _, c := range f.calls {
		switch {
		case c.node == victim:
			had[c.directory] = true
		case had[c.directory] && c.from.After(killed):
			longest = max(longest, c.from.Sub(killed))
			directories++
			delete(had, c.directory)
		}
	}
	return longest, directories
}
