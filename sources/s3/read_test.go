package s3

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/internal/readertest"
	"github.com/rebalancer-go/rebalancer/sources"
)

// TestTornReads: a connection that drops again and again costs requests, and the body is whole.
func TestTornReads(t *testing.T) {
	t.Parallel()
	st := newStub(t)
	body := strings.Repeat("0123456789", 1000)
	o := st.put("in/a", body)
	o.version = "v1"
	st.torn = 999
	r := open(t, newSource(t, quick(st.client())), "in")
	ms := readertest.Fetch(t, r, 1)
	if got, err := readertest.Read(context.Background(), ms[0]); got != body || err != nil {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if n := st.requests()["GET"]; n != 11 {
		t.Errorf("%d requests for a body in 11 pieces", n)
	}
}

// TestReplacedDuringTheRead: what was listed is not to be had any more, and the rest of another object is not its end.
func TestReplacedDuringTheRead(t *testing.T) {
	t.Parallel()
	st := newStub(t)
	st.put("in/a", strings.Repeat("a", 10_000))
	st.torn = 4000
	r := open(t, newSource(t, quick(st.client())), "in")
	ms := readertest.Fetch(t, r, 1)
	rc, err := ms[0].Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(rc, make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	st.put("in/a", strings.Repeat("b", 10_000))
	if _, err := io.ReadAll(rc); !errors.Is(err, rebalancer.ErrChanged) {
		t.Errorf("the rest of a replaced object: %v", err)
	}
	readertest.Settle(t, r, sources.Done, ms...) // stays, as what it is now
	st.set(func() { st.torn = 0 })
	if got, err := readertest.Read(context.Background(), readertest.Fetch(t, r, 1)[0]); got != strings.Repeat("b", 10_000) || err != nil {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	st.set(func() { delete(st.objects, "in/a") })
	if _, err := readertest.Read(context.Background(), ms[0]); !errors.Is(err, rebalancer.ErrChanged) {
		t.Errorf("an object that vanished: %v", err)
	}
}

// TestVanishedDuringTheRead: what is not there any more has changed, for a source that lists and for one that is told.
func TestVanishedDuringTheRead(t *testing.T) {
	t.Parallel()
	st := newStub(t)
	st.put("in/a", strings.Repeat("a", 10_000))
	st.torn = 4000
	p := &place{source: newSource(t, quick(st.client())), resource: "in"}
	want, err := p.Stat(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	rc, err := p.Open(t.Context(), "a", want)
	if err != nil {
		t.Fatal(err)
	}
	defer rc.Close()
	if _, err := io.ReadFull(rc, make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	st.set(func() { delete(st.objects, "in/a") })
	if _, err := io.ReadAll(rc); !errors.Is(err, rebalancer.ErrChanged) || !strings.Contains(err.Error(), "vanished") {
		t.Errorf("the rest of what vanished: %v", err)
	}
}

// badRanges answers GETs in its own way, once the first has been torn.
func badRanges(t *testing.T, answer func(w http.ResponseWriter, r *http.Request)) *body {
	t.Helper()
	var n atomic.Int32
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1) == 1 {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, strings.Repeat("x", 60))
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
		answer(w, r)
	}))
	t.Cleanup(front.Close)
	c := dial(t, front.URL, "id", "hush")
	s := newSource(t, quick(c))
	want := *identity("bkt", "in/a", "e", "", 100, time.Now())
	b, err := (&place{source: s, resource: "in"}).Open(t.Context(), "a", want)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b.(*body)
}

// TestRestThatCannotBeHad: a body that cannot go on ends with an error that says where.
func TestRestThatCannotBeHad(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request)
		want   string
	}{
		"from its start": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("y", 100)) }, "from its start"},
		"denied":         {func(w http.ResponseWriter, _ *http.Request) { answerError(w, 403, "AccessDenied", "") }, "grant s3:GetObject"},
		"key of KMS": {func(w http.ResponseWriter, _ *http.Request) {
			answerError(w, 403, "AccessDenied", "not authorized to perform: kms:Decrypt")
		}, "grant kms:Decrypt"},
	} {
		got, err := io.ReadAll(badRanges(t, c.answer))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "60 of 100 bytes") || len(got) != 60 {
			t.Errorf("%s: %d bytes, %v", what, len(got), err)
		}
	}
}

// TestSilence: a body that brings nothing more is asked for again after a while, not waited for.
func TestSilence(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	var n atomic.Int32
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch n.Add(1) {
		case 1:
			w.Header().Set("Content-Length", "10")
			_, _ = io.WriteString(w, "01234")
			w.(http.Flusher).Flush()
			<-hang
		case 2: // not even a header
			<-hang
		default:
			w.Header().Set("Content-Range", "bytes 5-9/10")
			w.WriteHeader(http.StatusPartialContent)
			_, _ = io.WriteString(w, "56789")
		}
	}))
	t.Cleanup(front.Close)
	t.Cleanup(func() { close(hang) })
	s := newSource(t, quick(dial(t, front.URL, "id", "hush")))
	s.readIdle = 500 * time.Millisecond
	b, err := (&place{source: s, resource: "in"}).Open(t.Context(), "a", *identity("bkt", "in/a", "e", "", 10, time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if got, err := io.ReadAll(b); string(got) != "0123456789" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	n.Store(1) // nobody answers any more
	if _, err := (&place{source: s, resource: "in"}).Open(t.Context(), "a", *identity("bkt", "in/a", "e", "", 10, time.Now())); err == nil ||
		!strings.Contains(err.Error(), "no answer within") || errors.Is(err, context.Canceled) {
		t.Errorf("Open of what nobody sends: %v", err)
	}
}

// TestReadEnds: with its context, and when it is closed.
func TestReadEnds(t *testing.T) {
	t.Parallel()
	st := newStub(t)
	st.put("in/a", strings.Repeat("a", 10_000))
	st.torn = 100
	s := newSource(t, quick(st.client()))
	ms := readertest.Fetch(t, open(t, s, "in"), 1)
	info := *identity("bkt", "in/a", st.objects["in/a"].etag(), "", 10_000, time.Now())
	for what, end := range map[string]func(cancel context.CancelFunc, c io.Closer){
		"its context": func(cancel context.CancelFunc, _ io.Closer) { cancel() },
		"Close":       func(_ context.CancelFunc, c io.Closer) { _ = c.Close() },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		b, err := (&place{source: s, resource: "in"}).Open(ctx, "a", info)
		if err != nil {
			t.Fatal(err)
		}
		end(cancel, b)
		if n, err := io.Copy(io.Discard, b); err == nil {
			t.Errorf("%d bytes without an error after the end by %s", n, what)
		}
		_ = b.Close()
	}
	_ = ms
}

// TestErrors: each says what to do, on what, and matches what it is.
func TestErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status     int
		code, text string
		is         error
		want       string
	}{
		{404, "NoSuchBucket", "", sources.ErrGone, "create it"},
		{403, "AccessDenied", "", nil, "grant s3:ListBucket"},
		{403, "InvalidAccessKeyId", "", nil, "credentials are refused"},
		{403, "SignatureDoesNotMatch", "", nil, "credentials are refused"},
		{400, "ExpiredToken", "", nil, "credentials are refused"},
		{403, "RequestTimeTooSkewed", "", nil, "clock"},
		{301, "PermanentRedirect", "", nil, "region eu-west-3"},
		{400, "AuthorizationHeaderMalformed", "", nil, "region eu-west-3"},
		{403, "InvalidObjectState", "", nil, "archived"},
		{400, "KMS.DisabledException", "", nil, "key of KMS"},
		{503, "SlowDown", "", nil, "fewer requests"},
		{500, "InternalError", "", nil, "InternalError"},
	} {
		st := newStub(t)
		st.header["X-Amz-Bucket-Region"] = []string{"eu-west-3"}
		st.refuse = func(string, string) (int, string, string) { return c.status, c.code, c.text }
		_, err := newSource(t, quick(st.client())).Open(t.Context(), claim("in"))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), `bucket "bkt"`) || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: %v, want %q", c.code, err, c.want)
		}
		if c.is == nil && errors.Is(err, sources.ErrGone) {
			t.Errorf("%s is taken for a missing bucket", c.code)
		}
		if err != nil && strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: the error shows the secret: %v", c.code, err)
		}
	}
	st := newStub(t)
	st.put("in/a", "x")
	s := newSource(t, quick(st.client()))
	for _, c := range []struct {
		status int
		want   string
	}{{403, "grant s3:GetObject"}, {404, "404"}, {301, "region eu-west-3"}} { // HEAD has no code
		st.set(func() { st.header["X-Amz-Bucket-Region"] = []string{"eu-west-3"} })
		st.refuse = func(string, string) (int, string, string) { return c.status, "x", "" }
		if _, err := s.head(t.Context(), "bkt", "in/a"); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), `"in/a"`) {
			t.Errorf("HEAD %d: %v", c.status, err)
		}
	}
}

// TestReadsHeedNoCondition: a store that ignores If-Match sends what is there now, which is told by its ETag, at the start and where a read goes on.
func TestReadsHeedNoCondition(t *testing.T) {
	t.Parallel()
	for _, torn := range []int{0, 3} {
		st := newStub(t)
		st.put("in/a", "aaaaaaaaaa")
		info := infoOf(st, "in/a")
		st.loose, st.torn = true, torn
		if torn == 0 {
			st.put("in/a", "bbbbbbbbbb")
		}
		b, err := (&place{source: newSource(t, quick(st.client())), resource: "in"}).Open(t.Context(), "a", info)
		if err == nil {
			got, _ := io.ReadAll(io.LimitReader(b, 3))
			st.set(func() { st.torn = 0 })
			st.put("in/a", "bbbbbbbbbb")
			var rest []byte
			rest, err = io.ReadAll(b)
			if s := string(got) + string(rest); strings.Contains(s, "b") {
				t.Errorf("torn at %d: read %q", torn, s)
			}
			_ = b.Close()
		}
		if !errors.Is(err, rebalancer.ErrChanged) {
			t.Errorf("torn at %d: %v", torn, err)
		}
	}
}
