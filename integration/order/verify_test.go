//go:build linux

package order

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
)

// completion is a line of a node: a message whose handler has succeeded.
type completion struct {
	Node, Resource, Key, Body string
	Fence                     int64
}

// verifier reads what nodes wrote, in the order in which they wrote it: all write to the end of one file.
type verifier struct {
	file *os.File
	r    *bufio.Reader
	part []byte // of a line that is not whole yet

	seen    map[string]int // the greatest number of each key
	at      map[string]completion
	first   int // completions that were the first of their message
	again   int // those that were not
	wrong   []string
	byQueue map[string]int

	last   map[string][]completion // of each queue
	about  string                  // the queue of the first fault
	around strings.Builder         // what it did before and after
}

func newVerifier(t *testing.T, path string) *verifier {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDONLY|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return &verifier{file: f, r: bufio.NewReader(f), seen: map[string]int{}, at: map[string]completion{}, byQueue: map[string]int{}}
}

// read takes in what has been written since.
func (v *verifier) read() {
	for {
		b, err := v.r.ReadBytes('\n')
		v.part = append(v.part, b...)
		if err != nil {
			if err != io.EOF {
				v.fault("%v", err)
			}
			return
		}
		var c completion
		if err := json.Unmarshal(v.part, &c); err != nil {
			v.fault("%v: %q", err, v.part)
		} else {
			v.add(c)
		}
		v.part = v.part[:0]
	}
}

func (v *verifier) add(c completion) {
	n, err := strconv.Atoi(c.Body)
	if err != nil {
		v.fault("%+v: %v", c, err)
		return
	}
	last := v.seen[c.Key]
	v.keep(c)
	switch {
	case n <= last: // a repeat: what was done before it was settled may be done again
		v.again++
		return
	case n > last+1:
		v.fault("gap: %+v after %+v", c, v.at[c.Key])
		v.tell(c)
	}
	v.first++
	v.byQueue[c.Resource]++
	v.seen[c.Key], v.at[c.Key] = n, c
}

// keep remembers what a queue did last, and writes down what it does after a fault.
func (v *verifier) keep(c completion) {
	if v.last == nil {
		v.last = map[string][]completion{}
	}
	all := append(v.last[c.Resource], c)
	v.last[c.Resource] = all[max(0, len(all)-40):]
	if c.Resource == v.about && v.around.Len() < 16<<10 {
		v.write(c)
	}
}

// tell writes down what the queue of a first fault did before.
func (v *verifier) tell(c completion) {
	if v.about != "" {
		return
	}
	v.about = c.Resource
	for _, c := range v.last[c.Resource] {
		v.write(c)
	}
}

func (v *verifier) write(c completion) {
	fmt.Fprintf(&v.around, "\n%s %s %s (fence %d)", c.Node, c.Key, c.Body, c.Fence)
}

func (v *verifier) fault(format string, args ...any) {
	v.wrong = append(v.wrong, fmt.Sprintf(format, args...))
}

// complete tells whether everything that was sent was done.
func (v *verifier) complete(sent map[string]int) bool {
	v.read()
	return len(v.missing(sent)) == 0
}

// missing names what was not done.
func (v *verifier) missing(sent map[string]int) (keys []string) {
	for key, n := range sent {
		if v.seen[key] < n {
			keys = append(keys, fmt.Sprintf("%s: %d of %d, the last %+v", key, v.seen[key], n, v.at[key]))
		}
	}
	return keys
}

// TestVerifier: it sees what it is there for.
func TestVerifier(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]int{ // faults and repeats
		"1 2 3":     {0, 0},
		"1 2 1 2 3": {0, 2},
		"1 3 2":     {1, 1},
		"2":         {1, 0},
	} {
		v := &verifier{seen: map[string]int{}, at: map[string]completion{}, byQueue: map[string]int{}}
		for _, r := range text {
			if r != ' ' {
				v.add(completion{Key: "k", Body: string(r)})
			}
		}
		if len(v.wrong) != want[0] || v.again != want[1] {
			t.Errorf("%s: %q, %d repeats", text, v.wrong, v.again)
		}
		if len(v.missing(map[string]int{"k": 4})) == 0 {
			t.Errorf("%s: complete without 4", text)
		}
	}
}
