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

// failed is the error of an operation: that of the context where it has ended,
// [fs.ErrNotExist] where there is no such object, [fault.Unavailable] where it may go well
// a little later, and else the service's own.
func failed(ctx context.Context, op, name string, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		err = ctx.Err()
	case missing(err):
		return &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	case temporary(err):
		return fault.New(fault.Unavailable, "%s %q: the object store does not answer as it should, try again", op, name).Wrap(err)
	}
	return fmt.Errorf("%s %q: %w", op, name, err)
}

// missing says that there is no such object. A bucket that is missing is another matter.
func missing(err error) bool {
	r, ok := errors.AsType[minio.ErrorResponse](err)
	return ok && r.Code == minio.NoSuchKey
}

// passing are the codes of answers that may be others a little later. An object among many
// has a code and no status.
var passing = []string{
	"InternalError", "ServiceUnavailable", "SlowDown", "RequestTimeout", "OperationAborted",
	"Throttling", "ThrottlingException", "RequestLimitExceeded", "RequestThrottled",
}

// temporary says that the service is busy or down, or that the network failed.
func temporary(err error) bool {
	if r, ok := errors.AsType[minio.ErrorResponse](err); ok {
		const timeout, tooMany, internal, notImplemented = 408, 429, 500, 501
		s := r.StatusCode
		return s == timeout || s == tooMany || s >= internal && s != notImplemented || slices.Contains(passing, r.Code)
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return false
	}
	_, ok := errors.AsType[net.Error](err)
	return ok || errors.Is(err, io.ErrUnexpectedEOF)
}
