package files

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebalancer-go/rebalancer/internal/checkpointtest"
	"github.com/rebalancer-go/rebalancer/sources"
)

// TestOldDoneFileReleasesNothing: what a done-file of an earlier file of the name is left for, the next one waits for its own.
func TestOldDoneFileReleasesNothing(t *testing.T) {
	t.Parallel()
	for what, leave := range map[string]func(t *testing.T, p *fake){
		"a crash before it was removed": func(t *testing.T, p *fake) {
			r := reader(t, p, Options{DoneFile: "*.done"})
			ms, _ := fetch(t, r, 1)
			p.fail = func(op, name string) error {
				if op == "remove" && name == "a.done" {
					return errors.New("connection lost")
				}
				return nil
			}
			settle(t, r, sources.Done, ms...)
			p.fail = nil
			time.Sleep(time.Minute) // virtual
			p.put("a", "half")
		},
		"replaced under its handler": func(t *testing.T, p *fake) {
			r := reader(t, p, Options{DoneFile: "*.done"})
			ms, _ := fetch(t, r, 1)
			time.Sleep(time.Minute)
			p.put("a", "half")
			settle(t, r, sources.Done, ms...)
		},
		"a file that stays": func(t *testing.T, p *fake) {
			r := keeper(t, p, checkpointtest.New(), Options{DoneFile: "*.done"})
			ms, _ := fetch(t, r, 1)
			settle(t, r, sources.Done, ms...)
			time.Sleep(time.Minute)
			p.put("a", "half")
		},
	} {
		for _, exact := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				p := newFake()
				p.exact = exact
				p.put("a", "whole")
				p.put("a.done", "")
				leave(t, p)
				var l warnings
				r := reader(t, p, Options{DoneFile: "*.done", Strict: true, Logger: l.logger()})
				p.stats = 0
				nothing(t, r, time.Hour)
				if p.stats > 5000 {
					t.Errorf("%s: %d looks in an hour", what, p.stats)
				}
				if n := strings.Count(l.String(), "done-file is older"); n != 1 {
					t.Errorf("%s: reported %d times", what, n)
				}
				p.put("b", "") // it holds nothing up
				p.put("b.done", "")
				ms, keys := fetch(t, r, 1)
				if keys[0] != "b" {
					t.Fatalf("%s: got %q", what, keys)
				}
				settle(t, r, sources.Done, ms...)
				p.grow("a", ", now whole")
				p.put("a.done", "")
				ms, _ = fetch(t, r, 1)
				if body, err := read(t, ms[0]); body != "half, now whole" || err != nil {
					t.Errorf("%s: read %q, %v", what, body, err)
				}
			})
		}
	}
}

// TestNextDoneFileIsLeft: a settlement takes away what released its file, and not what was written for the next one.
func TestNextDoneFileIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newFake()
		r := reader(t, p, Options{DoneFile: "*.done", ChecksumFile: "*.sha256", Success: "done"})
		put := func(body string) {
			p.put("a", body)
			p.put("a.sha256", fmt.Sprintf("%x", sha256.Sum256([]byte(body))))
			p.put("a.done", "")
		}
		put("1")
		ms, _ := fetch(t, r, 1)
		p.remove("a")
		time.Sleep(time.Second) // virtual
		put("2")
		settle(t, r, sources.Done, ms...)
		ms, _ = fetch(t, r, 1)
		if body, err := read(t, ms[0]); body != "2" || err != nil {
			t.Errorf("read %q, %v", body, err)
		}
		p.remove("a")
		time.Sleep(time.Second)
		p.put("a.done", "") // the next one's, before its file
		settle(t, r, sources.Done, ms...)
		if !p.has("a.done") || p.has("a.sha256") {
			t.Errorf("left %q", p.list())
		}
	})
}

// TestWhatStandsBesideIsStable: a done-file and a checksum file that are written still put their file off, as it does itself.
func TestWhatStandsBesideIsStable(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a.done", "a.sha256"} {
		synctest.Test(t, func(t *testing.T) {
			p := newFake()
			r := reader(t, p, Options{DoneFile: "*.done", ChecksumFile: "*.sha256", StableFor: 10 * time.Second})
			p.put("a", "abc")
			p.put("a.done", "")
			p.put("a.sha256", "")
			for range 20 {
				nothing(t, r, 5*time.Second)
				p.grow(name, "x")
			}
			p.put("a.sha256", fmt.Sprintf("%x", sha256.Sum256([]byte("abc"))))
			start := time.Now()
			ms, _ := fetch(t, r, 1)
			if d := time.Since(start); d < 10*time.Second {
				t.Errorf("delivered after %v", d)
			}
			if _, err := read(t, ms[0]); err != nil {
				t.Error(err)
			}
		})
	}
}
