package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/internal/files"
)

// slowestCopy is what a copy inside the store is given at least, in bytes per second, beyond callTimeout.
const slowestCopy = 10 << 20

// spot is where an object goes.
type spot struct{ bucket, key string }

func (p *place) spot(folder, name string) (spot, error) {
	bucket, prefix := p.source.target(p.resource, folder)
	to := spot{bucket, prefix + name}
	if bucket == p.source.Bucket && prefix == p.source.prefix(p.resource) {
		return to, fmt.Errorf("folder %q is the resource itself, objects would come again", folder)
	}
	if len(to.key) > maxKey {
		return to, fmt.Errorf("key %q is too long: at most %d bytes", to.key, maxKey)
	}
	return to, nil
}

// Move copies an object that is the one wanted, and deletes it then if it still is. Nothing is overwritten.
func (p *place) Move(ctx context.Context, name string, want files.Info, folder, as string) error {
	to, err := p.spot(folder, as)
	if err != nil {
		return err
	}
	etag, err := "", p.source.free(ctx, to)
	if err == nil {
		etag, err = p.copy(ctx, name, want, to)
	}
	if errors.Is(err, fs.ErrExist) && p.copied(ctx, to, want) {
		err = nil
	}
	if err != nil {
		return err
	}
	err = p.Remove(ctx, name, want)
	if err == nil || errors.Is(err, fs.ErrNotExist) { // an answer that was lost, or somebody else's deletion: the copy stands for it
		return nil
	}
	return p.undo(ctx, name, want, to, etag, err)
}

// undo decides what becomes of a copy whose original could not be deleted. The copy goes only where this call made it, the store refused the deletion for good,
// and an object is still there. Where nobody knows, the deletion may be carried out yet, or was and only its answer lost: then the copy is the last.
func (p *place) undo(ctx context.Context, name string, want files.Info, to spot, etag string, why error) error {
	out, err := p.source.head(ctx, p.source.Bucket, p.key(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // by the client's first try, which its second found done, or by others
	}
	changed := errors.Is(why, rebalancer.ErrChanged)
	refused := changed || hasCode(why, "AccessDenied")
	if err != nil || etag == "" || !refused || changed && headed(p.source.Bucket, p.key(name), out).Tag == want.Tag {
		return why
	}
	if err := p.source.remove(ctx, to.bucket, to.key, &etag); err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.source.options.Logger.Warn("object could not be moved and its copy cannot be deleted; the object comes again",
			"resource", p.resource, "file", name, "copy", to.key, "error", err)
	}
	return why
}

// copied tells whether what is at the target is a copy that an earlier try made, though its answer was lost: the same content, written after the original was.
func (p *place) copied(ctx context.Context, to spot, want files.Info) bool {
	out, err := p.source.head(ctx, to.bucket, to.key)
	if err != nil {
		return false
	}
	there := headed(to.bucket, to.key, out)
	return there.Tag == want.Tag && there.Size == want.Size && !there.ModTime.Before(want.ModTime)
}

// free fails with fs.ErrExist where there is an object. Requests say so too, but not every store heeds their condition.
func (s *Source) free(ctx context.Context, to spot) error {
	absent, err := s.absent(ctx, to.bucket, to.key)
	switch {
	case err != nil:
		return elsewhere(err)
	case !absent:
		return fmt.Errorf("object %q in bucket %q: %w", to.key, to.bucket, fs.ErrExist)
	}
	return nil
}

// copy copies an object if it is the one wanted and there is none at its target; it returns the ETag of the copy, as a condition.
func (p *place) copy(ctx context.Context, name string, want files.Info, to spot) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout+time.Duration(want.Size/slowestCopy)*time.Second)
	defer cancel()
	etag, err := "", error(nil)
	if want.Size > p.source.copyLimit {
		etag, err = p.copyParts(ctx, name, want, to)
	} else {
		etag, err = p.copyWhole(ctx, name, want, to)
	}
	if err != nil {
		return "", p.copyFailed(ctx, name, to, err)
	}
	return `"` + strings.Trim(etag, `"`) + `"`, nil
}

func (p *place) copyWhole(ctx context.Context, name string, want files.Info, to spot) (string, error) {
	in := &s3.CopyObjectInput{
		Bucket: &to.bucket, Key: &to.key, CopySource: aws.String(copySource(p.source.Bucket, p.key(name))),
		CopySourceIfMatch: quoted(want), IfNoneMatch: aws.String("*"),
	}
	if o, ok := want.Native.(*Object); ok && o.StorageClass != "" && !archived(o.StorageClass) {
		in.StorageClass = types.StorageClass(o.StorageClass)
	}
	out, err := p.source.Client.CopyObject(ctx, in)
	if hasCode(err, "NotImplemented") {
		in.IfNoneMatch = nil // it has been looked at
		out, err = p.source.Client.CopyObject(ctx, in)
	}
	if err != nil {
		return "", err
	}
	if out.CopyObjectResult == nil {
		return "", errors.New("the store gave no result of the copy")
	}
	return aws.ToString(out.CopyObjectResult.ETag), nil
}

// copyFailed tells a condition about the source that does not hold from one about the target, and a missing object from a missing bucket.
func (p *place) copyFailed(ctx context.Context, name string, to spot, err error) error {
	from := call{right: "s3:GetObject and, on where it goes, s3:PutObject", bucket: p.source.Bucket, key: p.key(name), condition: true}
	switch {
	case hasCode(err, "PreconditionFailed", "ConditionalRequestConflict"):
		if taken := p.source.free(ctx, to); taken != nil {
			return taken
		}
	case hasCode(err, "NoSuchBucket"):
		return elsewhere(call{bucket: to.bucket, key: to.key}.fail(err))
	}
	return from.fail(err)
}

// copySource is a bucket and a key in a header, each part encoded. Through an access point an object has an ARN of its own.
func copySource(bucket, key string) string {
	if strings.HasPrefix(bucket, "arn:") {
		bucket += "/object"
	}
	parts := strings.Split(bucket+"/"+key, "/")
	for i, part := range parts {
		parts[i] = strings.ReplaceAll(url.QueryEscape(part), "+", "%20")
	}
	return strings.Join(parts, "/")
}

// Put writes a small object. Nothing is overwritten.
func (p *place) Put(ctx context.Context, folder, name string, data []byte) error {
	to, err := p.spot(folder, name)
	if err != nil {
		return err
	}
	if err := p.source.free(ctx, to); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	in := &s3.PutObjectInput{Bucket: &to.bucket, Key: &to.key, Body: bytes.NewReader(data), ContentType: aws.String("text/plain; charset=utf-8"), IfNoneMatch: aws.String("*")}
	_, err = p.source.Client.PutObject(ctx, in)
	switch {
	case err == nil:
		return nil
	case hasCode(err, "PreconditionFailed", "ConditionalRequestConflict"):
		return fmt.Errorf("object %q in bucket %q: %w", to.key, to.bucket, fs.ErrExist)
	}
	return elsewhere(call{right: "s3:PutObject", bucket: to.bucket, key: to.key}.fail(err))
}
