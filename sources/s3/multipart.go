package s3

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/rebalancer-go/rebalancer/internal/files"
)

// partsAtOnce is how many parts of one object are copied side by side.
const partsAtOnce = 4

// copyParts copies an object that is too large for one request. What describes it goes along, which is not so by itself.
func (p *place) copyParts(ctx context.Context, name string, want files.Info, to spot) (string, error) {
	s := p.source
	head, err := p.is(ctx, name, want)
	if err != nil {
		return "", err
	}
	in := &s3.CreateMultipartUploadInput{
		Bucket: &to.bucket, Key: &to.key, ContentType: head.ContentType, ContentEncoding: head.ContentEncoding, ContentDisposition: head.ContentDisposition,
		ContentLanguage: head.ContentLanguage, CacheControl: head.CacheControl, Metadata: head.Metadata,
	}
	if class := string(head.StorageClass); !archived(class) {
		in.StorageClass = head.StorageClass
	}
	if aws.ToInt32(head.TagCount) > 0 {
		tags, err := p.tags(ctx, name, head.VersionId)
		if err != nil {
			return "", err
		}
		in.Tagging = aws.String(encodeTags(tags))
	}
	up, err := s.Client.CreateMultipartUpload(ctx, in)
	if err != nil {
		return "", err
	}
	parts, err := p.parts(ctx, name, want, to, up.UploadId)
	var etag *string
	if err == nil {
		etag, err = s.complete(ctx, to, up.UploadId, parts)
	}
	if err != nil {
		s.abort(ctx, to, up.UploadId) // else its parts are paid for
		return "", err
	}
	return aws.ToString(etag), nil
}

// parts copies all parts, some at a time.
func (p *place) parts(ctx context.Context, name string, want files.Info, to spot, upload *string) ([]types.CompletedPart, error) {
	size := max(p.source.partSize, (want.Size+mostParts-1)/mostParts)
	n := int((want.Size + size - 1) / size)
	parts := make([]types.CompletedPart, n)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	slots := make(chan struct{}, partsAtOnce)
	var wg sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			out, err := p.source.Client.UploadPartCopy(ctx, &s3.UploadPartCopyInput{
				Bucket: &to.bucket, Key: &to.key, UploadId: upload, PartNumber: aws.Int32(int32(i + 1)),
				CopySource: aws.String(copySource(p.source.Bucket, p.key(name))), CopySourceIfMatch: quoted(want),
				CopySourceRange: aws.String(fmt.Sprintf("bytes=%d-%d", int64(i)*size, min(int64(i+1)*size, want.Size)-1)),
			})
			if err == nil && out.CopyPartResult == nil {
				err = errors.New("the store gave no result of a part")
			}
			if err != nil {
				cancel(err)
				return
			}
			parts[i] = types.CompletedPart{ETag: out.CopyPartResult.ETag, PartNumber: aws.Int32(int32(i + 1))}
		})
	}
	wg.Wait()
	return parts, context.Cause(ctx)
}

func (s *Source) complete(ctx context.Context, to spot, upload *string, parts []types.CompletedPart) (*string, error) {
	in := &s3.CompleteMultipartUploadInput{
		Bucket: &to.bucket, Key: &to.key, UploadId: upload, IfNoneMatch: aws.String("*"),
		MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
	}
	out, err := s.Client.CompleteMultipartUpload(ctx, in)
	if hasCode(err, "NotImplemented") {
		in.IfNoneMatch = nil // it has been looked at
		out, err = s.Client.CompleteMultipartUpload(ctx, in)
	}
	if err != nil {
		return nil, err
	}
	return out.ETag, nil
}

// abort gives up an upload, also when the time for it is over.
func (s *Source) abort(ctx context.Context, to spot, upload *string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	if _, err := s.Client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &to.bucket, Key: &to.key, UploadId: upload}); err != nil {
		s.options.Logger.Warn("upload that failed cannot be given up; its parts stay until a lifecycle rule ends it",
			"bucket", to.bucket, "key", to.key, "error", err)
	}
}
