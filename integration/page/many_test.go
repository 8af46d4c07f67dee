package page

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"

	"github.com/rebalancer-go/rebalancer/admin"
	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/backends/memory"
	"github.com/rebalancer-go/rebalancer/group"
	"github.com/rebalancer-go/rebalancer/statuspage"
)

const manyNodes, manyResources = 100, 5000

// painted is when the group was on the screen, in milliseconds since the navigation.
const painted = `document.documentElement.dataset.painted`

// transferred sums up what the page has loaded from the paths that a pattern fits: how often, and the bytes as they were sent.
func transferred(pattern string) string {
	return `(() => { const l = performance.getEntriesByType('resource').filter((e) => ` + pattern + `.test(e.name));
		return { Count: l.length, Bytes: l.reduce((n, e) => n + e.transferSize, 0), First: l[0]?.transferSize, Last: l.at(-1)?.transferSize }; })()`
}

type loaded struct{ Count, Bytes, First, Last int }

// A hundred nodes hold five thousand resources. How long that takes to be shown is reported; what bounds it is checked.
func TestManyNodesAndResources(t *testing.T) {
	store := manyInGroup(t)
	url := serve(t, statuspage.Config{Store: store, Token: token})
	ctx := browser(t)
	do(ctx, t, as(1280, 900, "light"), performance.Enable().WithTimeDomain(performance.EnableTimeDomainThreadTicks), chromedp.Navigate(url))
	until(ctx, t, painted+` !== undefined`)
	t.Logf("on the screen after %s ms, of which the page's thread computed %v", value[string](ctx, t, painted), computed(ctx, t))
	until(ctx, t, `document.getElementById('sentence').textContent === 'All 5,000 resources are held by 100 nodes'`)
	most := func(what string, got, limit int) {
		t.Helper()
		if t.Logf("%s: %d", what, got); got > limit || got == 0 {
			t.Errorf("%s: %d, want 1 to %d", what, got, limit)
		}
	}
	most("elements", value[int](ctx, t, `document.querySelectorAll('*').length`), 1500)
	files := value[loaded](ctx, t, transferred(`/[.](js|css|svg)$/`))
	most("requests for files", files.Count, 12) // of 10: a browser asks for an icon more than once
	most("bytes of files", files.Bytes, 50_000)
	most("bytes of the state", value[loaded](ctx, t, transferred(`/api.state/`)).First, 100_000)
	picture(ctx, t, "many-light")

	if _, err := admin.Pause(t.Context(), store, "orders", true, "orders.eu-4711"); err != nil {
		t.Fatal(err)
	}
	until(ctx, t, `document.getElementById('sentence').textContent.includes('1 paused')`)
	most("bytes of a change", value[loaded](ctx, t, transferred(`/api.state/`)).Last, 2_000)

	do(ctx, t, chromedp.Evaluate(`document.getElementById('list').scrollTop = 1e9`, nil))
	until(ctx, t, `document.getElementById('rows').innerText.includes('orders.eu-4999')`)
	most("rows of the list that exist", value[int](ctx, t, `document.querySelectorAll('#rows .row').length`), 60)
	do(ctx, t, chromedp.SendKeys(`#query`, "eu-47 node", chromedp.ByQuery))
	until(ctx, t, `document.getElementById('list').getAttribute('aria-rowcount') === '100'`)

	for _, look := range []struct {
		name, scheme  string
		width, height int64
	}{{"many-dark", "dark", 1280, 900}, {"many-phone", "light", 360, 740}, {"many-phone-dark", "dark", 360, 740}} {
		do(ctx, t, as(look.width, look.height, look.scheme), chromedp.Navigate(url))
		until(ctx, t, painted+` !== undefined`)
		if w := value[int64](ctx, t, `document.documentElement.scrollWidth`); w > look.width {
			t.Errorf("%s: the page is %d wide, the window %d", look.name, w, look.width)
		}
		picture(ctx, t, look.name)
	}
}

// computed is how long the page's main thread has worked, without what it has waited for a processor.
func computed(ctx context.Context, t *testing.T) (d time.Duration) {
	do(ctx, t, chromedp.ActionFunc(func(ctx context.Context) error {
		metrics, err := performance.GetMetrics().Do(ctx)
		for _, m := range metrics {
			if m.Name == "TaskDuration" {
				d = time.Duration(m.Value * float64(time.Second))
			}
		}
		return err
	}))
	return d
}

// manyInGroup starts the nodes and waits until they hold all.
func manyInGroup(t *testing.T) backends.Store {
	store := memory.New()
	if _, err := admin.Create(t.Context(), store, "orders", admin.Settings{Barrier: "resource", Origin: "registered", TTL: time.Minute}); err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range manyResources {
		names = append(names, fmt.Sprintf("orders.eu-%04d", i))
	}
	if _, err := admin.AddResources(t.Context(), store, "orders", names...); err != nil {
		t.Fatal(err)
	}
	f := newFleet(t, store, group.Config{Resources: group.Registered(), TTL: time.Minute})
	for i := range manyNodes {
		f.start(fmt.Sprintf("node-%03d", i))
	}
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
		d, err := admin.Describe(t.Context(), store, "orders")
		if err != nil {
			t.Fatal(err)
		}
		held, busy := 0, 0
		for _, n := range d.Nodes {
			held += n.Holds
			if n.Holds > 0 && n.Holds == n.Assigned {
				busy++
			}
		}
		if held == manyResources && busy == manyNodes {
			return store
		}
		if time.Now().After(end) {
			t.Fatalf("%d resources are held, %d nodes have their share", held, busy)
		}
	}
}
