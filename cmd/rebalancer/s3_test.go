package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

// oneBucket is a store with the bucket "orders", as much of one as a consume needs; what a source makes of a whole one, its own tests show.
type oneBucket struct {
	mu      sync.Mutex
	objects map[string]string
}

func (b *oneBucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	b.mu.Lock()
	defer b.mu.Unlock()
	body, there := b.objects[key]
	source := r.Header.Get("X-Amz-Copy-Source")
	switch {
	case bucket != "orders" || !strings.Contains(r.Header.Get("Authorization"), "Credential=id/"):
		w.WriteHeader(http.StatusForbidden)
	case key == "":
		b.list(w, r.URL.Query())
	case source != "":
		from, _ := url.PathUnescape(source)
		b.objects[key] = b.objects[strings.TrimPrefix(from, "orders/")]
		_, _ = io.WriteString(w, "<CopyObjectResult><ETag>e</ETag></CopyObjectResult>")
	case r.Method == http.MethodPut:
		text, _ := io.ReadAll(r.Body)
		b.objects[key] = string(text)
	case !there:
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodDelete:
		delete(b.objects, key)
		w.WriteHeader(http.StatusNoContent)
	default:
		w.Header().Set("ETag", `"e"`)
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, body)
		}
	}
}

func (b *oneBucket) list(w http.ResponseWriter, query url.Values) {
	_, _ = io.WriteString(w, "<ListBucketResult>")
	for _, key := range b.keys() {
		rest, ok := strings.CutPrefix(key, query.Get("prefix"))
		if folder, _, deep := strings.Cut(rest, "/"); ok && deep {
			fmt.Fprintf(w, "<CommonPrefixes><Prefix>%s%s/</Prefix></CommonPrefixes>", query.Get("prefix"), folder)
		} else if ok {
			fmt.Fprintf(w, "<Contents><Key>%s</Key><ETag>e</ETag><Size>%d</Size><LastModified>2026-11-30T00:00:00Z</LastModified></Contents>", key, len(b.objects[key]))
		}
	}
	_, _ = io.WriteString(w, "</ListBucketResult>")
}

func (b *oneBucket) keys() []string {
	var keys []string
	for k := range b.objects {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func (b *oneBucket) left() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.keys()
}

// newS3 starts a store and makes the environment of AWS know its credentials.
func newS3(t *testing.T, objects map[string]string) (*oneBucket, string) {
	t.Helper()
	b := &oneBucket{objects: objects}
	front := httptest.NewServer(b)
	t.Cleanup(front.Close)
	for k, v := range map[string]string{
		"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "key", "AWS_EC2_METADATA_DISABLED": "true", "AWS_ENDPOINT_URL_S3": "",
		"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_PROFILE": "",
	} {
		t.Setenv(k, v)
	}
	return b, front.URL
}

func TestConsumeS3(t *testing.T) {
	store, endpoint := newS3(t, map[string]string{"base/in/a.csv": "1", "base/in/b.csv": "bad", "base/in/c.csv": "3", "base/eu/in/d.csv": "4", "elsewhere/x": "5"})
	w := newWorld(t)
	source := "s3://orders/base?region=us-east-1&interval=50ms&deletion=conditional&endpoint=" + endpoint
	r := w.want(0, "", "", "consume", "g", "--source", source, "--resource", "in/", "--resource", "eu/in", "--count", "3",
		"--on-failure", "move:failed", "--on-success", "move:/done", "--ttl", "5s", "--", "sh", "-c", `read -r line; [ "$line" = bad ] && exit 65; echo "$RB_RESOURCE $RB_KEY $line" >&2`)
	for _, line := range []string{"in a.csv 1", "in c.csv 3", "eu/in d.csv 4"} {
		if !strings.Contains(r.err, line) {
			t.Errorf("%q was not worked:\n%s", line, r.err)
		}
	}
	want := []string{"base/in/failed/b.csv", "base/in/failed/b.csv.reason.txt", "done/eu/in/d.csv", "done/in/a.csv", "done/in/c.csv", "elsewhere/x"}
	if got := store.left(); !slices.Equal(got, want) {
		t.Errorf("objects %q, want %q", got, want)
	}
	// The environment is enough, and a line tells where the object was.
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("AWS_ENDPOINT_URL_S3", endpoint)
	w.want(0, `"path":"s3://orders/elsewhere/x"`, "", "consume", "h", "--source", "s3://orders?deletion=conditional", "--discover", "else*", "--count", "1", "--on-success", "delete", "--ttl", "5s")
	if got := store.left(); !slices.Equal(got, want[:5]) {
		t.Errorf("objects %q, want %q", got, want[:5])
	}
}

func TestS3Refused(t *testing.T) {
	_, endpoint := newS3(t, nil)
	w := newWorld(t)
	for url, want := range map[string]string{
		"s3://orders":                                       "no region",
		"s3://id:secret@orders?region=r":                    "credentials do not belong",
		"s3:///in?region=r":                                 "the form is",
		"s3:secret":                                         "the form is",
		"s3://orders/in?region=r#secret":                    "the form is",
		"s3://orders:99/in?region=r":                        "the form is",
		"s3://orders/a//b?region=r":                         "empty part",
		"s3://orders?region=r&endpoint=secret":              "parameter endpoint",
		"s3://orders?region=r&endpoint=http://u:secret@h":   "parameter endpoint",
		"s3://orders?region=r&path_style=secret":            "parameter path_style",
		"s3://orders?region=r&subtree=secret":               "parameter subtree",
		"s3://orders?region=r&deletion=secret":              "parameter deletion: it must be one of checked, conditional, probed",
		"s3://orders?region=r&x=secret":                     "parameter x: it is not known; there are region",
		"s3://orders?region=r&interval=secret":              "parameter interval",
		"s3://logs--use1-az4--x-s3?region=r":                "directory bucket",
		"s3://orders?region=r&idle_interval=1s&interval=1m": "IdleInterval",
	} {
		r := w.want(2, "", want, "consume", "g", "--source", url, "--resource", "in", "--on-success", "delete")
		if strings.Contains(r.err, "secret") {
			t.Errorf("%s: the error shows the secret: %s", url, r.err)
		}
	}
	w.want(2, "", "is inside", "consume", "g", "--source", "s3://orders?region=r&subtree=true&endpoint="+endpoint, "--resource", "a", "--resource", "a/b", "--on-success", "delete")
}
