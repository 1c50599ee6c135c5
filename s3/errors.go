package s3

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"slices"

	"github.com/holdfast-go/holdfast/fault"
)

// failed returns the error of an operation: the error of the context if it is cancelled,
// [fs.ErrNotExist] if the object does not exist, [fault.Unavailable] if a retry may succeed,
// and otherwise the error of the service.
func failed(ctx context.Context, op, name string, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		err = ctx.Err()
	case missing(err):
		return &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	case temporary(err):
		return fault.New(fault.Unavailable, "%s %q: the object store is unavailable: try again", op, name).Wrap(err)
	}
	return fmt.Errorf("%s %q: %w", op, name, err)
}

// serviceError is a refusal by the service.
type serviceError struct {
	Status  int    `xml:"-"` // 0 in a response about many objects
	Code    string // "" if the response has none
	Message string
	Region  string // of the bucket, if the request was signed for another one
}

func (e *serviceError) Error() string {
	text := "the service refused the request"
	if e.Status != 0 {
		text += fmt.Sprintf(" with status %d", e.Status)
	}
	if e.Code != "" {
		text += ": " + e.Code
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

const noSuchKey = "NoSuchKey"

// refusal parses the error in a response. Without a body that says more, 404 means that the object does not exist.
func refusal(r *http.Response, body []byte, key string) *serviceError {
	var e struct {
		XMLName xml.Name `xml:"Error"`
		serviceError
	}
	if xml.Unmarshal(body, &e) != nil { // another document, or none
		e.serviceError = serviceError{}
	}
	if e.Code == "" && r.StatusCode == http.StatusNotFound && key != "" {
		e.Code = noSuchKey
	}
	e.Status, e.Region = r.StatusCode, cmp.Or(e.Region, r.Header.Get("X-Amz-Bucket-Region"))
	if !regionName.MatchString(e.Region) {
		e.Region = ""
	}
	return &e.serviceError
}

// refusalIn returns the refusal that err wraps, or an empty one.
func refusalIn(err error) *serviceError {
	if e, ok := errors.AsType[*serviceError](err); ok {
		return e
	}
	return &serviceError{}
}

// missing reports whether the object does not exist. A missing bucket is another error.
func missing(err error) bool { return refusalIn(err).Code == noSuchKey }

// mayNotAsk reports whether the service does not tell the caller the region of a bucket, although it may serve the bucket. A proxy
// or a service that does not know the request may refuse it without a document.
func mayNotAsk(err error) bool {
	r := refusalIn(err)
	if r.Code == "" {
		return slices.Contains([]int{http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusNotImplemented}, r.Status)
	}
	return slices.Contains([]string{"AccessDenied", "AuthorizationHeaderMalformed", "InvalidRegion", "MethodNotAllowed", "NotImplemented"}, r.Code)
}

// temporaryCodes are the error codes that a retry may resolve. In a response about many
// objects, each object has a code and no status.
var temporaryCodes = []string{
	"InternalError", "ServiceUnavailable", "SlowDown", "RequestTimeout", "OperationAborted",
	"Throttling", "ThrottlingException", "RequestLimitExceeded", "RequestThrottled", noSuchUpload,
}

// noSuchUpload is the code for an upload that does not exist any more: it was completed by an attempt whose response was lost,
// or was ended by a rule of the bucket. Storing the object again resolves both, repeating the request does not.
const noSuchUpload = "NoSuchUpload"

// worthRepeating reports whether the same request may succeed if it is sent again.
func worthRepeating(err error) bool { return temporary(err) && refusalIn(err).Code != noSuchUpload }

// temporary reports whether the service is busy or down, or the network failed.
func temporary(err error) bool {
	if r, ok := errors.AsType[*serviceError](err); ok {
		const timeout, tooMany, internal, notImplemented = 408, 429, 500, 501
		s := r.Status
		return s == timeout || s == tooMany || s >= internal && s != notImplemented || slices.Contains(temporaryCodes, r.Code)
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return false
	}
	_, ok := errors.AsType[net.Error](err)
	return ok || errors.Is(err, io.ErrUnexpectedEOF)
}
