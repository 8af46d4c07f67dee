package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/admin"
	"github.com/rebalancer-go/rebalancer/internal/programtest"
	"github.com/rebalancer-go/rebalancer/internal/waittest"
)

// serving runs serve until the test ends and returns the address of the page and what it has said.
func (w *world) serving(args ...string) (url string, said *programtest.Buffer) {
	w.t.Helper()
	said = &programtest.Buffer{}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan int, 1)
	go func() {
		ended <- w.program(os.Stdout, said).run(ctx, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...))
	}()
	w.t.Cleanup(func() {
		stop()
		if code := <-ended; code != codeDone {
			w.t.Errorf("serve ended with %d: %s", code, said)
		}
	})
	address := regexp.MustCompile(`http://\S+/`)
	waittest.Until(w.t, "it serves", func() bool {
		url = address.FindString(said.String())
		return url != ""
	})
	return url, said
}

// reply asks for a page and returns its status and what it says.
func reply(t *testing.T, method, url, body string, header map[string]string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range header {
		r.Header.Set(k, v)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	res, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

func TestServe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.want(codeDone, "", "", "create", "g", "--registered")
	w.want(codeDone, "", "", "resources", "add", "g", "a")
	url, said := w.serving()
	if code, body := reply(t, "GET", url, "", nil); code != 200 || !strings.Contains(body, "<title>Rebalancer") {
		t.Errorf("%d %s", code, body)
	}
	if code, body := reply(t, "GET", url+"api/state?group=g", "", nil); code != 200 || !strings.Contains(body, `"name":"a"`) {
		t.Errorf("%d %s", code, body)
	}
	do := map[string]string{"Content-Type": "application/json", "Authorization": "Bearer "}
	if code, _ := reply(t, "POST", url+"api/do", `{"group":"g","do":"pause","names":["a"]}`, do); code != http.StatusForbidden {
		t.Errorf("without a token: %d", code)
	}
	if !strings.Contains(said.String(), "(read-only)") {
		t.Errorf("%s", said)
	}
}

func TestServeWithAToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.want(codeDone, "", "", "create", "g", "--registered")
	w.want(codeDone, "", "", "resources", "add", "g", "a")
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	url, said := w.serving("g", "--token-file", file)
	do := map[string]string{"Content-Type": "application/json", "Authorization": "Bearer 0123456789abcdef"}
	if code, body := reply(t, "POST", url+"api/do", `{"group":"g","do":"pause","names":["a"]}`, do); code != 200 {
		t.Errorf("%d %s", code, body)
	}
	d, err := admin.Describe(t.Context(), w.store, "g")
	if err != nil || d.Resources[0].Paused == "" {
		t.Errorf("%+v %v", d, err)
	}
	if strings.Contains(said.String(), "0123456789abcdef") {
		t.Errorf("it shows the token: %s", said)
	}
}

func TestServeRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.want(codeUsage, "", "is empty", "serve", "--token-file", empty)
	w.want(codeFailed, "", "no such file", "serve", "--token-file", empty+"-not")
	w.want(codeUsage, "", `"a/b"`, "serve", "a/b")
	w.want(codeFailed, "", "--listen", "serve", "--listen", "256.0.0.1:x")
	w.env["REBALANCER_SERVE_TOKEN"] = "short secret"
	r := w.want(codeUsage, "", "the token has 12 bytes", "serve")
	if strings.Contains(r.err, "secret") {
		t.Errorf("it shows the token: %s", r.err)
	}
	w.want(codeUsage, "", "exclude each other", "serve", "--token-file", empty)
}

func TestServeKnowsThePasswordsThatItMustNotShow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env["REBALANCER_SOURCE_PASSWORD"] = "from the environment"
	got := w.program(nil, nil).passwords(serveOptions{store: "redis://u:in%20it@h", source: "amqp://u@h"})
	if len(got) != 2 || got[0] != "in it" || got[1] != "from the environment" {
		t.Errorf("%q", got)
	}
}
