//go:build linux

package objects

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/backends/memory"
	"github.com/rebalancer-go/rebalancer/group"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
	"github.com/rebalancer-go/rebalancer/sources/pickup"
	"github.com/rebalancer-go/rebalancer/sources/s3"
)

var (
	small = flag.Int("small", 10_000, "objects of 4 KiB in a round")
	large = flag.Int64("large", 10, "size of the large object in GiB")
)

const bucket = "bench"

func dial(b *testing.B) *awss3.Client {
	b.Helper()
	server := testserver.StartVersityGW(b)
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 100
	b.Cleanup(transport.CloseIdleConnections)
	endpoint := server.Endpoint()
	c := awss3.New(awss3.Options{
		Region: "us-east-1", BaseEndpoint: &endpoint, UsePathStyle: true, HTTPClient: &http.Client{Transport: transport},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: server.Access, SecretAccessKey: server.Secret}, nil
		}),
	})
	if _, err := c.CreateBucket(b.Context(), &awss3.CreateBucketInput{Bucket: aws.String(bucket)}); err != nil {
		b.Fatal(err)
	}
	return c
}

// BenchmarkSmallObjects lists, reads and deletes objects of 4 KiB, ours and by hand in turns, with the same parallelism. Both delete only what is
// unchanged. An iteration is a round of each.
func BenchmarkSmallObjects(b *testing.B) {
	for _, parallel := range []int{1, 8} {
		b.Run(fmt.Sprint(parallel), func(b *testing.B) {
			c := dial(b)
			loops := map[string]func(*awss3.Client, int) (int, error){"by hand": byHand, "ours": ours}
			order := []string{"by hand", "ours"}
			var ratios []float64
			for b.Loop() {
				took := map[string]time.Duration{}
				for _, name := range order {
					fill(b, c)
					start := time.Now()
					n, err := loops[name](c, parallel)
					took[name] = time.Since(start)
					if err != nil || n != *small {
						b.Fatalf("%s: %d of %d objects, %v", name, n, *small, err)
					}
				}
				slices.Reverse(order)
				ratios = append(ratios, took["by hand"].Seconds()/took["ours"].Seconds())
			}
			slices.Sort(ratios)
			b.ReportMetric(ratios[len(ratios)/2], "×by-hand")
		})
	}
}

func fill(b *testing.B, c *awss3.Client) {
	b.Helper()
	body := make([]byte, 4<<10)
	var next atomic.Int64
	var workers sync.WaitGroup
	for range 16 {
		workers.Go(func() {
			for i := next.Add(1); i <= int64(*small); i = next.Add(1) {
				_, err := c.PutObject(b.Context(), &awss3.PutObjectInput{Bucket: aws.String(bucket), Key: aws.String(fmt.Sprintf("in/%06d", i)), Body: bytes.NewReader(body)})
				if err != nil {
					b.Error(err)
				}
			}
		})
	}
	workers.Wait()
	runtime.GC()
}

// byHand is the loop of somebody who knows S3.
func byHand(c *awss3.Client, parallel int) (int, error) {
	ctx := context.Background()
	objects := make(chan types.Object)
	var done atomic.Int64
	var failed atomic.Pointer[error]
	var workers sync.WaitGroup
	for range parallel {
		workers.Go(func() {
			buf := make([]byte, 32<<10)
			for o := range objects {
				out, err := c.GetObject(ctx, &awss3.GetObjectInput{Bucket: aws.String(bucket), Key: o.Key, IfMatch: o.ETag})
				if err == nil {
					_, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, out.Body, buf)
					err = errors.Join(err, out.Body.Close())
				}
				if err == nil {
					_, err = c.DeleteObject(ctx, &awss3.DeleteObjectInput{Bucket: aws.String(bucket), Key: o.Key, IfMatch: o.ETag})
				}
				if err != nil {
					failed.Store(&err)
					continue
				}
				done.Add(1)
			}
		})
	}
	pages := awss3.NewListObjectsV2Paginator(c, &awss3.ListObjectsV2Input{Bucket: aws.String(bucket), Prefix: aws.String("in/"), Delimiter: aws.String("/")})
	var err error
	for pages.HasMorePages() && err == nil {
		var page *awss3.ListObjectsV2Output
		if page, err = pages.NextPage(ctx); err == nil {
			for _, o := range page.Contents {
				objects <- o
			}
		}
	}
	close(objects)
	workers.Wait()
	if e := failed.Load(); e != nil {
		err = errors.Join(err, *e)
	}
	return int(done.Load()), err
}

func ours(c *awss3.Client, parallel int) (int, error) {
	var n atomic.Int64
	deleted := make(chan struct{})
	var gone atomic.Int64
	source, err := s3.New(s3.Config{Client: &watched{c, func() {
		if gone.Add(1) == int64(*small) {
			close(deleted)
		}
	}}, Bucket: bucket, Deletion: s3.DeleteConditional, Policy: pickup.Policy{OnSuccess: pickup.Delete()}})
	if err != nil {
		return 0, err
	}
	defer source.Close()
	g, err := group.New(group.Config{
		Name: "bench", Store: memory.New(), Source: source, Resources: group.Static("in"), Concurrency: parallel, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	bufs := sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}
	go func() {
		ended <- g.Consume(ctx, func(ctx context.Context, m *rebalancer.Message) error {
			rc, err := m.Open(ctx)
			if err != nil {
				return err
			}
			defer rc.Close()
			buf := bufs.Get().(*[]byte)
			defer bufs.Put(buf)
			_, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, rc, *buf)
			n.Add(1)
			return err
		})
	}()
	select {
	case <-deleted:
		cancel()
		return int(n.Load()), <-ended
	case err := <-ended:
		cancel()
		return int(n.Load()), err
	}
}

// watched tells of each deletion.
type watched struct {
	*awss3.Client
	deleted func()
}

func (w *watched) DeleteObject(ctx context.Context, in *awss3.DeleteObjectInput, o ...func(*awss3.Options)) (*awss3.DeleteObjectOutput, error) {
	out, err := w.Client.DeleteObject(ctx, in, o...)
	if err == nil {
		w.deleted()
	}
	return out, err
}

// BenchmarkLargeObject reads one object, ours and by hand in turns, and reports the most memory that ours held above what was held before. An iteration is a
// round of each.
func BenchmarkLargeObject(b *testing.B) {
	c := dial(b)
	upload(b, c, *large<<30)
	source, err := s3.New(s3.Config{Client: c, Bucket: bucket, Deletion: s3.DeleteConditional, Policy: pickup.Policy{OnSuccess: pickup.Delete()}})
	if err != nil {
		b.Fatal(err)
	}
	defer source.Close()
	r, err := source.Open(b.Context(), &rebalancer.Claim{Group: "g", Resource: "in", Fence: 1})
	if err != nil {
		b.Fatal(err)
	}
	ms, err := r.Fetch(b.Context(), 1)
	if err != nil {
		b.Fatal(err)
	}
	reads := map[string]func() (io.ReadCloser, error){
		"by hand": func() (io.ReadCloser, error) {
			out, err := c.GetObject(b.Context(), &awss3.GetObjectInput{Bucket: aws.String(bucket), Key: aws.String("in/large")})
			if err != nil {
				return nil, err
			}
			return out.Body, nil
		},
		"ours": func() (io.ReadCloser, error) { return ms[0].Open(b.Context()) },
	}
	order := []string{"by hand", "ours"}
	var ratios []float64
	var most uint64
	for b.Loop() {
		took := map[string]time.Duration{}
		for _, name := range order {
			before := held()
			start := time.Now()
			rc, err := reads[name]()
			if err != nil {
				b.Fatal(err)
			}
			n, peak, err := drain(rc)
			took[name] = time.Since(start)
			if err = errors.Join(err, rc.Close()); err != nil || n != *large<<30 {
				b.Fatalf("%s: %d bytes, %v", name, n, err)
			}
			if name == "ours" && peak > before {
				most = max(most, peak-before)
			}
		}
		slices.Reverse(order)
		ratios = append(ratios, took["by hand"].Seconds()/took["ours"].Seconds())
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "×by-hand")
	b.ReportMetric(float64(most)/(1<<20), "MiB")
}

// drain reads to the end and looks at the memory now and then.
func drain(r io.Reader) (n int64, peak uint64, err error) {
	buf := make([]byte, 256<<10)
	for look := int64(0); ; {
		k, err := r.Read(buf)
		n += int64(k)
		if n >= look {
			look += 256 << 20
			peak = max(peak, held())
		}
		if err == io.EOF {
			return n, peak, nil
		}
		if err != nil {
			return n, peak, err
		}
	}
}

// held is what the process has from the system.
func held() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

// upload makes an object of equal parts.
func upload(b *testing.B, c *awss3.Client, size int64) {
	b.Helper()
	const part = 256 << 20
	key := aws.String("in/large")
	up, err := c.CreateMultipartUpload(b.Context(), &awss3.CreateMultipartUploadInput{Bucket: aws.String(bucket), Key: key})
	if err != nil {
		b.Fatal(err)
	}
	body := make([]byte, part)
	var parts []types.CompletedPart
	for i := int32(1); int64(i-1)*part < size; i++ {
		out, err := c.UploadPart(b.Context(), &awss3.UploadPartInput{Bucket: aws.String(bucket), Key: key, UploadId: up.UploadId, PartNumber: aws.Int32(i), Body: bytes.NewReader(body)})
		if err != nil {
			b.Fatal(err)
		}
		parts = append(parts, types.CompletedPart{ETag: out.ETag, PartNumber: aws.Int32(i), ChecksumCRC32: out.ChecksumCRC32})
	}
	_, err = c.CompleteMultipartUpload(b.Context(), &awss3.CompleteMultipartUploadInput{Bucket: aws.String(bucket), Key: key, UploadId: up.UploadId, MultipartUpload: &types.CompletedMultipartUpload{Parts: parts}})
	if err != nil {
		b.Fatal(err)
	}
}
