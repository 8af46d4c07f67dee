package integration

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	_ "modernc.org/sqlite"
)

// While processes work, their store is deleted, locked by another program, or its disk is full, for longer than the ttl. Each file is handled, no
// directory by two at once, and all go on by themselves.
func TestStoreInTrouble(t *testing.T) {
	t.Parallel()
	for name, trouble := range map[string]func(t *testing.T, file string){"deleted": deleteStore, "locked": lockStore, "full": fillStore} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCrew(t, 0, 4, 300*time.Millisecond)
			if name == "full" {
				tinyDisk(t, filepath.Dir(strings.TrimPrefix(c.store, "sqlite://")))
			}
			c.begin(2)
			c.pause(ttl, ttl+time.Second)
			trouble(t, strings.TrimPrefix(c.store, "sqlite://"))
			c.feed(4)
			c.finish("")
			for i, n := range c.nodes {
				if said := n.errs.String(); !strings.Contains(said, "level=WARN") {
					t.Errorf("node %d said nothing:\n%s", i, said)
				}
			}
		})
	}
}

func deleteStore(t *testing.T, file string) {
	t.Helper()
	for _, f := range []string{file, file + "-wal", file + "-shm"} {
		if err := os.Remove(f); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
}

// lockStore keeps the lock that a writer takes, as a backup or a shell with an open transaction does.
func lockStore(t *testing.T, file string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+file+"?_txlock=exclusive&_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * ttl) // how long it is locked, not a synchronisation
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
}

// fillStore leaves the store's disk without room.
func fillStore(t *testing.T, file string) {
	t.Helper()
	ballast := filepath.Join(filepath.Dir(file), "ballast")
	b, err := os.Create(ballast)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = b.Write(make([]byte, 4096))
	}
	_ = b.Close()
	time.Sleep(2 * ttl) // how long it is full, not a synchronisation
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
}

// tinyDisk mounts a file system of its own over a directory.
func tinyDisk(t *testing.T, dir string) {
	t.Helper()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		if strings.Contains(os.Getenv("REBAL_REQUIRE"), "tmpfs") {
			t.Fatalf("REBAL_REQUIRE names tmpfs, but it cannot be mounted: %v", err)
		}
		t.Skipf("NOT TESTED: a disk that is really full. It needs the right to mount a tmpfs: run the test as root: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}
