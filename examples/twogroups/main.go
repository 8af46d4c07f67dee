// Command twogroups runs two groups in one process: orders, in order and two at a time per process, and thumbnails, many at once. Each group has its own
// resources, settings and fail-over; they share a store. One context ends both, and each finishes what it has in hand.
//
//	go run ./examples/twogroups
//
// It makes its directories and some files by itself; put more into them, start it again beside itself, and end one with Ctrl-C.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/backends/sqlite"
	"github.com/rebalancer-go/rebalancer/group"
	"github.com/rebalancer-go/rebalancer/sources/file"
	"github.com/rebalancer-go/rebalancer/sources/pickup"
)

func main() {
	log.SetFlags(log.Ltime)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, filepath.Join(os.TempDir(), "twogroups"), log.Printf); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, dir string, say func(format string, args ...any)) error {
	if err := makeFiles(dir); err != nil {
		return err
	}
	store, err := sqlite.Open(filepath.Join(dir, "group.db"))
	if err != nil {
		return err
	}
	defer store.Close()

	orders := group.Config{Name: "orders", Resources: group.Static("eu", "us"), Concurrency: 1}
	thumbnails := group.Config{Name: "thumbnails", Resources: group.Static("cats", "dogs"), Concurrency: 8}

	// When one group fails, the other is to end in good order too.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, 2)
	var both sync.WaitGroup
	for i, c := range []group.Config{orders, thumbnails} {
		both.Go(func() {
			defer cancel()
			errs[i] = consume(ctx, c, store, filepath.Join(dir, c.Name), say)
		})
	}
	both.Wait()
	return errors.Join(errs...)
}

// consume runs one group until ctx ends.
func consume(ctx context.Context, c group.Config, store backends.Store, dir string, say func(format string, args ...any)) error {
	source, err := file.New(file.Config{Root: dir, Policy: pickup.Policy{OnSuccess: pickup.MoveTo("done"), StableFor: time.Second, Interval: time.Second}})
	if err != nil {
		return err
	}
	defer source.Close()
	c.Store, c.Source, c.TTL = store, source, 5*time.Second
	g, err := group.New(c)
	if err != nil {
		return err
	}
	err = g.Consume(ctx, func(_ context.Context, m *rebalancer.Message) error {
		say("%s: %s/%s, fence %d", c.Name, m.Resource, m.Key, m.Fence)
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", c.Name, err)
	}
	return nil
}

// makeFiles makes the directories, with a file in each.
func makeFiles(dir string) error {
	var errs []error
	for _, d := range []string{"orders/eu", "orders/us", "thumbnails/cats", "thumbnails/dogs"} {
		d = filepath.Join(dir, d)
		errs = append(errs, os.MkdirAll(d, 0o700), os.WriteFile(filepath.Join(d, time.Now().Format("150405.000")), []byte("hello\n"), 0o600))
	}
	return errors.Join(errs...)
}
