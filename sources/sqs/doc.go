// Package sqs is the source of Amazon SQS.
package sqs
