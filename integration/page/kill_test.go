package page

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/rebalancer-go/rebalancer/admin"
	"github.com/rebalancer-go/rebalancer/backends/sqlite"
)

// process starts the command; it is killed at the end of the test, if not before.
func process(t *testing.T, env []string, args ...string) (kill func(), stderr io.Reader) {
	t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(), env...)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	killed := false
	kill = func() {
		if !killed {
			killed = true
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // it was killed
		}
	}
	t.Cleanup(func() { kill(); _ = r.Close() })
	return kill, r
}

// Three processes share twelve directories over SQLite; one of them is killed while somebody looks at the page of `rebalancer serve`.
func TestANodeIsKilled(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "group.db")
	store := "sqlite://" + file
	var resources []string
	for i := range 12 {
		name := fmt.Sprintf("in-%d", i)
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		resources = append(resources, "--resource", name)
	}
	kill := map[string]func(){}
	for _, node := range []string{"ash", "birch", "cedar"} {
		args := append([]string{"consume", "orders", "--source", "file://" + dir, "--store", store, "--ttl", "10s", "--node", node, "--on-success", "delete"}, resources...)
		k, out := process(t, nil, args...)
		kill[node] = k
		go func() { _, _ = io.Copy(io.Discard, out) }()
	}
	held := awaitHeld(t, file, 12, 3)
	_, out := process(t, []string{"REBALANCER_SERVE_TOKEN=" + token}, "serve", "--store", store, "--listen", "127.0.0.1:0")
	ctx := browser(t)
	do(ctx, t, as(1280, 900, "light"), chromedp.Navigate(addressIn(t, out)))
	until(ctx, t, `document.getElementById('sentence').textContent === 'All 12 resources are held by 3 nodes'`)
	// What is shown for seconds only is noted in the page, which this test may look at less often.
	do(ctx, t, chromedp.Evaluate(`window.noted = []; window.sameDocument = true;
		new MutationObserver(() => noted.push(document.getElementById('attention').innerText)).observe(document.getElementById('main'), { subtree: true, childList: true, characterData: true })`, nil))
	picture(ctx, t, "killed-before")

	kill["birch"]()
	began := time.Now()
	until(ctx, t, `noted.some((text) => /birch\s+has not been heard of/.test(text))`)
	t.Logf("the page says that the killed node has not been heard of after %v", time.Since(began))
	picture(ctx, t, "killed-late")
	gone := make(chan time.Time, 1)
	go func() { gone <- awaitHeld(t, file, 12, 2) }()
	until(ctx, t, `document.getElementById('sentence').textContent === 'All 12 resources are held by 2 nodes'`)
	onScreen := time.Now()
	t.Logf("the others have its resources on the page %v after they had them in the store, %v after the kill", onScreen.Sub(<-gone), onScreen.Sub(began))
	picture(ctx, t, "killed-after")
	if held.IsZero() || !value[bool](ctx, t, `window.sameDocument === true && ![...document.querySelectorAll('#nodes .name')].some((e) => e.textContent === 'birch')`) {
		t.Error("the page was loaded again")
	}
	changeWithTheKeyboard(ctx, t, file)
}

// changeWithTheKeyboard pauses a resource with keys alone.
func changeWithTheKeyboard(ctx context.Context, t *testing.T, file string) {
	keys := func(k string) { do(ctx, t, chromedp.KeyEvent(k)) }
	focus := func(id string) { do(ctx, t, chromedp.Focus("#"+id, chromedp.ByQuery)) }
	focus("unlock")
	keys(kb.Enter)
	until(ctx, t, `document.activeElement.id === 'token'`)
	keys("a wrong token!!!" + kb.Enter)
	until(ctx, t, `!document.getElementById('key').open`)
	pause := func() {
		do(ctx, t, chromedp.Evaluate(`document.activeElement.blur()`, nil))
		keys("/")
		until(ctx, t, `document.activeElement.id === 'query'`)
		do(ctx, t, chromedp.Evaluate(`document.getElementById('query').select()`, nil))
		keys("in-7" + kb.Enter)
		until(ctx, t, `document.activeElement.id === 'list' && document.getElementById('list').getAttribute('aria-rowcount') === '1'`)
		keys(kb.Enter)
		until(ctx, t, `document.getElementById('details').open`)
		until(ctx, t, `(() => { const b = document.querySelector('[data-do="Pause"]'); b?.focus(); return document.activeElement === b; })()`)
		keys(kb.Enter)
	}
	pause()
	until(ctx, t, `document.getElementById('details-result').textContent.includes('the token is missing or wrong')`)
	keys(kb.Escape)
	until(ctx, t, `!document.getElementById('details').open`)
	focus("unlock")
	keys(kb.Enter)
	until(ctx, t, `document.activeElement.id === 'token'`)
	keys(token + kb.Enter)
	until(ctx, t, `!document.getElementById('key').open`)
	pause()
	until(ctx, t, `document.querySelector('#details-body dd')?.textContent === 'Paused'`)
	picture(ctx, t, "paused")
	s, err := sqlite.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	d, err := admin.Describe(t.Context(), s, "orders")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range d.Resources {
		if (r.Paused != "") != (r.Name == "in-7") {
			t.Errorf("%s: paused %q", r.Name, r.Paused)
		}
	}
}

// awaitHeld waits until so many nodes hold so many resources, and tells when that was seen.
func awaitHeld(t *testing.T, file string, resources, nodes int) time.Time {
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		s, err := sqlite.Open(file)
		if err != nil {
			continue
		}
		d, err := admin.Describe(t.Context(), s, "orders")
		_ = s.Close()
		held := 0
		for _, r := range d.Resources {
			if r.State == admin.StateHeld {
				held++
			}
		}
		if err == nil && held == resources && len(d.Nodes) == nodes {
			return time.Now()
		}
	}
	t.Errorf("%d nodes do not come to hold %d resources", nodes, resources)
	return time.Time{}
}

// addressIn is where the command says that it serves.
func addressIn(t *testing.T, stderr io.Reader) string {
	t.Helper()
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		if _, after, ok := strings.Cut(lines.Text(), "serves "); ok {
			url, _, _ := strings.Cut(after, " ")
			go func() { _, _ = io.Copy(io.Discard, stderr) }()
			return url
		}
	}
	t.Fatalf("the command does not serve: %v", lines.Err())
	return ""
}
