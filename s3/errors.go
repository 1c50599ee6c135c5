package s3

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"slices"

	"github.com/minio/minio-go/v7"

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

// missing reports whether the object does not exist. A missing bucket is another error.
func missing(err error) bool {
	r, ok := errors.AsType[minio.ErrorResponse](err)
	return ok && r.Code == minio.NoSuchKey
}

// temporaryCodes are the error codes that a retry may resolve. In a response about many
// objects, each object has a code and no status.
var temporaryCodes = []string{
	"InternalError", "ServiceUnavailable", "SlowDown", "RequestTimeout", "OperationAborted",
	"Throttling", "ThrottlingException", "RequestLimitExceeded", "RequestThrottled",
}

// temporary reports whether the service is busy or down, or the network failed.
func temporary(err error) bool {
	if r, ok := errors.AsType[minio.ErrorResponse](err); ok {
		const timeout, tooMany, internal, notImplemented = 408, 429, 500, 501
		s := r.StatusCode
		return s == timeout || s == tooMany || s >= internal && s != notImplemented || slices.Contains(temporaryCodes, r.Code)
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return false
	}
	_, ok := errors.AsType[net.Error](err)
	return ok || errors.Is(err, io.ErrUnexpectedEOF)
}
