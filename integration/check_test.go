package integration

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/internal/supervise"
)

// lines reads a file with one JSON value a line. A file that is not there has none.
func lines[T any](t *testing.T, file string) []T {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var all []T
	for l := range bytes.Lines(b) {
		var v T
		if err := json.Unmarshal(l, &v); err != nil {
			t.Fatalf("%s: %v: %q", file, err, l)
		}
		all = append(all, v)
	}
	return all
}

// interval is the life of one command.
type interval struct {
	note
	end    int64
	killed supervise.Why // by its supervisor, and why
}

// check finds out from what commands and supervisors noted whether every file was handled, and no resource by two commands
// at a time. It returns how many commands were killed, by reason.
func (p *place) check(put map[string][]string) map[supervise.Why]int {
	p.t.Helper()
	killed := map[supervise.Why]int{}
	notes := lines[note](p.t, filepath.Join(p.log, "notes"))
	records := map[int][]supervise.Record{}
	for _, r := range lines[supervise.Record](p.t, filepath.Join(p.log, "record")) {
		records[r.Pid] = append(records[r.Pid], r)
	}
	byResource := map[string][]interval{}
	handled := map[string]map[string]bool{}
	for _, n := range notes {
		switch n.What {
		case "overlap":
			p.t.Errorf("command %d found %s locked by another command: %+v", n.Pid, n.Resource, n)
		case "begin":
			byResource[n.Resource] = append(byResource[n.Resource], p.life(n, notes, records[n.Pid]))
		case "end":
			if handled[n.Resource] == nil {
				handled[n.Resource] = map[string]bool{}
			}
			handled[n.Resource][n.Key] = true
		}
	}
	for resource, lives := range byResource {
		slices.SortFunc(lives, func(a, b interval) int { return cmp.Compare(a.At, b.At) })
		for i, l := range lives {
			if l.killed != "" {
				killed[l.killed]++
			}
			if i > 0 && lives[i-1].end > l.At {
				p.t.Errorf("%s: two commands at a time, for %v:\n%+v\n%+v", resource, time.Duration(lives[i-1].end-l.At), lives[i-1], l)
			}
			if i > 0 && lives[i-1].Fence > l.Fence {
				p.t.Errorf("%s: the fence went back:\n%+v\n%+v", resource, lives[i-1], l)
			}
		}
	}
	for resource, keys := range put {
		for _, k := range keys {
			if !handled[resource][k] {
				p.t.Errorf("%s/%s was never handled", resource, k)
			}
		}
		done := p.names(filepath.Join(resource, "done"))
		slices.Sort(keys)
		if !slices.Equal(done, keys) {
			p.t.Errorf("%s: %d files put, %d in the folder of handled ones", resource, len(keys), len(done))
		}
	}
	return killed
}

// shown tells whether a supervisor has ended a running command for this reason: chance may freeze only nodes that have none.
func (p *place) shown(why supervise.Why) bool {
	p.t.Helper()
	notes := lines[note](p.t, filepath.Join(p.log, "notes"))
	return slices.ContainsFunc(lines[supervise.Record](p.t, filepath.Join(p.log, "record")), func(r supervise.Record) bool {
		noted := func(what string) bool {
			return slices.ContainsFunc(notes, func(n note) bool {
				return n.What == what && n.Pid == r.Pid && n.At >= int64(r.Started) && n.At <= int64(r.Ended)
			})
		}
		return r.Why == why && noted("begin") && !noted("end")
	})
}

// life is when a command's life ended: by its own note, or else by the supervisor that killed it.
func (p *place) life(begin note, notes []note, records []supervise.Record) interval {
	p.t.Helper()
	iv := interval{note: begin}
	for _, n := range notes {
		if n.What == "end" && n.Pid == begin.Pid && n.At > begin.At && (iv.end == 0 || n.At < iv.end) {
			iv.end = n.At
		}
	}
	for _, r := range records { // process ids are used again: the one that began before and ended after
		if int64(r.Started) <= begin.At && int64(r.Ended) >= begin.At && (iv.end == 0 || int64(r.Ended) < iv.end) {
			iv.end, iv.killed = int64(r.Ended), r.Why
		}
	}
	if iv.end == 0 {
		p.t.Errorf("nobody noted the end of command %+v", begin)
	}
	return iv
}
