package sqs

import (
	"context"
	"io"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// Client is what a Source calls; *sqs.Client of github.com/aws/aws-sdk-go-v2/service/sqs has it. Credentials, region, endpoint and
// retries are those of the client.
type Client interface {
	GetQueueUrl(context.Context, *sqs.GetQueueUrlInput, ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error)
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	DeleteMessageBatch(context.Context, *sqs.DeleteMessageBatchInput, ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error)
	ChangeMessageVisibilityBatch(context.Context, *sqs.ChangeMessageVisibilityBatchInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error)
	// SendMessage is called only where Config.DeadLetter is set.
	SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
	// ListQueues and ListQueueTags are called only by Discover.
	ListQueues(context.Context, *sqs.ListQueuesInput, ...func(*sqs.Options)) (*sqs.ListQueuesOutput, error)
	ListQueueTags(context.Context, *sqs.ListQueueTagsInput, ...func(*sqs.Options)) (*sqs.ListQueueTagsOutput, error)
}

// Payloads keeps the bodies that were too large for a message. Package sqspayload has it for S3, where the extended client library
// puts them.
type Payloads interface {
	// Open reads an object from its start. The end of ctx ends the reading too. It fails with an error that matches fs.ErrNotExist when there is no such object.
	Open(ctx context.Context, bucket, key string) (io.ReadCloser, error)
	// Delete deletes an object; one that is not there is no error.
	Delete(ctx context.Context, bucket, key string) error
}
