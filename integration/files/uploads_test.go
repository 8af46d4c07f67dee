//go:build linux

package files

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// uploads are those who bring files, each in a goroutine of its own.
type uploads struct {
	t         *testing.T
	place     place
	resources []string
	done      string // ends the names of done-files; "" for none

	wg       sync.WaitGroup
	mu       sync.Mutex
	made     int
	final    []string // versions that must be handled
	said     time.Time
	forgiven map[string]bool // versions whose upload paused for longer than it was meant to
}

// some begins uploads of each way, to be handled when they are complete.
func (u *uploads) some(rnd *rand.Rand, n int) {
	ways := []func(*rand.Rand, string, string, []byte) error{u.atOnce, u.replacedLater}
	if u.place.Kind != "s3" { // an object appears when it is whole
		ways = append(ways, u.slowly, u.interrupted)
	}
	for i := range n {
		u.made++
		resource := u.resources[rnd.IntN(len(u.resources))]
		way := i % len(ways)
		name, length := fmt.Sprintf("f%06d.dat", u.made), 1000+rnd.IntN(40_000)
		version := fmt.Sprintf("%s-%s", resource, name)
		if way == 1 {
			version += replaced
		}
		seed := rand.New(rand.NewPCG(rnd.Uint64(), 0))
		u.wg.Go(func() {
			if err := ways[way](seed, resource, name, body(version, length)); err != nil {
				u.t.Errorf("upload of %s: %v", version, err)
			}
		})
	}
}

// complete notes a version that is uploaded as a whole, and says so where there are done-files.
func (u *uploads) complete(resource, name, version string, longest, allowed time.Duration) error {
	u.mu.Lock()
	u.final = append(u.final, version)
	if longest > allowed {
		u.forgiven[version] = true
	}
	u.mu.Unlock()
	if u.done == "" {
		return nil
	}
	return u.place.put(context.Background(), resource, name+u.done, nil)
}

// atOnce writes under another name and renames.
func (u *uploads) atOnce(_ *rand.Rand, resource, name string, b []byte) error {
	if err := u.place.put(context.Background(), resource, name, b); err != nil {
		return err
	}
	h, err := parse(b)
	return errors.Join(err, u.complete(resource, name, h.Version, 0, 0))
}

// replacedLater is for a handler that puts another version in its place while it reads it.
func (u *uploads) replacedLater(_ *rand.Rand, resource, name string, b []byte) error {
	if err := u.place.put(context.Background(), resource, name, b); err != nil {
		return err
	}
	h, err := parse(b)
	return errors.Join(err, u.complete(resource, name, h.next(), 0, 0))
}

// slowly writes a bit at a time, with pauses that a file must be stable for longer than.
func (u *uploads) slowly(rnd *rand.Rand, resource, name string, b []byte) error {
	return u.inParts(resource, name, b, 3+rnd.IntN(10), func() time.Duration { return time.Duration(rnd.IntN(200)) * time.Millisecond })
}

// interrupted breaks off in the middle and goes on later; where there are done-files, long after the file looks stable.
func (u *uploads) interrupted(rnd *rand.Rand, resource, name string, b []byte) error {
	pause := time.Duration(200+rnd.IntN(200)) * time.Millisecond
	if u.done != "" {
		pause = stableFor * 3 / 2
	}
	return u.inParts(resource, name, b, 2, func() time.Duration { return pause })
}

func (u *uploads) inParts(resource, name string, b []byte, parts int, pause func() time.Duration) error {
	h, err := parse(b)
	if err != nil {
		return err
	}
	last, longest := time.Now(), time.Duration(0)
	for i := range parts {
		if i > 0 {
			time.Sleep(pause()) // the upload's pace
		}
		f, err := os.OpenFile(u.place.path(resource, name), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
		if err != nil {
			return err
		}
		_, err = f.Write(b[len(b)*i/parts : len(b)*(i+1)/parts])
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		longest, last = max(longest, time.Since(last)), time.Now()
	}
	allowed := stableFor * 3 / 4
	if u.done != "" {
		allowed = time.Hour // a done-file tells
	}
	return u.complete(resource, name, h.Version, longest, allowed)
}

// sayAgain writes the done-files of versions that are not handled, now and then: a handler that was to replace a file may have died before its done-file.
func (u *uploads) sayAgain(versions []string) {
	if u.done == "" || time.Since(u.said) < 5*time.Second {
		return
	}
	u.said = time.Now()
	for _, v := range versions {
		resource, name, _ := strings.Cut(v, "-")
		name, _, again := strings.Cut(name, replaced)
		if !again {
			continue
		}
		if err := u.place.put(context.Background(), resource, name+u.done, nil); err != nil {
			u.t.Error(err)
		}
	}
}

// finals are the versions that must have been handled in the end, and those that are forgiven.
func (u *uploads) finals() (final []string, forgiven map[string]bool) {
	u.wg.Wait()
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.final, u.forgiven
}
