package sqs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/rebalancer-go/rebalancer/sources"
	"github.com/rebalancer-go/rebalancer/sources/sqs/sqstest"
)

// wire is the client of the SDK on the small SQS, without a network; answer may answer a call instead, with a status other than 0.
type wire struct {
	handler http.Handler
	answer  func(call string) (status int, code string)
}

func (w *wire) Do(r *http.Request) (*http.Response, error) {
	_, call, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	rec := httptest.NewRecorder()
	if status, code := w.answer(call); status != 0 {
		rec.WriteHeader(status)
		_, _ = fmt.Fprintf(rec, `{"__type":"com.amazonaws.sqs#%s","message":"no"}`, code) // into memory
	} else {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		w.handler.ServeHTTP(rec, r)
	}
	return rec.Result(), nil
}

func sdkOn(s *sqstest.Server, tries int, answer func(call string) (int, string)) *sqs.Client {
	return sqs.New(sqs.Options{
		Region: sqstest.Region, BaseEndpoint: aws.String("http://sqs.test"), HTTPClient: &wire{s.Handler(), answer}, RetryMaxAttempts: tries,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "key"}, nil
		}),
	})
}

// TestAnswered: after a failure of the server nobody knows whether messages were received, after a refusal everybody does.
func TestAnswered(t *testing.T) {
	for _, c := range []struct {
		status int
		code   string
		want   bool
	}{
		{500, "InternalError", false}, {503, "ServiceUnavailable", false}, {502, "", false}, {400, "ThrottlingException", true}, {400, "RequestThrottled", true},
		{403, "AccessDeniedException", true}, {400, "QueueDoesNotExist", true},
	} {
		t.Run(fmt.Sprint(c.status, c.code), func(t *testing.T) {
			onStage(t, fifoSuffix, nil, func(t *testing.T, s *stage) {
				sdk := sdkOn(s.Server, 1, func(string) (int, string) { return c.status, c.code })
				_, err := sdk.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(sqstest.URL(s.queue))})
				if err == nil || answered(err) != c.want {
					t.Errorf("answered: %v, want %v; %v", answered(err), c.want, err)
				}
				if gone(err) != (c.code == codeNoQueue) {
					t.Errorf("gone: %v", gone(err))
				}
			})
		})
	}
}

// TestTriesOfTheSDK: the visibility of what came after tries that failed slowly is counted from the last, so that it is not taken for lost on
// its arrival.
func TestTriesOfTheSDK(t *testing.T) {
	onStage(t, fifoSuffix, nil, func(t *testing.T, s *stage) {
		var slow atomic.Bool
		slow.Store(true)
		s.source.cfg.Client = sdkOn(s.Server, 3, func(call string) (int, string) {
			if call == "ReceiveMessage" && slow.Swap(false) {
				time.Sleep(26 * time.Second)
				return 503, "ServiceUnavailable"
			}
			return 0, ""
		})
		send(s, s.queue, "g", "1")
		r := s.open()
		ms := s.fetch(r, 1, "1")
		r.mu.Lock()
		left := time.Until(r.out[ms[0]].until)
		r.mu.Unlock()
		if left > 30*time.Second || left < 29*time.Second {
			t.Errorf("taken to be invisible for %v", left)
		}
		time.Sleep(time.Minute)
		s.settle(r, sources.Done, ms...)
		s.left(s.queue)
	})
}

// TestRefusedEntries: what is called the sender's fault is final only where it is about the receipt. A throttled extension loses nothing, and
// a throttled deletion is asked for again.
func TestRefusedEntries(t *testing.T) {
	for code, final := range map[string]bool{
		"ReceiptHandleIsInvalid": true, "AWS.SimpleQueueService.ReceiptHandleIsInvalid": true, "InvalidParameterValue": true, "MessageNotInflight": true,
		"AWS.SimpleQueueService.MessageNotInflight": true,
		"RequestThrottled":                          false, "ThrottlingException": false, "AccessDenied": false, "KmsThrottled": false, "InternalError": false, "": false,
	} {
		t.Run(code, func(t *testing.T) {
			onStage(t, fifoSuffix, nil, func(t *testing.T, s *stage) {
				faulty := &faulty{Server: s.Server, code: code}
				s.source.cfg.Client = faulty
				send(s, s.queue, "g", "1")
				r := s.open()
				ms := s.fetch(r, 1, "1")
				faulty.times.Store(1)
				err := r.Settle(t.Context(), settlements(sources.Done, ms...))
				if part := (*sources.SettleError)(nil); final == errors.As(err, &part) {
					t.Errorf("the deletion: %v", err)
				}
				if final {
					return
				}
				faulty.times.Store(1)
				time.Sleep(20 * time.Second) // an extension is refused, and the next is not
				s.settle(r, sources.Done, ms...)
				s.left(s.queue)
			})
		})
	}
}

// faulty is a client whose server refuses entries of batches, so many times, and calls it the sender's fault.
type faulty struct {
	*sqstest.Server
	code  string
	times atomic.Int32
}

func (f *faulty) no() []types.BatchResultErrorEntry {
	if f.times.Add(-1) < 0 {
		return nil
	}
	return []types.BatchResultErrorEntry{{Id: aws.String("0"), Code: &f.code, Message: aws.String("no"), SenderFault: true}}
}

func (f *faulty) DeleteMessageBatch(ctx context.Context, in *sqs.DeleteMessageBatchInput, o ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	if no := f.no(); no != nil {
		return &sqs.DeleteMessageBatchOutput{Failed: no}, nil
	}
	return f.Server.DeleteMessageBatch(ctx, in, o...)
}

func (f *faulty) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, o ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	if no := f.no(); no != nil {
		return &sqs.ChangeMessageVisibilityBatchOutput{Failed: no}, nil
	}
	return f.Server.ChangeMessageVisibilityBatch(ctx, in, o...)
}
