// Package programtest is what tests share that run the command line, or programs of the examples, as processes.
package programtest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// Main builds the command line, tells its path in *binary, and runs the tests. It returns what TestMain passes to os.Exit.
func Main(m *testing.M, binary *string) int {
	dir, err := os.MkdirTemp("", "rebalancer")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	*binary = filepath.Join(dir, "rebalancer")
	build := exec.Command("go", "build", "-o", *binary, "github.com/rebalancer-go/rebalancer/cmd/rebalancer")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v: %v\n%s", build, err, out)
		return 1
	}
	return m.Run()
}

// Random is the chance of one test: from seed, or from another one for each run when that is 0. A test that fails tells how to have it again, by a
// command that replay makes of the name of a test and the seed.
func Random(t testing.TB, seed uint64, replay func(test string, seed uint64) string) *rand.Rand {
	t.Helper()
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("replay: %s", replay(t.Name(), seed))
		}
	})
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// Shown checks that a page shows a program, word for word. The paths are those from the test's folder.
func Shown(t testing.TB, page, program string) {
	t.Helper()
	code, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(text, []byte("```go\n"+string(code)+"```\n")) {
		t.Errorf("%s does not contain this folder's %s word for word: copy it there", page, program)
	}
}

// Buffer may be read while it is written to. The zero value is empty.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write appends p.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// String is all that was written.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// Tail is the end of it, at most n bytes.
func (b *Buffer) Tail(n int) string {
	s := b.String()
	return s[max(0, len(s)-n):]
}
