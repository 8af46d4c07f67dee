package sim

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/coord"
)

var rewrite = flag.Bool("rewrite", false, "write the transcripts of the scenarios anew; the diff is the review")

// TestScenarios plays the scripts of testdata/scenarios and compares the whole transcript of what people would see. A script
// is lines of the form
//
//	set ttl=6s mode=global origin=registered resources=a,b,c drain=1s end=40s
//	set proof=yes active=1 moving=2
//	node n1 begins=0s static=a,b priority=1 most=3 id=static weight=2
//	at 10s crash n1 for=20s arg=0
//
// up to a line of dashes; behind it stands the transcript.
func TestScenarios(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/scenarios/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".txt"), func(t *testing.T) {
			t.Parallel()
			raw, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			script, want, _ := strings.Cut(string(raw), "----\n")
			got := play(t, script)
			if *rewrite {
				if err := os.WriteFile(f, []byte(script+"----\n"+got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != want {
				t.Errorf("the transcript differs; if that is right: go test ./coord/sim -run TestScenarios -rewrite\n%s", firstDifference(want, got))
			}
		})
	}
}

func play(t *testing.T, script string) string {
	t.Helper()
	s := Setup{Seed: 1, TTL: 6 * sec, Mode: coord.ResourceBarrier, Origin: coord.OriginStatic, Hints: true, Latency: ms,
		Opening: ms, Debounce: sec, ListEvery: 2 * sec, Heal: 30 * sec}
	var faults []Fault
	for n, line := range strings.Split(script, "\n") {
		w := strings.Fields(line)
		if len(w) == 0 || strings.HasPrefix(w[0], "#") {
			continue
		}
		if err := scriptLine(&s, &faults, w); err != nil {
			t.Fatalf("line %d: %v", n+1, err)
		}
	}
	for i := range s.Nodes {
		if s.Nodes[i].Static == nil {
			s.Nodes[i].Static = s.Resources
		}
	}
	var log bytes.Buffer
	w := NewWorld(s, faults)
	for _, r := range s.Resources {
		w.setExists(r, true)
	}
	w.Record(&log)
	if v := w.Run(); v != nil {
		t.Errorf("violation: %v", v)
	}
	return transcript(log.String())
}

func scriptLine(s *Setup, faults *[]Fault, w []string) error {
	switch w[0] {
	case "set":
		return pairs(w[1:], func(k, v string) error { return s.set(k, v) })
	case "node":
		n := NodeSetup{Name: w[1]}
		err := pairs(w[2:], func(k, v string) error { return n.set(k, v) })
		s.Nodes = append(s.Nodes, n)
		return err
	case "at":
		f := Fault{ID: int64(len(*faults)), Kind: FaultKind(strings.ReplaceAll(w[2], "_", " ")), Node: -1}
		at, err := time.ParseDuration(w[1])
		if err != nil {
			return err
		}
		f.At = vtime(at)
		for i, n := range s.Nodes {
			if len(w) > 3 && n.Name == w[3] {
				f.Node = i
			}
		}
		err = pairs(w[3:], func(k, v string) (err error) {
			switch k {
			case "for":
				var d time.Duration
				d, err = time.ParseDuration(v)
				f.Dur = vtime(d)
			case "arg":
				f.Arg, err = strconv.ParseInt(v, 10, 64)
			}
			return err
		})
		f.Stands = f.Dur == 0 && slices.ContainsFunc(acts, func(a weighted) bool { return a.kind == f.Kind })
		*faults = append(*faults, f)
		return err
	}
	return fmt.Errorf("unknown command %q", w[0])
}

func pairs(words []string, set func(k, v string) error) error {
	for _, w := range words {
		if k, v, ok := strings.Cut(w, "="); ok {
			if err := set(k, v); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Setup) set(k, v string) error {
	if p := map[string]*vtime{"ttl": &s.TTL, "drain": &s.Drain, "end": &s.Heal}[k]; p != nil {
		d, err := time.ParseDuration(v)
		*p = vtime(d)
		return err
	}
	switch k {
	case "mode":
		s.Mode = coord.Mode(v)
	case "origin":
		s.Origin = coord.Origin(v)
	case "resources":
		s.Resources = strings.Split(v, ",")
	case "hints":
		s.Hints = v == "yes"
	case "proof":
		s.Proof = v == "yes"
	case "active":
		_, err := fmt.Sscan(v, &s.MaxActive)
		return err
	case "moving":
		_, err := fmt.Sscan(v, &s.MaxMoving)
		return err
	case "fresh":
		s.Fresh = v == "yes"
	default:
		return fmt.Errorf("unknown setting %q", k)
	}
	return nil
}

func (n *NodeSetup) set(k, v string) (err error) {
	switch k {
	case "begins":
		var d time.Duration
		d, err = time.ParseDuration(v)
		n.Begins = vtime(d)
	case "static":
		n.Static = strings.Split(v, ",")
	case "id":
		n.StaticID = v == "static"
	case "formats":
		for f := range strings.SplitSeq(v, ",") {
			var newest int
			if newest, err = strconv.Atoi(f); err != nil {
				return err
			}
			n.Formats = append(n.Formats, newest)
		}
	case "weight":
		n.Weight, err = strconv.Atoi(v)
	case "priority":
		n.Priority, err = strconv.Atoi(v)
	case "most":
		n.MaxResources, err = strconv.Atoi(v)
	default:
		err = fmt.Errorf("unknown setting %q", k)
	}
	return err
}

var (
	longNumber = regexp.MustCompile(`\b17\d{14}\b`)
	// What metrics and traces are made of is left out, because it would be in every line.
	measured   = regexp.MustCompile(` (Plan:(-|\d+)|Share:(-|\+\d+-\d+)|Waited:\d+)`)
	emptyField = regexp.MustCompile(` (Resource|Fence|Node|Reason|Err):(0|<nil>)?( |\}|$)`)
)

// transcript keeps what people would see: what happens to nodes, notices, and the orders to workers. Versions become
// #1, #2, … in the order in which they appear.
func transcript(log string) string {
	var b strings.Builder
	names := map[string]string{}
	for _, line := range strings.Split(log, "\n") {
		keep := strings.Contains(line, "-> Notify") || strings.Contains(line, "-> StartWork") || strings.Contains(line, "-> Revoke") ||
			strings.Contains(line, "-> Lose") || strings.Contains(line, "-> Finish") || strings.Contains(line, "<- Stopped") ||
			!strings.Contains(line, "->") && !strings.Contains(line, "<-") && line != ""
		if !keep {
			continue
		}
		line = longNumber.ReplaceAllStringFunc(line, func(v string) string {
			if names[v] == "" {
				names[v] = fmt.Sprint("#", len(names)+1)
			}
			return names[v]
		})
		line = measured.ReplaceAllString(line, "")
		for emptyField.MatchString(line) {
			line = emptyField.ReplaceAllString(line, "$3")
		}
		b.WriteString(strings.TrimRight(strings.TrimSuffix(line, "}"), " ") + "\n")
	}
	return b.String()
}

func firstDifference(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(a), len(b)) {
		x, y := "(end)", "(end)"
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x != y {
			return fmt.Sprintf("line %d\nwant %s\ngot  %s", i+1, x, y)
		}
	}
	return ""
}
