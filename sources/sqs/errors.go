package sqs

import (
	"errors"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/rebalancer-go/rebalancer/sources"
)

// Codes of errors; the first spellings are those of the JSON protocol, the others those of the query protocol and of older servers.
const (
	codeNoQueue    = "QueueDoesNotExist"
	codeNoQueueOld = codePrefixOld + "NonExistentQueue"
	codePrefixOld  = "AWS.SimpleQueueService."
)

// finalCodes are the answers about an entry that another try would get again: its receipt is too old, or no receipt.
var finalCodes = []string{"ReceiptHandleIsInvalid", "InvalidParameterValue", "InvalidParameterValueException", "MessageNotInflight"}

// gone tells whether an error says that there is no such queue.
func gone(err error) bool {
	var missing *types.QueueDoesNotExist
	if errors.As(err, &missing) {
		return true
	}
	var api smithy.APIError
	return errors.As(err, &api) && (api.ErrorCode() == codeNoQueue || api.ErrorCode() == codeNoQueueOld)
}

// resourceError is err, matching ErrGone when it says that the queue is gone.
func resourceError(err error) error {
	if gone(err) {
		return &goneError{err}
	}
	return err
}

type goneError struct{ err error }

func (e *goneError) Error() string        { return sources.ErrGone.Error() + ": " + e.err.Error() }
func (e *goneError) Unwrap() error        { return e.err }
func (e *goneError) Is(target error) bool { return target == sources.ErrGone }

// answered tells whether an error is an answer of the service: what was asked for has not happened, rather than perhaps. With a status of 500
// and above it may have; most such errors the SDK knows no type for, and not whose fault they are.
func answered(err error) bool {
	var response *smithyhttp.ResponseError
	if errors.As(err, &response) && response.HTTPStatusCode() >= http.StatusInternalServerError {
		return false
	}
	var api smithy.APIError
	return errors.As(err, &api) && api.ErrorFault() != smithy.FaultServer
}

// past tells whether a moment has gone by, on the monotonic clock or on the wall's: the first stands still while a machine sleeps, the
// second may be set back.
func past(t time.Time) bool {
	now := time.Now()
	return !now.Before(t) || !now.Round(0).Before(t.Round(0))
}
