package telemetry

import (
	"strconv"
	"testing"
)

// What is remembered of resources has a bound, and those of which it was forgotten get the same again.
func TestStartsAreBounded(t *testing.T) {
	t.Parallel()
	var s starts
	for i := range 2*mostStarts + 10 {
		name := strconv.Itoa(i)
		got := s.of("process", name)
		if got.name != "process "+name {
			t.Fatalf("%q", got.name)
		}
		if i%1000 == 0 && s.of("process", name) != got {
			t.Fatal("not remembered")
		}
	}
	n := 0
	s.known.Range(func(_, _ any) bool { n++; return true })
	if n > mostStarts {
		t.Errorf("%d are remembered", n)
	}
	if got := s.of("process", "0"); got.name != "process 0" {
		t.Errorf("%q", got.name)
	}
}
