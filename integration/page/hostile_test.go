package page

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/rebalancer-go/rebalancer/admin"
	"github.com/rebalancer-go/rebalancer/backends/memory"
	"github.com/rebalancer-go/rebalancer/group"
	"github.com/rebalancer-go/rebalancer/statuspage"
)

// hostile are names that would do something if they were taken for more than text.
var hostile = []string{
	`<img src=x onerror="window.hacked=1">`, `"><script>window.hacked=1</script>`, `javascript:window.hacked=1`, `{{constructor}}`,
	"a\u202egnp.exe", "new\nline\ttab", "bell\u0007", "zero\u200bwidth", `__proto__`, `constructor`, `'; DROP TABLE claims; --`, "עברית/مرحبا", "🙂",
}

func TestHostileNamesAreShownAsText(t *testing.T) {
	store := memory.New()
	if _, err := admin.Create(t.Context(), store, "orders", admin.Settings{Barrier: "resource", Origin: "registered", TTL: 30 * time.Second}); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.AddResources(t.Context(), store, "orders", hostile...); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Register(t.Context(), store, "orders", admin.Registration{Name: "gpu<b>", Require: []string{"<i>=<u>"}}); err != nil {
		t.Fatal(err)
	}
	f := newFleet(t, store, group.Config{Resources: group.Registered(), TTL: 30 * time.Second, Labels: map[string]string{"<b>": "<script>"}})
	f.start(`<b onclick=x>node`)
	f.start(`__proto__`)
	ctx := browser(t)
	do(ctx, t, as(1280, 1400, "light"), chromedp.Navigate(serve(t, statuspage.Config{Store: store, Token: token})))
	until(ctx, t, `document.getElementById('sentence').textContent.startsWith('13 of 14 resources are held by 2 nodes')`)
	// Every dialog, too.
	until(ctx, t, `(() => {
		for (const li of document.querySelectorAll('#nodes button:not(:has(.quiet))')) { li.click(); document.getElementById('details').close(); }
		for (const row of document.querySelectorAll('#rows .row')) { row.click(); document.getElementById('details').close(); }
		document.querySelector('#rows .row').click();
		return document.querySelectorAll('#rows .row').length === 14;
	})()`)
	picture(ctx, t, "hostile")
	if !value[bool](ctx, t, `window.hacked === undefined && ({}).hacked === undefined && document.querySelectorAll('main img, main script, main b, main u, dialog img, dialog b').length === 0`) {
		t.Error("a name became an element or was run")
	}
	text := value[string](ctx, t, `[...document.querySelectorAll('#rows .what')].map((e) => e.textContent).join('|')`)
	for _, want := range []string{`<img src=x onerror="window.hacked=1">`, `a\u202egnp.exe`, `new\u000aline\u0009tab`, `zero\u200bwidth`, `__proto__`, `gpu<b>`} {
		if !strings.Contains(text, want) {
			t.Errorf("%q does not stand in %q", want, text)
		}
	}
}
