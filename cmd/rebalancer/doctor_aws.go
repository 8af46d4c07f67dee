package main

import (
	"context"
	"crypto/rand"
	"errors"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
)

// sqsDoctor looks at queues of SQS.
type sqsDoctor struct {
	client  *awssqs.Client
	account string
	redrive bool // of the URL
}

// queue looks at what SQS does with messages by itself, and at rights. A receipt that SQS never gave changes nothing; whether that or the right to use
// it is found to be wrong shows whether the right is there.
func (s *sqsDoctor) queue(ctx context.Context, d *doctor, check, name string, _ bool) {
	in := &awssqs.GetQueueUrlInput{QueueName: &name}
	if s.account != "" {
		in.QueueOwnerAWSAccountId = &s.account
	}
	at, err := s.client.GetQueueUrl(ctx, in)
	if err != nil {
		d.failed(check, err)
		return
	}
	a, err := s.client.GetQueueAttributes(ctx, &awssqs.GetQueueAttributesInput{QueueUrl: at.QueueUrl, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll}})
	if err != nil {
		d.failed(check, err)
		return
	}
	s.attributes(d, check, a.Attributes)
	receipt := aws.String("none")
	_, err = s.client.DeleteMessage(ctx, &awssqs.DeleteMessageInput{QueueUrl: at.QueueUrl, ReceiptHandle: receipt})
	s.right(d, check, "sqs:DeleteMessage", err)
	_, err = s.client.ChangeMessageVisibility(ctx, &awssqs.ChangeMessageVisibilityInput{QueueUrl: at.QueueUrl, ReceiptHandle: receipt})
	s.right(d, check, "sqs:ChangeMessageVisibility", err)
}

func (s *sqsDoctor) attributes(d *doctor, check string, a map[string]string) {
	number := func(name types.QueueAttributeName) time.Duration {
		n, _ := strconv.Atoi(a[string(name)])
		return time.Duration(n) * time.Second
	}
	if keeps := number(types.QueueAttributeNameMessageRetentionPeriod); keeps > 0 && keeps < 24*time.Hour {
		d.find(stateWarning, check, "raise MessageRetentionPeriod, at most 14 days", "SQS drops messages that waited longer than %v", keeps)
	}
	policy := a[string(types.QueueAttributeNameRedrivePolicy)]
	switch {
	case policy == "" && s.redrive:
		d.find(stateFailed, check, "set a RedrivePolicy, or leave redrive out of the URL", "redrive is asked for, but the queue has no RedrivePolicy")
		d.errs = append(d.errs, errors.New(check+": no RedrivePolicy"))
	case policy == "":
		d.find(stateNote, check, "", "no RedrivePolicy: a message that is given up goes where --on-failure says, or is tried for ever")
	}
}

func (s *sqsDoctor) right(d *doctor, check, right string, err error) {
	if api := smithy.APIError(nil); errors.As(err, &api) && strings.Contains(api.ErrorCode(), "AccessDenied") {
		d.find(stateFailed, check, "allow "+right+" on the queue", "%s is not allowed", right)
		d.errs = append(d.errs, errors.New(check+": "+right+" is not allowed"))
	}
}

// s3Doctor looks at a bucket and its prefixes.
type s3Doctor struct {
	client       *awss3.Client
	bucket, base string
}

// place lists the bucket, which is what everything needs, and says whether it keeps what is deleted.
func (s *s3Doctor) place(ctx context.Context, d *doctor) {
	one := int32(1)
	if !d.step(ctx, "bucket", func(ctx context.Context) (string, error) {
		_, err := s.client.ListObjectsV2(ctx, &awss3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: aws.String(s.key("")), MaxKeys: &one})
		return "", err
	}) {
		return
	}
	v, err := s.client.GetBucketVersioning(ctx, &awss3.GetBucketVersioningInput{Bucket: &s.bucket})
	if err == nil && v.Status == s3types.BucketVersioningStatusEnabled {
		d.find(stateNote, "bucket", "a lifecycle rule for noncurrent versions removes them", "it is versioned: what was worked and deleted stays, and is paid for")
	}
}

// prefix makes and removes an object that no pattern finds.
func (s *s3Doctor) prefix(ctx context.Context, d *doctor, check, name string, tryWrites bool) {
	if !tryWrites {
		return
	}
	key := s.key(path.Join(name, ".rebalancer-doctor-"+rand.Text()))
	d.step(ctx, check+" writes", func(ctx context.Context) (string, error) {
		if _, err := s.client.PutObject(ctx, &awss3.PutObjectInput{Bucket: &s.bucket, Key: &key, Body: strings.NewReader("")}); err != nil {
			return "", err
		}
		_, err := s.client.DeleteObject(ctx, &awss3.DeleteObjectInput{Bucket: &s.bucket, Key: &key})
		return "an object was made and removed", err
	})
}

func (s *s3Doctor) key(name string) string { return strings.TrimPrefix(path.Join(s.base, name), "/") }
