package s3

import (
	"crypto/md5"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// stub is a store in memory, for what no server to be had does: archives, keys of KMS, stores without conditions, throttling, encoded keys.
type stub struct {
	t   testing.TB
	url string

	mu      sync.Mutex
	objects map[string]*stored
	count   map[string]int // of requests, by operation
	// refuse is asked before each request; a code that is not empty is the answer.
	refuse func(op, key string) (status int, code, message string)
	loose  bool // deletions and reads heed no condition
	// strictOnAbsence: a deletion of what is not there is an error all the same.
	strictOnAbsence bool
	encode          bool // listings are encoded where that is asked for
	most            int  // keys of a page
	torn            int  // answers to GET end after so many bytes; 0: whole
	header          http.Header
}

type stored struct {
	body     string
	modified time.Time
	class    string
	restore  string
	version  string
}

func newStub(t testing.TB) *stub {
	s := &stub{t: t, objects: map[string]*stored{}, count: map[string]int{}, encode: true, most: 1000, header: http.Header{}}
	front := httptest.NewServer(s)
	t.Cleanup(front.Close)
	s.url = front.URL
	return s
}

func (s *stub) put(key, body string) *stored {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := &stored{body: body, modified: time.Now()}
	s.objects[key] = o
	return o
}

func (s *stub) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *stub) keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var keys []string
	for k := range s.objects {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

func (s *stub) requests() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := map[string]int{}
	for k, n := range s.count {
		c[k] = n
	}
	clear(s.count)
	return c
}

func (o *stored) etag() string { return fmt.Sprintf(`"%x"`, md5.Sum([]byte(o.body))) }

func operation(r *http.Request, key string) string {
	switch {
	case key == "":
		return "LIST"
	case r.Header.Get("X-Amz-Copy-Source") != "":
		return "COPY"
	case r.URL.Query().Has("tagging"):
		return r.Method + "TAG"
	}
	return r.Method
}

func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	op := operation(r, key)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count[op]++
	for k, v := range s.header {
		w.Header()[k] = v
	}
	if s.refuse != nil {
		if status, code, message := s.refuse(op, key); code != "" {
			answerError(w, status, code, message)
			return
		}
	}
	o := s.objects[key]
	switch op {
	case "LIST":
		s.list(w, r.URL.Query())
	case "HEAD", "GET":
		s.get(w, r, o)
	case "PUT":
		b, _ := io.ReadAll(r.Body)
		if r.Header.Get("If-None-Match") == "*" && o != nil {
			answerError(w, 412, "PreconditionFailed", "")
			return
		}
		s.objects[key] = &stored{body: string(b), modified: time.Now()}
		w.Header().Set("ETag", s.objects[key].etag())
	case "COPY":
		s.copy(w, r, key, o)
	case "DELETE":
		s.delete(w, r, key, o)
	default:
		answerError(w, 501, "NotImplemented", op)
	}
}

func (s *stub) get(w http.ResponseWriter, r *http.Request, o *stored) {
	if o == nil {
		answerError(w, 404, "NoSuchKey", "")
		return
	}
	if m := r.Header.Get("If-Match"); m != "" && m != o.etag() && !s.loose {
		answerError(w, 412, "PreconditionFailed", "")
		return
	}
	h := w.Header()
	h.Set("ETag", o.etag())
	h.Set("Last-Modified", o.modified.UTC().Format(http.TimeFormat))
	for k, v := range map[string]string{"x-amz-storage-class": o.class, "x-amz-restore": o.restore, "x-amz-version-id": o.version} {
		if v != "" {
			h.Set(k, v)
		}
	}
	body, status := o.body, 200
	if from, ok := strings.CutPrefix(r.Header.Get("Range"), "bytes="); ok {
		n, _ := strconv.Atoi(strings.TrimSuffix(from, "-"))
		h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", n, len(body)-1, len(body)))
		body, status = body[n:], 206
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method == http.MethodGet {
		if s.torn > 0 && len(body) > s.torn {
			_, _ = io.WriteString(w, body[:s.torn])
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, body)
	}
}

func (s *stub) copy(w http.ResponseWriter, r *http.Request, key string, o *stored) {
	_, from, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("X-Amz-Copy-Source"), "/"), "/")
	from, _ = url.PathUnescape(from)
	src := s.objects[from]
	switch {
	case src == nil:
		answerError(w, 404, "NoSuchKey", "")
	case o != nil || r.Header.Get("X-Amz-Copy-Source-If-Match") != src.etag():
		answerError(w, 412, "PreconditionFailed", "")
	default:
		c := *src
		s.objects[key] = &c
		fmt.Fprintf(w, "<CopyObjectResult><ETag>%s</ETag></CopyObjectResult>", c.etag())
	}
}

func (s *stub) delete(w http.ResponseWriter, r *http.Request, key string, o *stored) {
	if s.loose && s.strictOnAbsence && o == nil {
		answerError(w, 404, "NoSuchKey", "")
		return
	}
	if m := r.Header.Get("If-Match"); m != "" && !s.loose {
		switch {
		case o == nil:
			answerError(w, 404, "NoSuchKey", "")
			return
		case m != o.etag():
			answerError(w, 412, "PreconditionFailed", "")
			return
		}
	}
	delete(s.objects, key)
	w.WriteHeader(204)
}

type listing struct {
	XMLName               xml.Name `xml:"ListBucketResult"`
	EncodingType          string   `xml:",omitempty"`
	IsTruncated           bool
	NextContinuationToken string `xml:",omitempty"`
	Contents              []listed1
	CommonPrefixes        []struct{ Prefix string }
}

type listed1 struct {
	Key, LastModified, ETag, StorageClass string
	Size                                  int
}

func (s *stub) list(w http.ResponseWriter, q url.Values) {
	prefix, delimiter, after := q.Get("prefix"), q.Get("delimiter"), q.Get("continuation-token")
	keys := make([]string, 0, len(s.objects))
	for k := range s.objects {
		if strings.HasPrefix(k, prefix) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	var l listing
	encode := func(k string) string { return k }
	if s.encode && q.Get("encoding-type") == "url" {
		l.EncodingType, encode = "url", url.QueryEscape
	}
	most := s.most
	if n, err := strconv.Atoi(q.Get("max-keys")); err == nil {
		most = min(most, n)
	}
	last := ""
	for _, k := range keys {
		common := ""
		if i := strings.Index(k[len(prefix):], delimiter); delimiter != "" && i >= 0 {
			common = k[:len(prefix)+i+1]
		}
		at := max(common, k[:len(k)*b2i(common == "")])
		if at <= after || at == last {
			continue
		}
		if len(l.Contents)+len(l.CommonPrefixes) == most {
			l.IsTruncated, l.NextContinuationToken = true, last
			break
		}
		last = at
		if common != "" {
			l.CommonPrefixes = append(l.CommonPrefixes, struct{ Prefix string }{encode(common)})
			continue
		}
		o := s.objects[k]
		l.Contents = append(l.Contents, listed1{encode(k), o.modified.UTC().Format("2006-01-02T15:04:05.000Z"), o.etag(), o.class, len(o.body)})
	}
	w.Header().Set("Content-Type", "application/xml")
	if err := xml.NewEncoder(w).Encode(l); err != nil {
		s.t.Error(err)
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func answerError(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s</Message></Error>", code, message)
}
