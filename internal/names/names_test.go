package names

import (
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][2]bool{ // as a group, as a resource
		"":                       {false, false},
		"orders":                 {true, true},
		"größe 1":                {true, true},
		"a/b":                    {false, true},
		"a\nb":                   {false, true},
		"a\x00b":                 {false, false},
		"\xff":                   {false, false},
		strings.Repeat("x", 128): {true, true},
		strings.Repeat("x", 129): {false, true},
		strings.Repeat("x", 513): {false, false},
	} {
		if got := [2]bool{Group(name) == "", Resource(name) == ""}; got != want {
			t.Errorf("%q: allowed as group, resource: %v, want %v", name, got, want)
		}
	}
}
