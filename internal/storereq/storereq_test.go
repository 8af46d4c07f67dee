package storereq_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/storereq"
)

func TestOpenNamesAllThatIsWrong(t *testing.T) {
	t.Parallel()
	err := storereq.Open(backends.SessionOptions{TTL: time.Millisecond}, time.Second)
	if !errors.Is(err, backends.ErrInvalid) || !errors.Is(err, backends.ErrFatal) || !strings.Contains(err.Error(), "1s") {
		t.Errorf("error %v", err)
	}
	err = storereq.Open(backends.SessionOptions{Group: strings.Repeat("g", backends.MaxKey+1), TTL: time.Second}, time.Second)
	if !errors.Is(err, backends.ErrInvalid) {
		t.Errorf("error %v", err)
	}
	if err := storereq.Open(backends.SessionOptions{Group: "g", TTL: time.Second}, time.Second); err != nil {
		t.Error(err)
	}
}

func TestCommitNamesAllThatIsWrong(t *testing.T) {
	t.Parallel()
	err := storereq.Commit(backends.CommitRequest{Txns: []backends.Txn{
		{Puts: []backends.Put{{Key: ""}}}, {Deletes: []string{"ok"}}, {Deletes: []string{"twice", "twice"}}}})
	if !errors.Is(err, backends.ErrInvalid) || !strings.Contains(err.Error(), "transaction 1 of 3") || !strings.Contains(err.Error(), `"twice"`) {
		t.Errorf("error %v", err)
	}
	if strings.Contains(err.Error(), "transaction 2") {
		t.Errorf("a good one is blamed: %v", err)
	}
}
