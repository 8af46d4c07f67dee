package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// writeFiles puts files into the directories until stop is called, which returns how many there were.
func writeFiles(dir string, t *table) (stop func() int) {
	end, ended := make(chan struct{}), make(chan int)
	go func() {
		tick := time.NewTicker(everyFile)
		defer tick.Stop()
		for n := 0; ; {
			select {
			case <-end:
				ended <- n
				return
			case <-tick.C:
			}
			for _, d := range directories() {
				if err := writeFile(filepath.Join(dir, "in", d), n); err != nil {
					t.note("%v", err) // a file less
					continue
				}
				n++
			}
		}
	}()
	return sync.OnceValue(func() int { close(end); return <-ended })
}

// writeFile makes a file and renames it into its place, so that nobody sees half of it.
func writeFile(folder string, n int) error {
	name := filepath.Join(folder, fmt.Sprintf("%05d.txt", n))
	if err := os.WriteFile(name+".tmp", fmt.Appendf(nil, "order %d\n", n), 0o644); err != nil {
		return err
	}
	return os.Rename(name+".tmp", name)
}

// left is the number of files that were not handled yet.
func left(dir string) int {
	files, _ := filepath.Glob(filepath.Join(dir, "in", "*", "*.txt")) // the pattern is well formed
	return len(files)
}
