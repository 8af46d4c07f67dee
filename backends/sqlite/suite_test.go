package sqlite

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/backends/storetest"
	"github.com/rebalancer-go/rebalancer/internal/sqlstore"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if role := os.Getenv("REBALANCER_TEST_ROLE"); role != "" {
		os.Exit(child(role))
	}
	goleak.VerifyTestMain(m)
}

func TestContract(t *testing.T) {
	t.Parallel()
	storetest.Run(t, storetest.Driver{TTL: 3 * time.Second, Place: place, Rounds: 10})
}

// withClockBehind sets back the wall clock by what is in d.
func withClockBehind(d *atomic.Int64) Option {
	return func(s *Store) {
		s.wall = func() int64 { return time.Now().UnixMicro() - d.Load() }
	}
}

func place(t *testing.T) storetest.Place {
	path := filepath.Join(t.TempDir(), "store ?#%41é.db")
	var behind atomic.Int64
	open := func(t *testing.T) *Store {
		t.Helper()
		s, err := Open(path, withClockBehind(&behind))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	return storetest.Place{
		Open: func(t *testing.T) backends.Store { return open(t) },
		Lose: func(t *testing.T) { remove(t, path) },
		RollBack: func(t *testing.T) func(*testing.T) {
			s := open(t)
			defer s.Close()
			saved := path + ".saved"
			if _, err := s.file.db.Exec(`VACUUM INTO ?`, saved); err != nil {
				t.Fatal(err)
			}
			return func(t *testing.T) {
				_ = os.Remove(path + "-wal")
				_ = os.Remove(path + "-shm")
				if err := os.Rename(saved, path); err != nil {
					t.Fatal(err)
				}
			}
		},
		StepBack: func(_ *testing.T, d time.Duration) { behind.Add(d.Microseconds()) },
		Rows: func(t *testing.T) int {
			s := open(t)
			defer s.Close()
			n, err := sqlstore.Rows(t.Context(), s.base())
			if err != nil {
				t.Fatal(err)
			}
			return n
		},
	}
}

// remove deletes a database with what lies beside it.
func remove(t *testing.T, path string) {
	t.Helper()
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(path + suffix); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
}
