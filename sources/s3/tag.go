package s3

import (
	"context"
	"errors"
	"net/url"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/internal/files"
)

// Tag gives an object a tag beside those that it has. Requests for tags know no condition: one with versions is pinned to its version, and another
// is looked at before and after; when it was replaced in between, the tag is taken off again.
func (p *place) Tag(ctx context.Context, name string, want files.Info, key, value string) error {
	head, err := p.is(ctx, name, want)
	if err != nil {
		return err
	}
	version := head.VersionId
	if aws.ToString(version) == "null" {
		version = nil
	}
	if err := p.retag(ctx, name, version, key, &value); err != nil {
		return err
	}
	if version != nil {
		return nil
	}
	if _, err = p.is(ctx, name, want); errors.Is(err, rebalancer.ErrChanged) {
		err = errors.Join(err, p.retag(ctx, name, nil, key, nil))
	}
	return err
}

// retag sets one tag, or takes it off.
func (p *place) retag(ctx context.Context, name string, version *string, key string, value *string) error {
	tags, err := p.tags(ctx, name, version)
	if err != nil {
		return err
	}
	tags = slices.DeleteFunc(tags, func(t types.Tag) bool { return aws.ToString(t.Key) == key })
	if value != nil {
		tags = append(tags, types.Tag{Key: &key, Value: value})
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	full := p.key(name)
	_, err = p.source.Client.PutObjectTagging(ctx, &s3.PutObjectTaggingInput{Bucket: &p.source.Bucket, Key: &full, VersionId: version, Tagging: &types.Tagging{TagSet: tags}})
	return call{right: "s3:PutObjectTagging", bucket: p.source.Bucket, key: full}.fail(err)
}

func (p *place) tags(ctx context.Context, name string, version *string) ([]types.Tag, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	full := p.key(name)
	out, err := p.source.Client.GetObjectTagging(ctx, &s3.GetObjectTaggingInput{Bucket: &p.source.Bucket, Key: &full, VersionId: version})
	if err != nil {
		return nil, call{right: "s3:GetObjectTagging", bucket: p.source.Bucket, key: full}.fail(err)
	}
	return out.TagSet, nil
}

// encodeTags writes tags as a header has them.
func encodeTags(tags []types.Tag) string {
	v := url.Values{}
	for _, t := range tags {
		v.Set(aws.ToString(t.Key), aws.ToString(t.Value))
	}
	return v.Encode()
}
