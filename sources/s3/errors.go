package s3

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources"
)

// call is one request, for its errors.
type call struct {
	right       string // of IAM that it needs
	bucket, key string
	condition   bool // it was made under a condition that the object is unchanged
}

// fail says what went wrong, on what, and what to do. It matches sources.ErrGone when the bucket does not exist, fs.ErrNotExist when the object
// does not, and rebalancer.ErrChanged when a condition does not hold.
func (c call) fail(err error) error {
	if err == nil {
		return nil
	}
	what := fmt.Sprintf("bucket %q", c.bucket)
	if c.key != "" {
		what = fmt.Sprintf("object %q in bucket %q", c.key, c.bucket)
	}
	advice, is := c.judge(err)
	if advice != "" {
		advice = " (" + advice + ")"
	}
	if is != nil {
		return &kindError{fmt.Errorf("%s%s: %w", what, advice, err), is}
	}
	return fmt.Errorf("%s%s: %w", what, advice, err)
}

// judge says what an error means: what to do, and what it is to match.
func (c call) judge(err error) (advice string, is error) {
	code, text, status, region := details(err)
	switch code {
	case "NoSuchBucket":
		return "there is no such bucket: create it, or correct the name, the region or the endpoint", sources.ErrGone
	case "NoSuchKey", "NotFound", "NoSuchVersion":
		return "", fs.ErrNotExist
	case "PreconditionFailed":
		if c.condition {
			return "", rebalancer.ErrChanged
		}
	case "AccessDenied", "Forbidden", "AllAccessDisabled":
		if strings.Contains(strings.ToLower(text), "kms") {
			return "its key of KMS may not be used: grant kms:Decrypt on the key, and kms:GenerateDataKey where objects are moved", nil
		}
		return "access is denied: grant " + c.right + " to the credentials that are used", nil
	case "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "TokenRefreshRequired", "XAdminUserNotFound":
		return "the credentials are refused: check the access key, the secret and the session", nil
	case "RequestTimeTooSkewed":
		return "the clock of this machine is wrong: set it", nil
	case "PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException", "MovedPermanently", "TemporaryRedirect":
		if region != "" {
			return "the bucket is in the region " + region + ": make the client with that one", nil
		}
		return "the client has another region or endpoint than the bucket: make it with that of the bucket", nil
	case "InvalidObjectState":
		return "it is archived: restore it, or delete it", nil
	case "SlowDown", "ServiceUnavailable", "RequestLimitExceeded", "TooManyRequests":
		return "the store asks for fewer requests: it is tried again; spread the keys over more prefixes, or poll more rarely", nil
	}
	if strings.HasPrefix(code, "KMS.") {
		return "its key of KMS cannot be used: enable it, or restore it", nil
	}
	if status == http.StatusMovedPermanently && region != "" {
		return "the bucket is in the region " + region + ": make the client with that one", nil
	}
	return "", nil
}

// details takes an error of the SDK apart. HEAD requests have no code but that of HTTP.
func details(err error) (code, text string, status int, region string) {
	var api smithy.APIError
	if errors.As(err, &api) {
		code, text = api.ErrorCode(), api.ErrorMessage()
	}
	var response *smithyhttp.ResponseError
	if errors.As(err, &response) && response.Response != nil {
		status = response.HTTPStatusCode()
		region = response.Response.Header.Get("X-Amz-Bucket-Region")
	}
	if code == "" || code == "UnknownError" {
		switch status {
		case http.StatusNotFound:
			code = "NotFound"
		case http.StatusForbidden:
			code = "Forbidden"
		case http.StatusPreconditionFailed:
			code = "PreconditionFailed"
		}
	}
	return code, text, status, region
}

// hasCode tells whether an error is an answer with one of these codes.
func hasCode(err error, codes ...string) bool {
	code, _, _, _ := details(err)
	for _, c := range codes {
		if code == c {
			return true
		}
	}
	return false
}

// passing tells whether the same request may succeed soon.
func passing(err error) bool {
	_, _, status, _ := details(err)
	return status == 0 || status >= http.StatusInternalServerError || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout
}

// kindError matches a sentinel without its text.
type kindError struct{ err, is error }

func (e *kindError) Error() string        { return e.err.Error() }
func (e *kindError) Unwrap() error        { return e.err }
func (e *kindError) Is(target error) bool { return target == e.is }

// elsewhere keeps an error about where an object goes from being taken for one about the object.
func elsewhere(err error) error {
	var kind *kindError
	if errors.As(err, &kind) {
		return fmt.Errorf("where it goes: %v", err)
	}
	return fmt.Errorf("where it goes: %w", err)
}
