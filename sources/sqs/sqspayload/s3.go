// Package sqspayload opens the bodies of messages that the extended client library of SQS put into S3. It is a package of its own so that
// programs without such messages do not link a client of S3.
package sqspayload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
)

// Client is what is called; *s3.Client of github.com/aws/aws-sdk-go-v2/service/s3 has it. The rights are s3:GetObject, s3:DeleteObject unless
// payloads are kept, and those to decrypt where the bucket is encrypted with a key of KMS. With s3:ListBucket an object that is missing can be told
// from one that may not be read.
type Client interface {
	GetObject(context.Context, *s3.GetObjectInput, ...func(*s3.Options)) (*s3.GetObjectOutput, error)
	DeleteObject(context.Context, *s3.DeleteObjectInput, ...func(*s3.Options)) (*s3.DeleteObjectOutput, error)
}

// S3 is sqs.Payloads in S3.
type S3 struct{ client Client }

// New makes one of a client.
func New(c Client) *S3 { return &S3{c} }

// Open starts to read an object. The error matches fs.ErrNotExist when there is no such object; one whose bucket is missing is an error of
// another kind, since it concerns all messages.
func (p *S3) Open(ctx context.Context, bucket, key string) (io.ReadCloser, error) {
	out, err := p.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &bucket, Key: &key})
	if err != nil {
		return nil, fmt.Errorf("object %q in bucket %q: %w", key, bucket, missing(err))
	}
	return out.Body, nil
}

// Delete deletes an object; one that is not there is no error.
func (p *S3) Delete(ctx context.Context, bucket, key string) error {
	_, err := p.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &bucket, Key: &key})
	if err = missing(err); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("object %q in bucket %q: %w", key, bucket, err)
	}
	return nil
}

// missing makes an error match fs.ErrNotExist that says that there is no such object.
func missing(err error) error {
	var none *types.NoSuchKey
	var api smithy.APIError
	if errors.As(err, &none) || errors.As(err, &api) && api.ErrorCode() == "NoSuchKey" {
		return &missingError{err}
	}
	return err
}

type missingError struct{ err error }

func (e *missingError) Error() string        { return e.err.Error() }
func (e *missingError) Unwrap() error        { return e.err }
func (e *missingError) Is(target error) bool { return target == fs.ErrNotExist }
