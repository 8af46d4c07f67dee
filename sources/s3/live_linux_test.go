package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/internal/readertest"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
	"github.com/rebalancer-go/rebalancer/sources"
	"github.com/rebalancer-go/rebalancer/sources/pickup"
)

// version makes a bucket keep versions.
func version(tb testing.TB, c *s3.Client, bucket string) {
	tb.Helper()
	_, err := c.PutBucketVersioning(tb.Context(), &s3.PutBucketVersioningInput{Bucket: &bucket, VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled}})
	if err != nil {
		tb.Fatal(err)
	}
}

// large is a body that cannot be mistaken for a part of itself.
func large(n int) string {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(b)
	return string(b)
}

// healing works a resource until n objects with different keys are settled, whatever fails meanwhile.
func healing(tb testing.TB, r sources.Reader, n int, each func(i int)) map[string]string {
	tb.Helper()
	bodies := map[string]string{}
	end := time.Now().Add(2 * patience)
	for i := 0; len(bodies) < n; i++ {
		if time.Now().After(end) {
			tb.Fatalf("%d of %d objects came", len(bodies), n)
		}
		ctx, cancel := context.WithTimeout(tb.Context(), 10*time.Second)
		ms, _ := r.Fetch(ctx, 5) // an error heals, or the time ends
		if each != nil {
			each(i)
		}
		for _, m := range ms {
			body, err := readWith(ctx, m)
			if err != nil || r.Settle(ctx, []sources.Settlement{{Message: m}}) != nil {
				_ = r.Settle(ctx, []sources.Settlement{{Message: m, Outcome: sources.Retry}})
				continue
			}
			bodies[m.Key] = body
		}
		cancel()
	}
	return bodies
}

func readWith(ctx context.Context, m *rebalancer.Message) (string, error) {
	rc, err := m.Open(ctx)
	if err != nil {
		return "", err
	}
	defer rc.Close()
	b, err := io.ReadAll(rc)
	return string(b), err
}

// TestKilledServer: it is killed again and again while objects are listed, read and deleted; each is worked, with its whole body.
func TestKilledServer(t *testing.T) {
	t.Parallel()
	server := testserver.StartVersityGW(t)
	c := gateway(t, server)
	cfg := quick(c)
	cfg.Bucket = bucket(t, c)
	want := map[string]string{}
	for i := range 30 {
		key := fmt.Sprintf("%02d", i)
		want[key] = large(10_000 + i)
		put(t, c, cfg.Bucket, "in/"+key, want[key])
	}
	r := open(t, newSource(t, cfg), "in")
	var restarts sync.WaitGroup
	got := healing(t, r, len(want), func(i int) {
		if i == 1 || i == 4 {
			restarts.Wait()
			server.Kill()
			restarts.Add(1)
			time.AfterFunc(300*time.Millisecond, func() { defer restarts.Done(); server.Restart() })
		}
	})
	restarts.Wait()
	for key, body := range want {
		if got[key] != body {
			t.Errorf("%s has %d bytes that are not its own", key, len(got[key]))
		}
	}
	if left := all(t, c, cfg.Bucket, "in/"); len(left) != 0 {
		t.Errorf("left %q", left)
	}
}

// TestCutInTheMiddleOfABody: the connection is cut while a large object is read, and the body is whole.
func TestCutInTheMiddleOfABody(t *testing.T) {
	t.Parallel()
	server := testserver.StartVersityGW(t)
	link := testserver.Proxy(t, server.Addr())
	direct := gateway(t, server)
	cfg := quick(dial(t, "http://"+link.Addr(), server.Access, server.Secret))
	cfg.Bucket = bucket(t, direct)
	want := large(20 << 20)
	put(t, direct, cfg.Bucket, "in/a", want)
	ms := readertest.Fetch(t, open(t, newSource(t, cfg), "in"), 1)
	rc, err := ms[0].Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer rc.Close()
	var got strings.Builder
	for i := range 4 {
		if _, err := io.CopyN(&got, rc, 4<<20); err != nil {
			t.Fatalf("after %d bytes: %v", got.Len(), err)
		}
		if i%2 == 0 {
			link.Cut()
			link.Heal()
		}
	}
	if _, err := io.Copy(&got, rc); err != nil || got.String() != want {
		t.Errorf("%d of %d bytes, %v", got.Len(), len(want), err)
	}
}

// TestFrozenServer: a read ends although nobody answers, and goes on when somebody does.
func TestFrozenServer(t *testing.T) {
	t.Parallel()
	server := testserver.StartVersityGW(t)
	c := gateway(t, server)
	cfg := quick(c)
	cfg.Bucket = bucket(t, c)
	want := large(40 << 20)
	put(t, c, cfg.Bucket, "in/a", want)
	s := newSource(t, cfg)
	s.readIdle = 200 * time.Millisecond
	r := open(t, s, "in")
	ms := readertest.Fetch(t, r, 1)
	rc, err := ms[0].Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer rc.Close()
	server.Freeze()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := r.Fetch(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Fetch from a frozen server: %v", err)
	}
	thawed := make(chan struct{})
	time.AfterFunc(time.Second, func() { defer close(thawed); server.Thaw() })
	got, err := io.ReadAll(rc)
	if err != nil || string(got) != want {
		t.Errorf("%d of %d bytes, %v", len(got), len(want), err)
	}
	<-thawed
	readertest.Settle(t, r, sources.Done, ms...)
}

// TestReplacedWhileWorked: with and without versions what was written meanwhile stays and comes as what it is.
func TestReplacedWhileWorked(t *testing.T) {
	t.Parallel()
	server := testserver.StartVersityGW(t)
	c := gateway(t, server)
	for _, versions := range []bool{false, true} {
		for _, action := range []pickup.Action{pickup.Delete(), pickup.MoveTo("done")} {
			cfg := quick(c)
			cfg.Bucket, cfg.OnSuccess = bucket(t, c), action
			if versions {
				version(t, c, cfg.Bucket)
			}
			r := open(t, newSource(t, cfg), "in")
			put(t, c, cfg.Bucket, "in/a", "old")
			ms := readertest.Fetch(t, r, 1)
			put(t, c, cfg.Bucket, "in/a", "new")
			if body, err := readertest.Read(context.Background(), ms[0]); !errors.Is(err, rebalancer.ErrChanged) {
				t.Errorf("versions %v, %v: read %q, %v", versions, action, body, err)
			}
			readertest.Settle(t, r, sources.Done, ms...)
			ms = readertest.Fetch(t, r, 1)
			if body, err := readertest.Read(context.Background(), ms[0]); body != "new" || err != nil {
				t.Errorf("versions %v, %v: read %q, %v", versions, action, body, err)
			}
			readertest.Settle(t, r, sources.Done, ms...)
			readertest.Nothing(t, r)
			if left := all(t, c, cfg.Bucket, ""); len(left) > 0 && action == pickup.Delete() || action != pickup.Delete() && !slices.Equal(left, []string{"in/done/a"}) {
				t.Errorf("versions %v, %v: left %q", versions, action, left)
			}
		}
	}
}

// TestCopyInParts: what is too large for one request goes in parts, with what describes it, and not when it was replaced.
func TestCopyInParts(t *testing.T) {
	t.Parallel()
	server := testserver.StartVersityGW(t)
	c := gateway(t, server)
	cfg := quick(c)
	cfg.Bucket = bucket(t, c)
	s := newSource(t, cfg)
	s.copyLimit, s.partSize = 6<<20, 5<<20
	body := large(13<<20 + 7)
	upload := func(body string) {
		_, err := c.PutObject(t.Context(), &s3.PutObjectInput{
			Bucket: &cfg.Bucket, Key: aws.String("in/a"), Body: strings.NewReader(body), ContentType: aws.String("text/csv"),
			Metadata: map[string]string{"sender": "me"}, Tagging: aws.String("of=them&a=b"),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	upload(body)
	p := &place{source: s, resource: "in"}
	info, err := p.Stat(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Move(t.Context(), "a", info, "done", "a"); err != nil {
		t.Fatal(err)
	}
	head, err := s.head(t.Context(), cfg.Bucket, "in/done/a")
	if err != nil || aws.ToString(head.ContentType) != "text/csv" || head.Metadata["sender"] != "me" {
		t.Errorf("the copy is described by %+v, %v", head, err)
	}
	if tags := tagsOf(t, c, cfg.Bucket, "in/done/a"); tags != "a=b&of=them" {
		t.Errorf("the copy has the tags %q", tags)
	}
	if got := get(t, c, cfg.Bucket, "in/done/a"); got != body {
		t.Errorf("the copy has %d bytes", len(got))
	}
	upload(body)
	upload(large(14 << 20))
	if err := p.Move(t.Context(), "a", info, "done", "b"); !errors.Is(err, rebalancer.ErrChanged) {
		t.Errorf("Move of what was replaced: %v", err)
	}
	now, err := p.Stat(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.copyParts(t.Context(), "a", now, spot{cfg.Bucket, "in/done/a"}); err == nil {
		t.Error("a copy in parts overwrote another object")
	}
	if left := all(t, c, cfg.Bucket, ""); !slices.Equal(left, []string{"in/a", "in/done/a"}) {
		t.Errorf("left %q", left)
	}
	open, err := c.ListMultipartUploads(t.Context(), &s3.ListMultipartUploadsInput{Bucket: &cfg.Bucket})
	if err != nil || len(open.Uploads) != 0 {
		t.Errorf("%d uploads are left open, %v", len(open.Uploads), err)
	}
}

func tagsOf(tb testing.TB, c *s3.Client, bucket, key string) string {
	tb.Helper()
	out, err := c.GetObjectTagging(tb.Context(), &s3.GetObjectTaggingInput{Bucket: &bucket, Key: &key})
	if err != nil {
		tb.Fatal(err)
	}
	return encodeTags(out.TagSet)
}

// TestTag: beside other tags, on the object that was worked and no other.
func TestTag(t *testing.T) {
	t.Parallel()
	server := testserver.StartVersityGW(t)
	c := gateway(t, server)
	for _, versions := range []bool{false, true} {
		cfg := quick(c)
		cfg.Bucket = bucket(t, c)
		if versions {
			version(t, c, cfg.Bucket)
		}
		p := &place{source: newSource(t, cfg), resource: "in"}
		_, err := c.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &cfg.Bucket, Key: aws.String("in/a"), Body: strings.NewReader("old"), Tagging: aws.String("of=them")})
		if err != nil {
			t.Fatal(err)
		}
		info, err := p.Stat(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		for _, value := range []string{"x", "done"} {
			if err := p.Tag(t.Context(), "a", info, "state", value); err != nil {
				t.Fatal(err)
			}
		}
		if tags := tagsOf(t, c, cfg.Bucket, "in/a"); tags != "of=them&state=done" {
			t.Errorf("versions %v: tags %q", versions, tags)
		}
		put(t, c, cfg.Bucket, "in/a", "new")
		if err := p.Tag(t.Context(), "a", info, "state", "done"); !errors.Is(err, rebalancer.ErrChanged) {
			t.Errorf("versions %v: Tag of what was replaced: %v", versions, err)
		}
		if tags := tagsOf(t, c, cfg.Bucket, "in/a"); tags != "" {
			t.Errorf("versions %v: the new object has the tags %q", versions, tags)
		}
	}
}

// TestReplacedWhileTagged: between the look and the tag.
func TestReplacedWhileTagged(t *testing.T) {
	t.Parallel()
	server := testserver.StartVersityGW(t)
	c := gateway(t, server)
	cfg := quick(&replacing{Client: c, replace: func(bucket string) { put(t, c, bucket, "in/a", "new") }})
	cfg.Bucket = bucket(t, c)
	p := &place{source: newSource(t, cfg), resource: "in"}
	put(t, c, cfg.Bucket, "in/a", "old")
	info, err := p.Stat(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Tag(t.Context(), "a", info, "state", "done"); !errors.Is(err, rebalancer.ErrChanged) {
		t.Errorf("Tag: %v", err)
	}
	if tags := tagsOf(t, c, cfg.Bucket, "in/a"); tags != "" {
		t.Errorf("the new object has the tags %q", tags)
	}
}

// replacing replaces an object before its first tag.
type replacing struct {
	Client
	once    sync.Once
	replace func(bucket string)
}

func (r *replacing) PutObjectTagging(ctx context.Context, in *s3.PutObjectTaggingInput, o ...func(*s3.Options)) (*s3.PutObjectTaggingOutput, error) {
	r.once.Do(func() { r.replace(*in.Bucket) })
	return r.Client.PutObjectTagging(ctx, in, o...)
}

// TestTroubleOfTheBucket: what is missing, and who may not.
func TestTroubleOfTheBucket(t *testing.T) {
	t.Parallel()
	server := testserver.StartVersityGW(t)
	c := gateway(t, server)
	name := bucket(t, c)
	cfg := quick(c)
	cfg.Bucket = name
	r := open(t, newSource(t, cfg), "in")
	missing := cfg
	missing.Bucket = "missing"
	if _, err := newSource(t, missing).Open(t.Context(), claim("in")); !errors.Is(err, sources.ErrGone) || !strings.Contains(err.Error(), `"missing"`) {
		t.Errorf("a missing bucket: %v", err)
	}
	for user, secret := range map[string]string{"nobody": "hush", server.Access: "hush"} {
		cfg.Client = dial(t, server.Endpoint(), user, secret)
		if _, err := newSource(t, cfg).Open(t.Context(), claim("in")); err == nil || errors.Is(err, sources.ErrGone) || !strings.Contains(err.Error(), "credentials") || strings.Contains(err.Error(), "hush") {
			t.Errorf("wrong credentials: %v", err)
		}
	}
	if _, err := c.DeleteBucket(t.Context(), &s3.DeleteBucketInput{Bucket: &name}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := r.Fetch(ctx, 1); !errors.Is(err, sources.ErrGone) {
		t.Errorf("Fetch from a bucket that was deleted: %v", err)
	}
	makeBucket(t, c, name)
	put(t, c, name, "in/a", "x")
	readertest.Settle(t, r, sources.Done, readertest.Fetch(t, r, 1)...)
}

// TestEmptyAndOddBodies: nothing, one byte, and a part more than buffers have.
func TestEmptyAndOddBodies(t *testing.T) {
	t.Parallel()
	server := testserver.StartVersityGW(t)
	c := gateway(t, server)
	cfg := quick(c)
	cfg.Bucket = bucket(t, c)
	r := open(t, newSource(t, cfg), "in")
	for _, n := range []int{0, 1, 32<<10 + 1} {
		put(t, c, cfg.Bucket, "in/a", large(n))
		ms := readertest.Fetch(t, r, 1)
		if body, err := readertest.Read(context.Background(), ms[0]); body != large(n) || err != nil || ms[0].Size != int64(n) {
			t.Errorf("%d bytes of %d, %v", len(body), n, err)
		}
		if o, ok := ms[0].Native.(*Object); !ok || o.Key != "in/a" || o.Bucket != cfg.Bucket || o.ETag == "" {
			t.Errorf("Native is %+v", ms[0].Native)
		}
		readertest.Settle(t, r, sources.Done, ms...)
	}
}
