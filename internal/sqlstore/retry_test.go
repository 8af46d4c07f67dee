package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebalancer-go/rebalancer/internal/sqlstore"
)

func TestPersist(t *testing.T) {
	t.Parallel()
	passing, final := errors.New("passing"), errors.New("final")
	repeats := func(err error) bool { return errors.Is(err, passing) }
	record := fmt.Errorf("why: %w", sqlstore.ErrRecord)
	for name, c := range map[string]struct {
		errs []error // of the tries; the last one repeats
		want int     // tries
		err  error
	}{
		"at once":          {[]error{nil}, 1, nil},
		"in the end":       {[]error{passing, record, passing, nil}, 4, nil},
		"another error":    {[]error{passing, final}, 2, final},
		"for good":         {[]error{passing}, 12, passing},
		"the record again": {[]error{record}, 12, sqlstore.ErrRecord},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				start, n := time.Now(), 0
				err := sqlstore.Persist(t.Context(), repeats, func() error { n++; return c.errs[min(n, len(c.errs))-1] })
				if n != c.want || !errors.Is(err, c.err) {
					t.Errorf("%d tries, %v", n, err)
				}
				if took := time.Since(start); took > 3*time.Second || n > 1 && took < 2*time.Millisecond {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// The end of the context ends the tries, and the error is that of the last one.
func TestPersistEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		passing := errors.New("passing")
		start := time.Now()
		err := sqlstore.Persist(ctx, func(error) bool { return true }, func() error { return passing })
		if took := time.Since(start); took != 100*time.Millisecond || !errors.Is(err, passing) {
			t.Errorf("it ended after %v with %v", took, err)
		}
	})
}

func TestRefused(t *testing.T) {
	t.Parallel()
	cause := errors.New("cause")
	err := fmt.Errorf("wrapped: %w", sqlstore.Refuse(cause))
	if !sqlstore.IsRefused(err) || !errors.Is(err, cause) || sqlstore.IsRefused(cause) || sqlstore.IsRefused(nil) {
		t.Error("a Refused is not told from other errors")
	}
}

// Names that run together are not taken for others.
func TestNumber(t *testing.T) {
	t.Parallel()
	one, again := sqlstore.Number("a", "b"), sqlstore.Number("a", "b")
	if one != again || one == sqlstore.Number("ab") || sqlstore.Number("a", "") == sqlstore.Number("", "a") {
		t.Error("the numbers of names")
	}
}
