package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestBothGroupsWork: the file that is in each directory is worked, and both groups end together.
func TestBothGroupsWork(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var mu sync.Mutex
	worked := map[string]bool{}
	err := run(ctx, t.TempDir(), func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		what, _, _ := strings.Cut(fmt.Sprintf(format, args...), "/")
		if worked[what] = true; len(worked) == 4 {
			cancel()
		}
	})
	if err != nil || !errors.Is(ctx.Err(), context.Canceled) {
		t.Errorf("%v, %v: worked only %v", err, ctx.Err(), worked)
	}
	for _, want := range []string{"orders: eu", "orders: us", "thumbnails: cats", "thumbnails: dogs"} {
		if !worked[want] {
			t.Errorf("nothing of %q", want)
		}
	}
}
