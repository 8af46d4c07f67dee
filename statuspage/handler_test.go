package statuspage

import (
	"bufio"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestEveryAnswerHasTheHeadersOfSecurity(t *testing.T) {
	t.Parallel()
	inWorld(t, func(c *Config) { c.Hosts = []string{"Board.example"} }, func(w *world) {
		for _, path := range []string{"/", "/page.js", "/page.css", "/icon.svg", "/api/groups", "/api/state?group=g", "/nothing", "/api/do"} {
			h := w.ask(http.MethodGet, path, "").Header()
			for key, want := range map[string]string{
				"Content-Security-Policy": "default-src 'none'", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
				"Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin",
			} {
				if !strings.HasPrefix(h.Get(key), want) {
					t.Errorf("%s: %s is %q", path, key, h.Get(key))
				}
			}
			if h.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s lets other sites read", path)
			}
		}
		for host, code := range map[string]int{
			"localhost:8080": 200, "127.0.0.1:8080": 200, "[::1]:8080": 200, "10.1.2.3": 200, "board.EXAMPLE:80": 200, "LOCALHOST.": 200,
			"evil.example": 421, "localhost.evil.example": 421, "": 421, "127.0.0.1.evil.example:8080": 421,
		} {
			if rec := w.ask(http.MethodGet, "/api/groups", "", func(r *http.Request) { r.Host = host }); rec.Code != code {
				t.Errorf("host %q: %d, want %d", host, rec.Code, code)
			}
		}
	})
}

// What the policy forbids does not work, so it must not stand there.
func TestThePageNeedsNothingFromElsewhereAndHasNoInlineCode(t *testing.T) {
	t.Parallel()
	bad := regexp.MustCompile(`(?i)https?://|//cdn|<script(?:>|[^>]*>[^<])|\son[a-z]+="|\sstyle="|<style|javascript:|@import|url\(|innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser|srcdoc`)
	linked := regexp.MustCompile(`(?:href|src)="([a-z]+\.[a-z]+)"|from '\./([a-z]+\.js)'`)
	files := pageFiles()
	for path, f := range files { // each by itself
		src := strings.ReplaceAll(string(f.plain), `xmlns="http://www.w3.org/2000/svg"`, "")
		if m := bad.FindString(src); m != "" {
			t.Errorf("%s has %q", path, m)
		}
		for _, m := range linked.FindAllStringSubmatch(src, -1) {
			if _, ok := files["/"+m[1]+m[2]]; !ok {
				t.Errorf("%s needs %s, which is not there", path, m[1]+m[2])
			}
		}
		if n := strings.Count(src, "\n"); n > 500 {
			t.Errorf("%s has %d lines", path, n)
		}
	}
	if len(files) < 9 {
		t.Errorf("only %d files", len(files))
	}
}

func TestFilesAreZippedAndNotSentAgain(t *testing.T) {
	t.Parallel()
	inWorld(t, nil, func(w *world) {
		rec := w.ask(http.MethodGet, "/page.js", "", header("Accept-Encoding", "br, gzip"))
		if rec.Header().Get("Content-Encoding") != "gzip" || !strings.HasPrefix(rec.Header().Get("Content-Type"), "text/javascript") {
			t.Fatalf("%v", rec.Header())
		}
		z, err := gzip.NewReader(rec.Body)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := text(z), string(pageFiles()["/page.js"].plain); got != want {
			t.Error("the file is another one when it is unzipped")
		}
		again := w.ask(http.MethodGet, "/page.js", "", header("If-None-Match", rec.Header().Get("ETag")))
		if again.Code != http.StatusNotModified || again.Body.Len() > 0 {
			t.Errorf("again: %d, %d bytes", again.Code, again.Body.Len())
		}
		if head := w.ask(http.MethodHead, "/", ""); head.Code != 200 || head.Body.Len() > 0 {
			t.Errorf("HEAD: %d, %d bytes", head.Code, head.Body.Len())
		}
		for accept, want := range map[string]bool{"gzip": true, "gzip;q=0.5": true, "gzip;q=0": false, "gzip; q=0.0": false, "": false, "br": false} {
			if acceptsGzip(accept) != want {
				t.Errorf("%q", accept)
			}
		}
	})
}

func TestAfterCloseNothingRunsOrAnswers(t *testing.T) {
	t.Parallel()
	inWorld(t, nil, func(w *world) {
		first := w.state("")
		done := make(chan shownState)
		go func() { done <- w.state(first.Version) }()
		time.Sleep(2 * time.Second)
		began := time.Now()
		w.page.Close()
		<-done
		if time.Since(began) > time.Second {
			t.Errorf("who waited was answered after %v", time.Since(began))
		}
		if s := w.state(""); s.code != http.StatusServiceUnavailable {
			t.Errorf("%+v", s)
		}
	})
}

// pipes is a listener whose connections are made by dial.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func newPipes() *pipes { return &pipes{make(chan net.Conn), make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }
func (p *pipes) Close() error {
	select {
	case <-p.closed:
	default:
		close(p.closed)
	}
	return nil
}

func (p *pipes) dial() net.Conn {
	ours, theirs := net.Pipe()
	p.conns <- theirs
	return ours
}

func TestServeEndsSlowConnectionsAndIsStoppedWhileBrowsersWait(t *testing.T) {
	t.Parallel()
	inWorld(t, nil, func(w *world) {
		l := newPipes()
		ctx, stop := context.WithCancel(w.Context())
		done := make(chan error, 1)
		go func() { done <- Serve(ctx, l, w.page) }()

		slow := l.dial()
		fmt.Fprint(slow, "GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
		began := time.Now()
		_, _ = io.Copy(io.Discard, slow)
		if took := time.Since(began); took > headerTime+time.Second {
			t.Errorf("half a request kept its connection for %v", took)
		}

		first := w.state("")
		waiting := l.dial()
		fmt.Fprintf(waiting, "GET /api/state?group=g&have=%s HTTP/1.1\r\nHost: localhost\r\n\r\n", first.Version)
		synctest.Wait()
		began = time.Now()
		stop()
		res, err := http.ReadResponse(bufio.NewReader(waiting), nil)
		if err != nil || res.StatusCode != http.StatusNoContent {
			t.Errorf("%v %v", res, err)
		}
		_ = waiting.Close()
		if err := <-done; err != nil || time.Since(began) > 2*time.Second {
			t.Errorf("stopped after %v: %v", time.Since(began), err)
		}
	})
}

func TestServeFailsWithItsListener(t *testing.T) {
	t.Parallel()
	inWorld(t, nil, func(w *world) {
		l := newPipes()
		_ = l.Close()
		if err := Serve(w.Context(), l, w.page); err == nil {
			t.Error("no error")
		}
	})
}
