package telemetry_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/rebalancer-go/rebalancer/telemetry"
)

// The tables in the package's comment are those of the code. On failure the right ones are printed, to be put there.
func TestTablesOfTheComment(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	want.WriteString("// # Metrics\n//\n")
	for _, m := range telemetry.Metrics() {
		attrs := ""
		if len(m.Attributes) > 0 {
			attrs = " By " + strings.Join(m.Attributes, ", ") + "."
		}
		fmt.Fprintf(&want, "//   - %s (%s, %s): %s%s\n", m.Name, m.Kind, m.Unit, m.Description, attrs)
	}
	want.WriteString("//\n// # Spans\n//\n")
	for _, s := range telemetry.Spans() {
		fmt.Fprintf(&want, "//   - %s (%s): %s\n", s.Name, s.Kind, s.Description)
	}
	if !strings.Contains(string(src), want.String()) {
		t.Errorf("doc.go does not have these lines:\n%s", want.String())
	}
}
