package main

import (
	"errors"
	"fmt"
	"slices"
)

// summary checks what was promised against what the handlers wrote, and prints it.
func summary(dir string, c *cast, written int) error {
	f, err := readJournals(dir, c.dead)
	if err != nil {
		return err
	}
	again := 0
	for _, n := range f.files {
		if n > 1 {
			again++
		}
	}
	took, directories := f.takeOver(c.victim, c.killed)

	fmt.Printf("\nWhat this showed, from the records that the handlers wrote:\n\n")
	fmt.Printf("  files handled               %d of %d\n", len(f.files), written)
	fmt.Printf("  of them more than once      %d (what the killed process had in hand came again)\n", again)
	fmt.Printf("  handlers run                %d by %s\n", len(f.calls), f.nodes())
	fmt.Printf("  two nodes in one directory  %d times\n", f.overlaps)
	fmt.Printf("  fences that did not grow    %d\n", f.shrunk)
	fmt.Printf("  take-over after the kill    %d directories, the last worked again after %.2f s (ttl %v)\n", directories, took.Seconds(), ttl)

	var errs []error
	promise := func(kept bool, what string) {
		if !kept {
			errs = append(errs, errors.New("not kept: "+what))
		}
	}
	promise(written > 0 && len(f.files) == written && left(dir) == 0, "every file is handled")
	promise(f.overlaps == 0, "no directory is worked by two nodes at once")
	promise(f.shrunk == 0, "fences grow with each claim")
	promise(directories > 0 && took > 0, "others take over from a killed node")
	return errors.Join(errs...)
}

// nodes lists who worked.
func (f *findings) nodes() string {
	var names []string
	for _, c := range f.calls {
		if !slices.Contains(names, c.node) {
			names = append(names, c.node)
		}
	}
	slices.Sort(names)
	return fmt.Sprint(names)
}
