package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/backends/memory"
	"github.com/rebalancer-go/rebalancer/group"
	"github.com/rebalancer-go/rebalancer/sources/file"
	"github.com/rebalancer-go/rebalancer/sources/pickup"
)

const small = 10_000 // files of a round

// BenchmarkSmallFiles lists, reads and deletes 10,000 files of 4 KiB, ours and by hand in turns, with the same parallelism. An
// iteration is a round of each.
func BenchmarkSmallFiles(b *testing.B) {
	for _, base := range []string{os.TempDir(), "/dev/shm"} {
		for _, parallel := range []int{1, 4, 16} {
			b.Run(fmt.Sprintf("%s/%d", filepath.Base(base), parallel), func(b *testing.B) {
				dir, err := os.MkdirTemp(base, "bench-files-")
				if err != nil {
					b.Fatal(err)
				}
				b.Cleanup(func() { _ = os.RemoveAll(dir) })
				in := filepath.Join(dir, "in")
				if err := os.Mkdir(in, 0o700); err != nil {
					b.Fatal(err)
				}
				loops := []func(dir string, parallel int, handle func()) error{byHand, ours}
				var ratios []float64
				var ours time.Duration
				for b.Loop() {
					var round [2]time.Duration
					for _, i := range turn(len(ratios)) {
						fill(b, in)
						round[i] = work(b, dir, parallel, loops[i])
					}
					ours += round[1]
					ratios = append(ratios, round[0].Seconds()/round[1].Seconds())
				}
				b.ReportMetric(median(ratios), "×by-hand")
				b.ReportMetric(small*float64(len(ratios))/ours.Seconds(), "files/s")
			})
		}
	}
}

// turn is the order of a round: each loop is the first in every second one.
func turn(round int) []int {
	if round%2 == 1 {
		return []int{1, 0}
	}
	return []int{0, 1}
}

func median(xs []float64) float64 {
	slices.Sort(xs)
	return xs[len(xs)/2]
}

// huge is a sparse file, so that the disk is not what is measured.
const huge = 10 << 30

// BenchmarkHugeFile reads 10 GiB to the end, ours and by hand in turns, and reports the ratio of the speeds and the most memory that
// ours had in use.
func BenchmarkHugeFile(b *testing.B) {
	dir := b.TempDir()
	in := filepath.Join(dir, "in")
	if err := os.Mkdir(in, 0o700); err != nil {
		b.Fatal(err)
	}
	p := filepath.Join(in, "huge")
	var ratios []float64
	var memory uint64
	renew := func() error { return errors.Join(os.WriteFile(p, nil, 0o600), os.Truncate(p, huge)) }
	plain := func() (time.Duration, error) {
		return plainCopy(func() (io.ReadCloser, error) { return os.Open(p) })
	}
	if err := renew(); err != nil {
		b.Fatal(err)
	}
	if _, err := plain(); err != nil { // the machine's memory is touched for the first time
		b.Fatal(err)
	}
	for b.Loop() {
		var round [2]time.Duration
		for _, i := range turn(len(ratios)) {
			// A new file each time: what was read once would be in memory.
			err := renew()
			if err != nil {
				b.Fatal(err)
			}
			if i == 0 {
				round[i], err = plain()
			} else {
				round[i], memory, err = ourCopy(dir, memory)
			}
			if err != nil {
				b.Fatal(err)
			}
		}
		ratios = append(ratios, round[0].Seconds()/round[1].Seconds())
	}
	b.ReportMetric(median(ratios), "×plain-copy")
	b.ReportMetric(float64(memory)/(1<<20), "MiB")
}

// plainCopy reads to the end with a buffer of 1 MiB.
func plainCopy(open func() (io.ReadCloser, error)) (time.Duration, error) {
	start := time.Now()
	rc, err := open()
	if err != nil {
		return 0, err
	}
	defer rc.Close()
	n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{rc}, make([]byte, 1<<20))
	if err == nil && n != huge {
		err = fmt.Errorf("%d bytes were read", n)
	}
	return time.Since(start), err
}

// ourCopy reads the file through a source, and keeps it.
func ourCopy(dir string, most uint64) (d time.Duration, memory uint64, err error) {
	source, err := file.New(file.Config{Root: dir, Policy: pickup.Policy{OnSuccess: pickup.Delete(), StableFor: -1}})
	if err != nil {
		return 0, 0, err
	}
	defer source.Close()
	r, err := source.Open(context.Background(), &rebalancer.Claim{Group: "bench", Resource: "in", Fence: 1})
	if err != nil {
		return 0, 0, err
	}
	ms, err := r.Fetch(context.Background(), 1)
	if err != nil {
		return 0, 0, err
	}
	ended := make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapInuse+m.StackInuse)
			select {
			case <-tick.C:
			case <-ended:
				return
			}
		}
	})
	d, err = plainCopy(func() (io.ReadCloser, error) { return ms[0].Open(context.Background()) })
	close(ended)
	watcher.Wait()
	return d, most, errors.Join(err, r.Close(context.Background()))
}

func fill(b *testing.B, in string) {
	b.Helper()
	body := make([]byte, 4<<10)
	for i := range small {
		if err := os.WriteFile(filepath.Join(in, fmt.Sprintf("order-%06d.csv", i)), body, 0o600); err != nil {
			b.Fatal(err)
		}
	}
}

// work is the time from the first file in a handler to the last one deleted.
func work(b *testing.B, dir string, parallel int, loop func(string, int, func()) error) time.Duration {
	b.Helper()
	var n atomic.Int64
	var first atomic.Int64
	if err := loop(dir, parallel, func() {
		if n.Add(1) == 1 {
			first.Store(time.Now().UnixNano())
		}
	}); err != nil {
		b.Fatal(err)
	}
	d := time.Since(time.Unix(0, first.Load()))
	left, err := os.ReadDir(filepath.Join(dir, "in"))
	if err != nil || len(left) > 0 || n.Load() != small {
		b.Fatalf("%d files left of %d, %d were handled, %v", len(left), small, n.Load(), err)
	}
	return d
}

func byHand(dir string, parallel int, handle func()) error {
	in := filepath.Join(dir, "in")
	entries, err := os.ReadDir(in)
	if err != nil {
		return err
	}
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var workers sync.WaitGroup
	for range parallel {
		workers.Go(func() {
			buf := make([]byte, 32<<10)
			for i := int(next.Add(1)) - 1; i < len(entries); i = int(next.Add(1)) - 1 {
				handle()
				p := filepath.Join(in, entries[i].Name())
				f, err := os.Open(p)
				if err == nil {
					_, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{f}, buf)
					f.Close()
				}
				if err == nil {
					err = os.Remove(p)
				}
				if err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	workers.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

func ours(dir string, parallel int, handle func()) error {
	source, err := file.New(file.Config{Root: dir, Policy: pickup.Policy{OnSuccess: pickup.Delete(), StableFor: -1}})
	if err != nil {
		return err
	}
	defer source.Close()
	g, err := group.New(group.Config{
		Name: "bench", Store: memory.New(), Source: source, Resources: group.Static("in"), Concurrency: parallel,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	bufs := sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}
	var n atomic.Int64
	all := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		ended <- g.Consume(ctx, func(ctx context.Context, m *rebalancer.Message) error {
			handle()
			rc, err := m.Open(ctx)
			if err != nil {
				return err
			}
			defer rc.Close()
			buf := bufs.Get().(*[]byte)
			defer bufs.Put(buf)
			if _, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, rc, *buf); err != nil {
				return err
			}
			if n.Add(1) == small {
				close(all)
			}
			return nil
		})
	}()
	select {
	case <-all:
	case err := <-ended:
		return err
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if left, err := source.Lag(ctx, "in"); err != nil || left == 0 {
			break
		}
	}
	return nil
}
