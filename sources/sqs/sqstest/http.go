package sqstest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
)

// Handler speaks the JSON protocol of SQS over HTTP, for the clients of other processes: give them its address as their endpoint. It asks for no
// credentials.
func (s *Server) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, call, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		body, err := io.ReadAll(r.Body)
		var out any
		if err == nil {
			out, err = s.serve(r.Context(), call, body)
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		if err != nil {
			code, status := "InternalFailure", http.StatusInternalServerError
			var api smithy.APIError
			if errors.As(err, &api) {
				code, status = api.ErrorCode(), http.StatusBadRequest
			}
			w.WriteHeader(status)
			out = map[string]string{"__type": "com.amazonaws.sqs#" + code, "message": err.Error()}
		}
		b, err := json.Marshal(out)
		if err == nil {
			_, err = w.Write(b)
		}
		_ = err // the client has gone, and hears nothing
	})
}

// serve carries out a call by its name.
func (s *Server) serve(ctx context.Context, call string, body []byte) (any, error) {
	switch call {
	case "ReceiveMessage":
		return serveAs(ctx, body, s.ReceiveMessage)
	case "DeleteMessageBatch":
		return serveAs(ctx, body, s.DeleteMessageBatch)
	case "DeleteMessage":
		return serveAs(ctx, body, s.DeleteMessage)
	case "ChangeMessageVisibilityBatch":
		return serveAs(ctx, body, s.ChangeMessageVisibilityBatch)
	case "SendMessage":
		return serveAs(ctx, body, s.SendMessage)
	case "GetQueueUrl":
		return serveAs(ctx, body, s.GetQueueUrl)
	case "GetQueueAttributes":
		return serveAs(ctx, body, s.GetQueueAttributes)
	case "ListQueues":
		return serveAs(ctx, body, s.ListQueues)
	case "ListQueueTags":
		return serveAs(ctx, body, s.ListQueueTags)
	}
	return nil, Error("InvalidAction", "sqstest has no %s", call)
}

func serveAs[In, Out any](ctx context.Context, body []byte, do func(context.Context, *In, ...func(*sqs.Options)) (*Out, error)) (any, error) {
	in := new(In)
	if err := json.Unmarshal(body, in); err != nil {
		return nil, Error("SerializationException", "%v", err)
	}
	return do(ctx, in)
}
