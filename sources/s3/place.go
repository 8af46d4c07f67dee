package s3

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/internal/files"
)

// place is a resource as a files.Place. It keeps nothing but its name: what is where, the store knows.
type place struct {
	source   *Source
	resource string
}

var (
	_ files.Place  = (*place)(nil)
	_ files.Tagger = (*place)(nil)
)

func (p *place) key(name string) string { return p.source.prefix(p.resource) + name }

// List passes the objects of the resource, page by page.
func (p *place) List(ctx context.Context, each func(page []files.Entry) error) error {
	return p.source.walk(ctx, p.source.prefix(p.resource), p.source.delimiter(), 0, func(got page) error {
		return each(p.source.entries(p.resource, got))
	})
}

// delimiter keeps what is deeper out of a listing.
func (s *Source) delimiter() string {
	if s.Subtree {
		return ""
	}
	return "/"
}

// Stat observes an object. One that cannot be read as it is, is an error.
func (p *place) Stat(ctx context.Context, name string) (files.Info, error) {
	out, err := p.source.head(ctx, p.source.Bucket, p.key(name))
	if err != nil {
		return files.Info{}, err
	}
	restored := strings.Contains(aws.ToString(out.Restore), `ongoing-request="false"`)
	if !restored && (archived(string(out.StorageClass)) || out.ArchiveStatus != "") {
		return files.Info{}, fmt.Errorf("object %q in bucket %q %w (%s%s): restore it, or move it away", p.key(name), p.source.Bucket, errArchived,
			out.StorageClass, out.ArchiveStatus)
	}
	return *headed(p.source.Bucket, p.key(name), out), nil
}

// errArchived is why an object cannot be read before it is restored.
var errArchived = errors.New("is archived")

func headed(bucket, key string, out *s3.HeadObjectOutput) *files.Info {
	return identity(bucket, key, aws.ToString(out.ETag), string(out.StorageClass), aws.ToInt64(out.ContentLength), aws.ToTime(out.LastModified))
}

func (s *Source) head(ctx context.Context, bucket, key string) (*s3.HeadObjectOutput, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	out, err := s.Client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &bucket, Key: &key})
	return out, call{right: "s3:GetObject", bucket: bucket, key: key}.fail(err)
}

// is checks that an object is still the one that is wanted, by all that identifies it.
func (p *place) is(ctx context.Context, name string, want files.Info) (*s3.HeadObjectOutput, error) {
	out, err := p.source.head(ctx, p.source.Bucket, p.key(name))
	if err != nil {
		return nil, err
	}
	if got := headed(p.source.Bucket, p.key(name), out); got.Tag != want.Tag || got.Size != want.Size {
		return nil, fmt.Errorf("object %q in bucket %q: %w", p.key(name), p.source.Bucket, rebalancer.ErrChanged)
	}
	return out, nil
}

// quoted is an ETag as a condition.
func quoted(info files.Info) *string { return aws.String(`"` + info.Tag + `"`) }

// Remove deletes an object if it still is the one that is wanted.
func (p *place) Remove(ctx context.Context, name string, want files.Info) error {
	if p.source.Deletion == DeleteChecked {
		if _, err := p.is(ctx, name, want); err != nil {
			return err
		}
		return p.source.remove(ctx, p.source.Bucket, p.key(name), nil)
	}
	return p.source.remove(ctx, p.source.Bucket, p.key(name), quoted(want))
}

// remove deletes an object, under a condition if there is one.
func (s *Source) remove(ctx context.Context, bucket, key string, condition *string) error {
	what := call{right: "s3:DeleteObject and s3:GetObject", bucket: bucket, key: key, condition: true}
	for try := 0; ; try++ {
		once, cancel := context.WithTimeout(ctx, callTimeout)
		_, err := s.Client.DeleteObject(once, &s3.DeleteObjectInput{Bucket: &bucket, Key: &key, IfMatch: condition})
		cancel()
		if err == nil {
			return nil
		}
		// Somebody writes the object at this moment: whether the condition holds is known after that.
		if !hasCode(err, "ConditionalRequestConflict", "OperationAborted") || try >= resumes || !pause(ctx, try) {
			return what.fail(err)
		}
	}
}

// Close lets the source forget its Reader.
func (p *place) Close() error {
	p.source.readers.Forget(p)
	return nil
}

// absent tells whether there is no object under a key.
func (s *Source) absent(ctx context.Context, bucket, key string) (bool, error) {
	_, err := s.head(ctx, bucket, key)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return false, err
}
