package page

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/group"
	"github.com/rebalancer-go/rebalancer/statuspage"
)

var shots = flag.String("shots", "", "a folder for pictures of the page")

// token unlocks the pages of the tests.
const token = "a token of the tests"

// browser is a Chromium; ctx ends with the test.
func browser(t *testing.T) context.Context {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()),
		chromedp.WSURLReadTimeout(2*time.Minute))
	if path := os.Getenv("REBAL_CHROMIUM"); path != "" {
		options = append(options, chromedp.ExecPath(path))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	ctx, stopAllocator := chromedp.NewExecAllocator(ctx, options...)
	ctx, stopTab := chromedp.NewContext(ctx, chromedp.WithErrorf(func(string, ...any) {})) // it does not know all events of newer browsers
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // waits until the browser is gone
		stopTab()
		stopAllocator()
		cancel()
	})
	if err := chromedp.Run(ctx); err != nil {
		t.Fatalf("no browser: %v (install Debian's chromium, or name one by REBAL_CHROMIUM)", err)
	}
	return ctx
}

// do runs steps in the browser.
func do(ctx context.Context, t *testing.T, steps ...chromedp.Action) {
	t.Helper()
	if err := chromedp.Run(ctx, steps...); err != nil {
		t.Fatal(err)
	}
}

// until looks at an expression in the page until it is true.
func until(ctx context.Context, t *testing.T, expression string) {
	t.Helper()
	var last string
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		var ok bool
		err := chromedp.Run(ctx, chromedp.Evaluate(expression, &ok))
		if ok && err == nil {
			return
		}
		if time.Now().After(end) {
			_ = chromedp.Run(ctx, chromedp.Evaluate("document.body.innerText", &last))
			t.Fatalf("gave up waiting for %s (%v); the page:\n%s", expression, err, last)
		}
	}
}

// value is that of an expression in the page.
func value[T any](ctx context.Context, t *testing.T, expression string) (v T) {
	t.Helper()
	do(ctx, t, chromedp.Evaluate(expression, &v))
	return v
}

// as sets the window and the scheme.
func as(width, height int64, scheme string) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		return errors.Join(
			emulation.SetDeviceMetricsOverride(width, height, 1, width < 700).Do(ctx),
			emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}).Do(ctx))
	})
}

// picture takes one of the whole page, when -shots asks for that.
func picture(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	if *shots == "" {
		return
	}
	var png []byte
	do(ctx, t, chromedp.CaptureScreenshot(&png))
	if err := os.WriteFile(filepath.Join(*shots, name+".png"), png, 0o600); err != nil {
		t.Fatal(err)
	}
}

// serve starts a page and returns its address.
func serve(t *testing.T, cfg statuspage.Config) string {
	t.Helper()
	cfg.Logger = slog.New(slog.DiscardHandler)
	page, err := statuspage.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- statuspage.Serve(ctx, l, page) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return fmt.Sprintf("http://%s/", l.Addr())
}

// fleet are nodes of one group in this process.
type fleet struct {
	t     *testing.T
	store backends.Store
	base  group.Config
	nodes map[string]func()
}

func newFleet(t *testing.T, store backends.Store, base group.Config) *fleet {
	f := &fleet{t: t, store: store, base: base, nodes: map[string]func(){}}
	t.Cleanup(func() {
		for _, stop := range f.nodes {
			stop()
		}
	})
	return f
}

// start adds a node; change may make it another one than the rest.
func (f *fleet) start(name string, change ...func(*group.Config)) {
	f.t.Helper()
	cfg := f.base
	cfg.Name, cfg.Store, cfg.Node, cfg.Logger = "orders", f.store, name, slog.New(slog.DiscardHandler)
	for _, c := range change {
		c(&cfg)
	}
	g, err := group.New(cfg)
	if err != nil {
		f.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx, work) }()
	stopped := false
	f.nodes[name] = func() {
		if cancel(); !stopped {
			stopped = true
			<-done
		}
	}
}

func work(ctx context.Context, _ *rebalancer.Claim) error {
	<-ctx.Done()
	return nil
}
