package main

import "testing"

func TestLimitOfAQueue(t *testing.T) {
	t.Parallel()
	set := func(name string, n float64) map[string]any { return map[string]any{name: n} }
	for what, tc := range map[string]struct {
		q       brokerQueue
		version string
		want    int
	}{
		"told":                         {brokerQueue{Type: "quorum", Limit: 7.0, Arguments: set("x-delivery-limit", 3)}, "4.0.5", 7},
		"told to be none":              {brokerQueue{Type: "quorum", Limit: "unlimited"}, "4.0.5", 0},
		"the lower of two":             {brokerQueue{Type: "quorum", Arguments: set("x-delivery-limit", 9), Policy: set("delivery-limit", 4)}, "3.10.8", 4},
		"the default, not told yet":    {brokerQueue{Type: "quorum"}, "4.0.5", 20},
		"none before 4.0":              {brokerQueue{Type: "quorum"}, "3.10.8", 0},
		"none for a classic queue":     {brokerQueue{Type: "classic"}, "4.0.5", 0},
		"of a version nobody can read": {brokerQueue{Type: "quorum"}, "", 0},
	} {
		if got := tc.q.limit(tc.version); got != tc.want {
			t.Errorf("%s: %d, want %d", what, got, tc.want)
		}
	}
}
