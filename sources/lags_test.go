package sources

import (
	"context"
	"errors"
	"strings"
	"testing"
)

type lagger struct{ fail string }

func (l lagger) Lag(_ context.Context, r string) (int64, error) {
	if strings.Contains(l.fail, r) {
		return 0, errors.New("no")
	}
	return int64(len(r)), nil
}

// TestLags: what a source does not tell is left out; it is an error when it tells nothing, or the time is over.
func TestLags(t *testing.T) {
	t.Parallel()
	names := []string{"a", "bb", "ccc"}
	if lag, err := Lags(t.Context(), lagger{"bb"}, names); err != nil || len(lag) != 2 || lag["ccc"] != 3 {
		t.Errorf("%v %v", lag, err)
	}
	if _, err := Lags(t.Context(), lagger{"a bb ccc"}, names); err == nil {
		t.Error("no error when all fail")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Lags(ctx, lagger{"a bb ccc"}, names); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
