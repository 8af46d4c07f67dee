package main

import (
	"bytes"
	"context"
	"log"
	"strings"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/internal/programtest"
)

// TestNames: each of the names is worked, and given back at the end.
func TestNames(t *testing.T) { // not beside others: it reads the log
	var out programtest.Buffer
	log.SetOutput(&out)
	defer log.SetOutput(&bytes.Buffer{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, t.TempDir(), 10*time.Millisecond) }()
	all := func(what string) bool {
		for _, n := range []string{"1", "2", "3", "4", "5", "6"} {
			if !strings.Contains(out.String(), "tenant-"+n+what) {
				return false
			}
		}
		return true
	}
	for end := time.Now().Add(time.Minute); !all(": invoices are written"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not all are worked:\n%s", out.String())
		}
	}
	cancel()
	if err := <-ended; err != nil || !all(" is given back") {
		t.Errorf("%v\n%s", err, out.String())
	}
}
