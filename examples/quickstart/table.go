package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

// table is the live table of who holds what: one line for each change, so that it reads well in a file too.
type table struct {
	began time.Time

	mu     sync.Mutex
	holder map[string]string        // by directory
	files  int                      // handled
	next   map[string]chan struct{} // by node: closed when it begins its next file
	shown  string
	timer  *time.Timer   // until what changed is shown; nil when nothing did
	change chan struct{} // closed at the next one
}

// gather is how long changes wait for others to be shown with.
const gather = 100 * time.Millisecond

func newTable() *table {
	t := &table{began: time.Now(), holder: map[string]string{}, next: map[string]chan struct{}{}, change: make(chan struct{})}
	fmt.Printf("%8s  %s  files handled\n", "", strings.Join(columns(func(d string) string { return d }), "  "))
	return t
}

func columns(f func(directory string) string) []string {
	var out []string
	for _, d := range directories() {
		out = append(out, fmt.Sprintf("%-2s", f(d)))
	}
	return out
}

// tell takes what a node says.
func (t *table) tell(node, what, directory string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case what == "claimed":
		t.holder[directory] = node
	case what == began:
		if next := t.next[node]; next != nil {
			close(next)
			delete(t.next, node)
		}
	case what == ended:
		t.files++
	case t.holder[directory] == node: // released or lost
		delete(t.holder, directory)
	}
	t.changed()
}

// left forgets what a node held that is no more.
func (t *table) left(node string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for d, n := range t.holder {
		if n == node {
			delete(t.holder, d)
		}
	}
	t.changed()
}

// changed wakes who waits, and shows a line soon.
func (t *table) changed() {
	close(t.change)
	t.change = make(chan struct{})
	if t.timer == nil {
		t.timer = time.AfterFunc(gather, func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.show()
		})
	}
}

// show writes a line if the holders are others than in the last one.
func (t *table) show() {
	if t.timer == nil {
		return
	}
	t.timer.Stop()
	t.timer = nil
	line := strings.Join(columns(func(d string) string {
		if t.holder[d] == "" {
			return "-"
		}
		return t.holder[d]
	}), "  ")
	if line != t.shown {
		t.shown = line
		fmt.Printf("%s  %s  %5d\n", t.time(), line, t.files)
	}
}

func (t *table) time() string { return fmt.Sprintf("%6.2f s", time.Since(t.began).Seconds()) }

// note writes a line beside the table.
func (t *table) note(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.show()
	fmt.Printf("%s  %s\n", t.time(), fmt.Sprintf(format, args...))
}

// wait returns when until holds, or an error when that takes too long.
func (t *table) wait(ctx context.Context, what string, until func() bool) error {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		t.mu.Lock()
		change := t.change
		t.mu.Unlock()
		if until() {
			return nil
		}
		select {
		case <-change:
		case <-time.After(everyFile): // until may look at more than the table
		case <-limit.C:
			return fmt.Errorf("waited %v for %s", patience, what)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// holds is the number of directories that a node holds.
func (t *table) holds(node string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for _, holder := range t.holder {
		if holder == node {
			n++
		}
	}
	return n
}

// fair tells whether the nodes hold everything, within one of each other.
func (t *table) fair(nodes ...string) bool {
	least, most, all := len(directories()), 0, 0
	for _, n := range nodes {
		h := t.holds(n)
		least, most, all = min(least, h), max(most, h), all+h
	}
	return all == len(directories()) && most-least <= 1
}

// begins returns a channel that is closed when the node begins its next file.
func (t *table) begins(node string) <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	next := make(chan struct{})
	t.next[node] = next
	return next
}

func (t *table) handled() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.files
}
