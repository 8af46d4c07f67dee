package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The check of the journals must find what it promises to find.
func TestJournals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name             string
		n1, n2           string // journals
		overlaps, shrunk int
		took             time.Duration
	}{
		{"one after the other", "began 10 1 a x\nended 20 1 a x\n", "began 20 2 a y\nended 30 2 a y\n", 0, 0, 0},
		{"at once", "began 10 1 a x\nended 20 1 a x\n", "began 19 2 a y\nended 30 2 a y\n", 1, 0, 0},
		{"at once in two directories", "began 10 1 a x\nended 20 1 a x\n", "began 19 2 b y\nended 30 2 b y\n", 0, 0, 0},
		{"within a long one", "began 10 1 a x\nended 99 1 a x\n", "began 20 2 a y\nended 30 2 a y\nbegan 40 2 a z\nended 50 2 a z\n", 2, 0, 0},
		{"smaller fence", "began 10 2 a x\nended 20 2 a x\n", "began 20 1 a y\nended 30 1 a y\n", 0, 1, 0},
		{"killed", "began 40 1 a x\n", "began 57 2 a x\nended 60 2 a x\n", 0, 0, 12},
		{"killed, too early", "began 40 1 a x\n", "began 49 2 a x\nended 60 2 a x\n", 1, 0, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for name, text := range map[string]string{"n1.journal": c.n1, "n2.journal": c.n2} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			f, err := readJournals(dir, time.Unix(0, 50))
			if err != nil {
				t.Fatal(err)
			}
			if f.overlaps != c.overlaps || f.shrunk != c.shrunk {
				t.Errorf("%d overlaps, %d shrunken fences; want %d, %d", f.overlaps, f.shrunk, c.overlaps, c.shrunk)
			}
			if took, _ := f.takeOver("n1", time.Unix(0, 45)); c.took > 0 && took != c.took {
				t.Errorf("take-over took %v, want %v", took, c.took)
			}
		})
	}
}
