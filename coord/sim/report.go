package sim

import (
	"bytes"
	"fmt"
	"strings"
)

// Report explains a failure: the seed, the shrunk schedule, the end of the history, and how to see it again.
func Report(s Setup, faults []Fault, v *Violation) string {
	short := Shrink(s, faults, v.Property)
	var log bytes.Buffer
	w := NewWorld(s, short)
	w.Record(&log)
	if again := w.Run(); again != nil {
		v = again
	}
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %v\n\n%s\n", s.Seed, v, s.describe())
	fmt.Fprintf(&b, "schedule, shrunk from %d faults to %d:\n", len(faults), len(short))
	for _, f := range short {
		fmt.Fprintf(&b, "  %s\n", f)
	}
	lines := strings.Split(strings.TrimRight(log.String(), "\n"), "\n")
	if n := len(lines) - historyLines; n > 0 {
		lines = lines[n:]
	}
	fmt.Fprintf(&b, "\nend of the history:\n")
	for _, l := range lines {
		if len(l) > 400 {
			l = l[:400] + "…"
		}
		fmt.Fprintf(&b, "  %s\n", l)
	}
	fmt.Fprintf(&b, "\nreplay: go test ./coord/sim -run TestWorlds -seed=%d\n", s.Seed)
	return b.String()
}

const historyLines = 40

// describe is the setup in a few words.
func (s *Setup) describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d resources (%s), %s barrier, ttl %.0fs, hints %v, latency %.1fms, heals at %.1fs\n", len(s.Resources), s.Origin, s.Mode,
		float64(s.TTL)/float64(sec), s.Hints, float64(s.Latency)/float64(ms), float64(s.Heal)/float64(sec))
	if s.MaxActive+s.MaxMoving+s.MaxMovingNode > 0 {
		fmt.Fprintf(&b, "active %d (fail-back %v), moving %d, of one node %d\n", s.MaxActive, s.FailBack, s.MaxMoving, s.MaxMovingNode)
	}
	for _, n := range s.Nodes {
		fmt.Fprintf(&b, "  %s begins at %.1fs, %+d ppm, priority %d, weight %d, most %d, lists %d, static name %v, labels %v\n", n.Name,
			float64(n.Begins)/float64(sec), n.Clock.ppm, n.Priority, n.Weight, n.MaxResources, len(n.Static), n.StaticID, n.Labels)
	}
	for _, r := range s.Resources {
		if v := s.Registered[r]; v.Weight+len(v.Require)+len(v.Prefer) > 0 {
			fmt.Fprintf(&b, "  %s has load %d, requires %v, prefers %v\n", r, v.Weight, v.Require, v.Prefer)
		}
	}
	return b.String()
}
