package s3

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/rebalancer-go/rebalancer/internal/files"
	"github.com/rebalancer-go/rebalancer/internal/programtest"
	"github.com/rebalancer-go/rebalancer/internal/readertest"
	"github.com/rebalancer-go/rebalancer/sources"
	"github.com/rebalancer-go/rebalancer/sources/pickup"
)

// logs collects what a Logger was told.
type logs struct{ programtest.Buffer }

func (l *logs) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// names lists a resource.
func names(s *Source, resource string) ([]string, error) {
	var got []string
	err := (&place{source: s, resource: resource}).List(context.Background(), func(page []files.Entry) error {
		for _, e := range page {
			got = append(got, e.Name)
		}
		return nil
	})
	return got, err
}

// TestPages: a listing goes over all pages in the order of the keys, and on from where it was when one fails.
func TestPages(t *testing.T) {
	t.Parallel()
	for _, encoded := range []bool{true, false} {
		st := newStub(t)
		st.most, st.encode = 3, encoded
		var want []string
		for i := range 20 {
			name := fmt.Sprintf("%02d a+b%%2B é&<", i)
			want = append(want, name)
			st.put("in/"+name, "")
			st.put(fmt.Sprintf("in/%02d folder/x", i), "")
		}
		if encoded {
			want = append(want, "control\x01\r\n")
			st.put("in/control\x01\r\n", "")
		}
		lists, failing := 0, 0
		st.refuse = func(op, _ string) (int, string, string) {
			if lists++; lists%3 == 0 && failing < 4 {
				failing++
				return 503, "SlowDown", "Please reduce your request rate"
			}
			return 0, "", ""
		}
		got, err := names(newSource(t, quick(st.client())), "in")
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("encoded %v: got %q, %v", encoded, got, err)
		}
		if n := st.requests()["LIST"]; n != (len(want)+20+2)/3+failing || failing != 4 {
			t.Errorf("%d requests, of which %d failed", n, failing)
		}
	}
}

// TestPageThatStaysAway: a listing that cannot go on is an error, never a short list, and one that cannot begin is told at once.
func TestPageThatStaysAway(t *testing.T) {
	t.Parallel()
	st := newStub(t)
	st.most = 1
	st.put("in/a", "")
	st.put("in/b", "")
	s := newSource(t, quick(st.client()))
	st.refuse = func(string, string) (int, string, string) { return 503, "SlowDown", "" }
	if _, err := names(s, "in"); err == nil || !strings.Contains(err.Error(), "fewer requests") {
		t.Errorf("first page: %v", err)
	}
	if n := st.requests()["LIST"]; n != 1 {
		t.Errorf("%d requests for a first page that fails, want 1", n)
	}
	n := 0
	st.refuse = func(string, string) (int, string, string) {
		if n++; n == 1 {
			return 0, "", ""
		}
		return 500, "InternalError", ""
	}
	if got, err := names(s, "in"); err == nil {
		t.Errorf("got %q without an error", got)
	}
	if n != 2+resumes {
		t.Errorf("%d requests, want %d", n, 2+resumes)
	}
}

// TestListingsOfBadStores: what would loop for ever, or make keys of what is none, is an error.
func TestListingsOfBadStores(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		"<IsTruncated>true</IsTruncated>": "not how to go on",
		"<IsTruncated>true</IsTruncated><NextContinuationToken>same</NextContinuationToken>":      "not how to go on",
		"<EncodingType>url</EncodingType><Contents><Key>in/%zz</Key></Contents>":                  "not encoded as it says",
		"<EncodingType>url</EncodingType><CommonPrefixes><Prefix>in/%z</Prefix></CommonPrefixes>": "not encoded as it says",
		"<Contents><Size>1</Size></Contents>":                                                     "without a key",
	} {
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "<ListBucketResult>"+body+"</ListBucketResult>")
		}))
		t.Cleanup(front.Close)
		if _, err := names(newSource(t, quick(dial(t, front.URL, "id", "hush"))), "in"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}
}

// TestWhatIsNoMessage: markers of directories, what was moved, what is ignored, and our own.
func TestWhatIsNoMessage(t *testing.T) {
	t.Parallel()
	st := newStub(t)
	for _, key := range []string{"in/", "in/sub/", "in/x_$folder$", "in/" + probePrefix + "x", "in/failed/a", "in/done/2026-11-30/a", "in/y.tmp", "in/sub/y.tmp", "in/sub/.hidden", "other/a"} {
		st.put(key, "")
	}
	for _, key := range []string{"in/a", "in/sub/a", "in/sub/failed/a", "in/full/", "in/done-not/a"} {
		st.put(key, "x")
	}
	cfg := quick(st.client())
	cfg.OnSuccess = pickup.MoveTo("done/{2006-01-02}")
	for subtree, want := range map[bool][]string{false: {"a"}, true: {"a", "done-not/a", "sub/a", "sub/failed/a"}} {
		cfg.Subtree = subtree
		var l logs
		cfg.Logger = l.logger()
		s := newSource(t, cfg)
		r := open(t, s, "in")
		if got := keysOf(readertest.Fetch(t, r, len(want))); !slices.Equal(got, want) {
			t.Errorf("subtree %v: got %q, want %q", subtree, got, want)
		}
		readertest.Nothing(t, r)
		if said := strings.Contains(l.String(), "name=full/"); said != subtree {
			t.Errorf("subtree %v: the log of what has a strange name: %s", subtree, l.String())
		}
		if n, err := s.Lag(t.Context(), "in"); err != nil || n < int64(len(want)) {
			t.Errorf("Lag: %d, %v", n, err)
		}
	}
}

// TestLateAndSameSecond: neither the order of keys nor the clock decides what is found.
func TestLateAndSameSecond(t *testing.T) {
	t.Parallel()
	st := newStub(t)
	r := open(t, newSource(t, quick(st.client())), "in")
	at := time.Now()
	st.put("in/m", "1").modified = at
	readertest.Settle(t, r, sources.Done, readertest.Fetch(t, r, 1)...)
	for _, key := range []string{"in/a", "in/z", "in/m"} { // earlier, later, the same again; within the same second, and long ago
		o := st.put(key, "2")
		st.set(func() { o.modified = at })
		readertest.Settle(t, r, sources.Done, readertest.Fetch(t, r, 1)...)
		o = st.put(key, "3")
		st.set(func() { o.modified = at.Add(-time.Hour) })
		readertest.Settle(t, r, sources.Done, readertest.Fetch(t, r, 1)...)
	}
}

// million answers listings with n keys of which ten are messages, made as they are asked for.
func million(n int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			w.WriteHeader(http.StatusPreconditionFailed)
			return
		}
		from := 0
		_, _ = fmt.Sscanf(r.URL.Query().Get("continuation-token"), "%d", &from)
		to := min(from+1000, n)
		fmt.Fprintf(w, "<ListBucketResult><IsTruncated>%v</IsTruncated><NextContinuationToken>%d</NextContinuationToken>", to < n, to)
		for i := from; i < to; i++ {
			end := "archive"
			if i%(n/10) == n/20 {
				end = "csv"
			}
			fmt.Fprintf(w, "<Contents><Key>in/%09d.%s</Key><LastModified>2026-11-30T00:00:00Z</LastModified><ETag>\"%032x\"</ETag><Size>5</Size></Contents>", i, end, i)
		}
		_, _ = io.WriteString(w, "</ListBucketResult>")
	}
}

// TestMillionKeys: with ten waiting among a million, no more requests than its pages, and little memory.
func TestMillionKeys(t *testing.T) {
	n := 20_000
	if *soak {
		n = 1_000_000
	}
	front := httptest.NewServer(million(n))
	defer front.Close()
	cfg := quick(dial(t, front.URL, "id", "hush"))
	cfg.Ignore, cfg.Interval, cfg.IdleInterval = []string{"*.archive"}, time.Hour, time.Hour
	c := &counting{Client: cfg.Client, n: map[string]int{}}
	cfg.Client = c
	r := open(t, newSource(t, cfg), "in")
	before := heap()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	ms, err := r.Fetch(ctx, 100)
	if err != nil || len(ms) != 10 {
		t.Fatalf("%d messages, %v", len(ms), err)
	}
	if pages := n/1000 + 1; c.n["LIST"] > pages { // one more for Open
		t.Errorf("%d requests for %d pages", c.n["LIST"], pages)
	}
	if grown := heap() - before; grown > 4<<20 {
		t.Errorf("%d KiB are held after the listing", grown>>10)
	}
	runtime.KeepAlive(r)
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// counting counts the requests for listings.
type counting struct {
	Client
	n map[string]int
}

func (c *counting) ListObjectsV2(ctx context.Context, in *s3.ListObjectsV2Input, o ...func(*s3.Options)) (*s3.ListObjectsV2Output, error) {
	c.n["LIST"]++
	return c.Client.ListObjectsV2(ctx, in, o...)
}

// TestRequests holds the table of requests in doc.go.
func TestRequests(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		change  func(*Config)
		outcome sources.Outcome
		want    map[string]int
	}{
		"delete":  {func(*Config) {}, sources.Done, map[string]int{"GET": 1, "DELETE": 1}},
		"checked": {func(c *Config) { c.Deletion = DeleteChecked }, sources.Done, map[string]int{"GET": 1, "HEAD": 1, "DELETE": 1}},
		"move":    {func(c *Config) { c.OnSuccess = pickup.MoveTo("done") }, sources.Done, map[string]int{"GET": 1, "HEAD": 1, "COPY": 1, "DELETE": 1}},
		"reject":  {func(*Config) {}, sources.Reject, map[string]int{"GET": 1, "HEAD": 2, "COPY": 1, "PUT": 1, "DELETE": 1}},
		"stable":  {func(c *Config) { c.StableFor = time.Millisecond }, sources.Done, map[string]int{"GET": 1, "HEAD": 1, "DELETE": 1}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			st := newStub(t)
			cfg := quick(st.client())
			cfg.Interval, cfg.IdleInterval = time.Hour, time.Hour
			c.change(&cfg)
			for i := range 5 {
				st.put(fmt.Sprintf("in/%d", i), "body")
			}
			r := open(t, newSource(t, cfg), "in")
			if got := st.requests(); got["LIST"] != 1 || got["DELETE"] > 3 || got["PUT"] > 1 {
				t.Errorf("opening: %v", got)
			}
			ms := readertest.Fetch(t, r, 5)
			for _, m := range ms {
				if _, err := readertest.Read(context.Background(), m); err != nil {
					t.Error(err)
				}
			}
			readertest.Settle(t, r, c.outcome, ms...)
			got := st.requests()
			if got["LIST"] != 1 {
				t.Errorf("%d listings, want 1", got["LIST"])
			}
			delete(got, "LIST")
			for op, n := range got {
				if n != 5*c.want[op] {
					t.Errorf("%d requests %s for 5 objects, want %d each", n, op, c.want[op])
				}
			}
			if len(got) != len(c.want) {
				t.Errorf("requests %v, want %v for each of 5", got, c.want)
			}
		})
	}
}

// TestArchived: an object that must be restored is reported and holds nobody up; restored, it is delivered.
func TestArchived(t *testing.T) {
	t.Parallel()
	st := newStub(t)
	var l logs
	cfg := quick(st.client())
	cfg.Logger = l.logger()
	cold := st.put("in/a", "cold")
	cold.class = "DEEP_ARCHIVE"
	st.put("in/b", "warm")
	r := open(t, newSource(t, cfg), "in")
	if got := keysOf(readertest.Fetch(t, r, 1)); got[0] != "b" {
		t.Fatalf("got %q", got)
	}
	readertest.Nothing(t, r)
	if !strings.Contains(l.String(), "restore it") {
		t.Errorf("the log says nothing of it: %s", l.String())
	}
	st.set(func() { cold.restore = `ongoing-request="true"` })
	readertest.Nothing(t, r)
	st.set(func() { cold.restore = `ongoing-request="false", expiry-date="Fri, 21 Dec 2030 00:00:00 GMT"` })
	ms := readertest.Fetch(t, r, 1)
	if body, err := readertest.Read(context.Background(), ms[0]); body != "cold" || err != nil {
		t.Errorf("got %q, %v", body, err)
	}
}
