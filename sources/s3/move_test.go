package s3

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/internal/files"
	"github.com/rebalancer-go/rebalancer/internal/readertest"
	"github.com/rebalancer-go/rebalancer/sources"
	"github.com/rebalancer-go/rebalancer/sources/pickup"
)

// infoOf is what a listing says of a key of a stub.
func infoOf(st *stub, key string) files.Info {
	st.mu.Lock()
	defer st.mu.Unlock()
	o := st.objects[key]
	return *identity("bkt", key, o.etag(), "", int64(len(o.body)), o.modified)
}

// TestStoresWithoutConditions: such a store is refused with what to do, unless the user accepts a look before each deletion; then what was replaced
// stays all the same.
func TestStoresWithoutConditions(t *testing.T) {
	t.Parallel()
	st := newStub(t)
	st.loose = true
	cfg := quick(st.client())
	s := newSource(t, cfg)
	for i := range 3 { // also the second time, and where only what is absent is refused
		st.set(func() { st.strictOnAbsence = i == 2 })
		if _, err := s.Open(t.Context(), claim("in")); !errors.Is(err, errUnconditional) || !strings.Contains(err.Error(), "DeleteChecked") {
			t.Fatalf("Open: %v", err)
		}
	}
	if left := st.keys(); len(left) != 0 {
		t.Errorf("the probe left %q", left)
	}
	cfg.Deletion = DeleteChecked
	st.put("in/a", "1")
	r := open(t, newSource(t, cfg), "in")
	ms := readertest.Fetch(t, r, 1)
	st.put("in/a", "2")
	readertest.Settle(t, r, sources.Done, ms...)
	ms = readertest.Fetch(t, r, 1)
	if body, err := readertest.Read(context.Background(), ms[0]); body != "2" || err != nil {
		t.Errorf("got %q, %v", body, err)
	}
	readertest.Settle(t, r, sources.Done, ms...)
	if left := st.keys(); len(left) != 0 {
		t.Errorf("%q left", left)
	}
}

// TestProbe: what a store may answer, what is asked of it, and when nothing is asked.
func TestProbe(t *testing.T) {
	t.Parallel()
	st := newStub(t)
	s := newSource(t, quick(st.client()))
	for range 2 {
		open(t, s, "in")
	}
	if got := st.requests(); got["DELETE"] != 3 || got["PUT"] != 1 {
		t.Errorf("two resources were opened with %v, want one probe", got)
	}
	for code, want := range map[string]string{"AccessDenied": "grant s3:DeleteObject", "NotImplemented": "DeleteChecked", "InternalError": "set Config.Deletion"} {
		st.refuse = func(op, _ string) (int, string, string) {
			if op == "DELETE" {
				return map[string]int{"AccessDenied": 403}[code] + 500*b2i(code != "AccessDenied"), code, ""
			}
			return 0, "", ""
		}
		if _, err := newSource(t, quick(st.client())).Open(t.Context(), claim("in")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", code, err)
		}
	}
	st.refuse = func(op, _ string) (int, string, string) {
		return 403 * b2i(op != "LIST"), strings.Repeat("AccessDenied", b2i(op != "LIST")), ""
	}
	cfg := quick(st.client())
	cfg.Deletion = DeleteConditional
	open(t, newSource(t, cfg), "in") // the user says so
	st.refuse, st.loose = func(op, _ string) (int, string, string) {
		return 403 * b2i(op == "PUT"), strings.Repeat("AccessDenied", b2i(op == "PUT")), ""
	}, true
	if _, err := newSource(t, quick(st.client())).Open(t.Context(), claim("in")); err == nil || !strings.Contains(err.Error(), "grant s3:PutObject") {
		t.Errorf("a probe that may not write: %v", err)
	}
}

// TestProbeLeavesNothing: also when nobody waits for it any more.
func TestProbeLeavesNothing(t *testing.T) {
	t.Parallel()
	st := newStub(t)
	ctx, cancel := context.WithCancel(t.Context())
	puts := false
	st.refuse = func(op, _ string) (int, string, string) {
		if op == "DELETE" && puts { // of the object that is there
			cancel()
		}
		puts = puts || op == "PUT"
		return 0, "", ""
	}
	if _, err := newSource(t, quick(st.client())).Open(ctx, claim("in")); err != nil && !errors.Is(err, context.Canceled) { // nil: the answer was faster
		t.Errorf("Open: %v", err)
	}
	if left := st.keys(); !puts || len(left) != 0 {
		t.Errorf("the probe left %q", left)
	}
}

// TestNothingIsOverwritten: also where the target comes into being between the look and the copy.
func TestNothingIsOverwritten(t *testing.T) {
	t.Parallel()
	st := newStub(t)
	p := &place{source: newSource(t, quick(st.client())), resource: "in"}
	st.put("in/a", "new")
	st.put("in/done/a", "old")
	info := infoOf(st, "in/a")
	if err := p.Move(t.Context(), "a", info, "done", "a"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Move to a name that is taken: %v", err)
	}
	if err := p.Put(t.Context(), "done", "a", nil); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Put of a name that is taken: %v", err)
	}
	hidden := st.objects["in/done/a"]
	for op, move := range map[string]func() error{
		"COPY": func() error { return p.Move(t.Context(), "a", info, "done", "a") },
		"PUT":  func() error { return p.Put(t.Context(), "done", "a", nil) },
	} {
		delete(st.objects, "in/done/a")
		st.refuse = func(got, _ string) (int, string, string) {
			if got == op {
				st.objects["in/done/a"] = hidden
			}
			return 0, "", ""
		}
		if err := move(); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s of a name that is taken meanwhile: %v", op, err)
		}
	}
	if got := st.objects["in/done/a"].body + st.objects["in/a"].body; got != "oldnew" {
		t.Errorf("after all: %q", got)
	}
	if err := p.Move(t.Context(), "a", info, "/", "b"); err == nil || !strings.Contains(err.Error(), "come again") {
		t.Errorf("Move into the resource: %v", err)
	}
	if err := p.Put(t.Context(), "done", strings.Repeat("n", 1100), nil); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("Put under a key that is too long: %v", err)
	}
}

// TestMoveHalfWay: after an error the object is where it was, and no copy of it where it should go; when nobody knows, the copy stays.
func TestMoveHalfWay(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		refuse func(st *stub, op, key string) (int, string, string)
		is     error
		left   []string
	}{
		"changed before the copy": {func(st *stub, op, _ string) (int, string, string) {
			if op == "COPY" {
				st.objects["in/a"] = &stored{body: "changed"}
			}
			return 0, "", ""
		}, rebalancer.ErrChanged, []string{"in/a"}},
		"vanished before the copy": {func(st *stub, op, _ string) (int, string, string) {
			if op == "COPY" {
				delete(st.objects, "in/a")
			}
			return 0, "", ""
		}, fs.ErrNotExist, nil},
		"changed after the copy": {func(st *stub, op, key string) (int, string, string) {
			if op == "DELETE" && key == "in/a" {
				st.objects["in/a"] = &stored{body: "changed"}
			}
			return 0, "", ""
		}, rebalancer.ErrChanged, []string{"in/a"}},
		"vanished after the copy": {func(st *stub, op, key string) (int, string, string) {
			if op == "DELETE" && key == "in/a" {
				delete(st.objects, "in/a")
			}
			return 0, "", ""
		}, nil, []string{"in/done/a"}},
		"not deleted": {func(_ *stub, op, key string) (int, string, string) {
			return 500 * b2i(op == "DELETE" && key == "in/a"), strings.Repeat("InternalError", b2i(op == "DELETE" && key == "in/a")), ""
		}, errAny, []string{"in/a", "in/done/a"}}, // it may be carried out yet
		"not to be deleted": {func(_ *stub, op, key string) (int, string, string) {
			return 403 * b2i(op == "DELETE" && key == "in/a"), strings.Repeat("AccessDenied", b2i(op == "DELETE" && key == "in/a")), ""
		}, errAny, []string{"in/a"}},
		"deleted, but the second try finds that its condition fails": {func(st *stub, op, key string) (int, string, string) {
			if op == "DELETE" && key == "in/a" {
				delete(st.objects, "in/a")
				return 412, "PreconditionFailed", ""
			}
			return 0, "", ""
		}, nil, []string{"in/done/a"}},
		"deleted, but the answer was lost": {func(st *stub, op, key string) (int, string, string) {
			if op == "DELETE" && key == "in/a" {
				delete(st.objects, "in/a")
				return 500, "InternalError", ""
			}
			return 0, "", ""
		}, nil, []string{"in/done/a"}},
		"nobody knows": {func(_ *stub, op, key string) (int, string, string) {
			return 500 * b2i(op != "COPY" && key == "in/a"), strings.Repeat("InternalError", b2i(op != "COPY" && key == "in/a")), ""
		}, errAny, []string{"in/a", "in/done/a"}},
		"no bucket to go to": {func(_ *stub, op, _ string) (int, string, string) {
			return 404 * b2i(op == "COPY"), strings.Repeat("NoSuchBucket", b2i(op == "COPY")), ""
		}, errAny, []string{"in/a"}},
		"no right there": {func(_ *stub, op, key string) (int, string, string) {
			return 403 * b2i(key == "in/done/a"), strings.Repeat("AccessDenied", b2i(key == "in/done/a")), ""
		}, errAny, []string{"in/a"}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			st := newStub(t)
			p := &place{source: newSource(t, quick(st.client())), resource: "in"}
			st.put("in/a", "body")
			info := infoOf(st, "in/a")
			st.refuse = func(op, key string) (int, string, string) { return c.refuse(st, op, key) }
			err := p.Move(t.Context(), "a", info, "done", "a")
			if c.is == nil != (err == nil) || c.is != nil && c.is != errAny && !errors.Is(err, c.is) {
				t.Errorf("Move: %v", err)
			}
			if c.is == errAny && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, rebalancer.ErrChanged) || errors.Is(err, sources.ErrGone)) {
				t.Errorf("an error about where it goes, or about nothing certain, says that the object is gone: %v", err)
			}
			if got := st.keys(); !slices.Equal(got, c.left) {
				t.Errorf("left %q, want %q", got, c.left)
			}
		})
	}
}

// errAny says that some error is wanted.
var errAny = errors.New("any")

// TestStoreWithoutConditionalCopies: one that says that it has none is asked without, after a look.
func TestStoreWithoutConditionalCopies(t *testing.T) {
	t.Parallel()
	st := newStub(t)
	c := &unconditionalCopies{Client: st.client()}
	p := &place{source: newSource(t, quick(c)), resource: "in"}
	st.put("in/a", "body")
	if err := p.Move(t.Context(), "a", infoOf(st, "in/a"), "done", "a"); err != nil {
		t.Fatal(err)
	}
	if got := st.keys(); !slices.Equal(got, []string{"in/done/a"}) {
		t.Errorf("left %q", got)
	}
}

// unconditionalCopies is a client of a store that does not know If-None-Match of copies.
type unconditionalCopies struct{ Client }

func (c *unconditionalCopies) CopyObject(ctx context.Context, in *s3.CopyObjectInput, o ...func(*s3.Options)) (*s3.CopyObjectOutput, error) {
	if in.IfNoneMatch != nil {
		return nil, &apiError{"NotImplemented"}
	}
	return c.Client.CopyObject(ctx, in, o...)
}

// TestWritersInTheWay: a deletion that meets a write is tried again.
func TestWritersInTheWay(t *testing.T) {
	t.Parallel()
	st := newStub(t)
	n := 0
	st.put("in/a", "body")
	p := &place{source: newSource(t, quick(st.client())), resource: "in"}
	info := infoOf(st, "in/a")
	st.refuse = func(op, _ string) (int, string, string) {
		if n++; op == "DELETE" && n < 3 {
			return http.StatusConflict, "ConditionalRequestConflict", ""
		}
		return 0, "", ""
	}
	if err := p.Remove(t.Context(), "a", info); err != nil || n != 3 {
		t.Errorf("%d requests, %v", n, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	st.refuse = func(string, string) (int, string, string) {
		return http.StatusConflict, "ConditionalRequestConflict", ""
	}
	if err := p.Remove(ctx, "a", info); err == nil {
		t.Error("a deletion that never got through is no error")
	}
}

func TestFolders(t *testing.T) {
	t.Parallel()
	for folder, want := range map[string]string{
		"done": "bkt in/eu/done/", "/archive": "bkt archive/eu/", "/archive/x/": "bkt archive/x/eu/", "s3://other": "other eu/", "s3://other/a/b/": "other a/b/eu/", "s3://bkt/a": "bkt a/eu/",
		"": "must have a name", "/": "must have a name", "..": `".."`, "a//b": "empty part", "/in": "come again", "s3://": "bucket", "s3://x--x-s3/a": "directory bucket", "s3://bkt": "must have a name", "a/../..": `".."`,
	} {
		cfg := quick(newStub(t).client())
		cfg.Base, cfg.OnFailure = "in", pickup.MoveTo(folder)
		s, err := New(cfg)
		if err != nil {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %q", folder, err, want)
			}
			continue
		}
		if bucket, prefix := s.target("eu", string(s.options.Failed)); bucket+" "+prefix != want {
			t.Errorf("%q goes to %s %s, want %s", folder, bucket, prefix, want)
		}
	}
}

// TestACopyWhoseAnswerWasLost is taken for what it is when the move is tried again; one with the same content from before the object is another one.
func TestACopyWhoseAnswerWasLost(t *testing.T) {
	t.Parallel()
	st := newStub(t)
	p := &place{source: newSource(t, quick(st.client())), resource: "in"}
	st.put("in/a", "body")
	info := infoOf(st, "in/a")
	st.refuse = func(op, _ string) (int, string, string) {
		if op == "COPY" {
			st.objects["in/done/a"] = &stored{body: "body", modified: time.Now().Add(time.Second)}
			return 500, "InternalError", ""
		}
		return 0, "", ""
	}
	if err := p.Move(t.Context(), "a", info, "done", "a"); err == nil {
		t.Error("nobody was told")
	}
	st.refuse = nil
	if err := p.Move(t.Context(), "a", info, "done", "a"); err != nil {
		t.Error(err)
	}
	if left := fmt.Sprint(slices.Sorted(maps.Keys(st.objects))); left != "[in/done/a]" {
		t.Errorf("left are %s", left)
	}
	st.put("in/a", "body")
	info = infoOf(st, "in/a")
	st.objects["in/done/a"].modified = info.ModTime.Add(-time.Second)
	if err := p.Move(t.Context(), "a", info, "done", "a"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Move to where an earlier object of the same content is: %v", err)
	}
}

// pointed is a store behind an access point: it notes what copies are made of, and has an object under each key but those that are moved to.
type pointed struct {
	Client
	from []string
}

func (c *pointed) HeadObject(context.Context, *s3.HeadObjectInput, ...func(*s3.Options)) (*s3.HeadObjectOutput, error) {
	return nil, &types.NotFound{}
}

func (c *pointed) CopyObject(_ context.Context, in *s3.CopyObjectInput, _ ...func(*s3.Options)) (*s3.CopyObjectOutput, error) {
	c.from = append(c.from, *in.CopySource)
	return &s3.CopyObjectOutput{CopyObjectResult: &types.CopyObjectResult{ETag: aws.String("e")}}, nil
}

func (c *pointed) DeleteObject(context.Context, *s3.DeleteObjectInput, ...func(*s3.Options)) (*s3.DeleteObjectOutput, error) {
	return &s3.DeleteObjectOutput{}, nil
}

// TestMoveThroughAnAccessPoint: what is copied is named by the ARN that the object has through the access point.
func TestMoveThroughAnAccessPoint(t *testing.T) {
	t.Parallel()
	for bucket, want := range map[string]string{
		"bkt": "bkt/in/a%20%2B%C3%A9%3F",
		"arn:aws:s3:eu-west-1:123456789012:accesspoint/mine": "arn%3Aaws%3As3%3Aeu-west-1%3A123456789012%3Aaccesspoint/mine/object/in/a%20%2B%C3%A9%3F",
	} {
		c := &pointed{}
		cfg := quick(nil)
		cfg.Client, cfg.Bucket, cfg.OnSuccess = c, bucket, pickup.MoveTo("done")
		p := &place{source: newSource(t, cfg), resource: "in"}
		info := files.Info{Size: 1, Tag: "e", ModTime: time.Unix(1, 0)}
		if err := p.Move(t.Context(), "a +é?", info, "done", "a"); err != nil || len(c.from) != 1 || c.from[0] != want {
			t.Errorf("%s: copied from %q, %v; want %q", bucket, c.from, err, want)
		}
	}
}
