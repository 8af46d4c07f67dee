//go:build linux

package files

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// line is something that a node did, or that became of it.
type line struct {
	What     string // end, settled, partial, overlap, failed, lost; killed
	Node     string
	Pid      int
	Resource string
	Name     string
	Version  string
	Fence    int64
	Text     string
}

// ledger is a file to which all processes append.
type ledger struct{ folder string }

func (l *ledger) path() string { return filepath.Join(l.folder, "ledger") }

// write appends a line; each is one write.
func (l *ledger) write(n line) error {
	b, err := json.Marshal(n)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(l.path(), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Write(append(b, '\n'))
	return err
}

// read returns the lines so far.
func (l *ledger) read(t *testing.T) (all []line) {
	t.Helper()
	b, err := os.ReadFile(l.path())
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for part := range bytes.Lines(b) {
		var n line
		if !bytes.HasSuffix(part, []byte("\n")) {
			break
		}
		if err := json.Unmarshal(part, &n); err != nil {
			t.Fatalf("%v: %q", err, part)
		}
		all = append(all, n)
	}
	return all
}

// lockName is the name of a file that only one handler of a file may have locked.
func lockName(resource, name string) string {
	sum := sha256.Sum256([]byte(resource + "/" + name))
	return "lock-" + hex.EncodeToString(sum[:8])
}

// account is what became of each version.
type account struct {
	ended   map[string][]line
	settled map[string]line
	gone    map[int]bool // processes that were killed, or lost something: what they had in flight may be done again
	wrong   []string
	again   int
}

// judge reads lines. forgiven are versions of which a part may look like a whole, because their upload paused for longer than was meant.
func judge(all []line, forgiven map[string]bool) *account {
	a := &account{ended: map[string][]line{}, settled: map[string]line{}, gone: map[int]bool{}}
	for _, l := range all { // a death is written down later than what it undoes
		if l.What == "killed" || l.What == "lost" {
			a.gone[l.Pid] = true
		}
	}
	for _, l := range all {
		switch l.What {
		case "end":
			a.end(l)
		case "settled":
			a.settled[l.Version] = l
		case "partial":
			if !forgiven[l.Version] {
				a.fault("a part was handed over as a whole: %+v", l)
			}
		case "overlap":
			a.fault("handled by two at once: %+v", l)
		}
	}
	return a
}

func (a *account) end(l line) {
	if s, ok := a.settled[l.Version]; ok {
		a.fault("handled again after it was settled: %+v, settled %+v", l, s)
	}
	for _, before := range a.ended[l.Version] {
		a.again++
		if !a.gone[before.Pid] {
			a.fault("handled again without a reason: %+v, before %+v", l, before)
			break
		}
	}
	a.ended[l.Version] = append(a.ended[l.Version], l)
}

func (a *account) fault(format string, args ...any) {
	a.wrong = append(a.wrong, fmt.Sprintf(format, args...))
}

// missing are the versions of some that were not handled, or not settled yet.
func (a *account) missing(versions []string) (names []string) {
	for _, v := range versions {
		if len(a.ended[v]) == 0 {
			names = append(names, v)
		}
	}
	return names
}

// TestJudge: it sees what it is there for.
func TestJudge(t *testing.T) {
	t.Parallel()
	end := func(pid int) line { return line{What: "end", Pid: pid, Version: "v"} }
	settled, killed, lost := line{What: "settled", Pid: 1, Version: "v"}, line{What: "killed", Pid: 1}, line{What: "lost", Pid: 1}
	for name, c := range map[string]struct {
		lines []line
		want  int // faults
	}{
		"once":                        {[]line{end(1), settled}, 0},
		"again after a death":         {[]line{end(1), end(2), killed}, 0},
		"again after a loss":          {[]line{end(1), lost, end(2)}, 0},
		"again":                       {[]line{end(1), end(2)}, 1},
		"again, settled before":       {[]line{end(1), settled, killed, end(2)}, 1},
		"twice again, one reason":     {[]line{end(1), killed, end(2), end(3)}, 1},
		"partial":                     {[]line{{What: "partial", Version: "v"}}, 1},
		"partial, which was expected": {[]line{{What: "partial", Version: "w"}}, 0},
		"two at once":                 {[]line{{What: "overlap"}}, 1},
	} {
		a := judge(c.lines, map[string]bool{"w": true})
		if len(a.wrong) != c.want {
			t.Errorf("%s: %q", name, a.wrong)
		}
		if missing := a.missing([]string{"v", "x"}); (len(missing) == 1) != (len(a.ended["v"]) > 0) {
			t.Errorf("%s: missing %q", name, missing)
		}
	}
}
