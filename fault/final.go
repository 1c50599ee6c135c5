package fault

import "errors"

// final marks an error as not retryable.
type final struct{ error }

func (f final) Unwrap() error { return f.error }

// NonRetryable marks an error that a retry cannot fix. NonRetryable(nil) returns nil. It is holdfast.NonRetryable, for
// packages that do not link the engine.
func NonRetryable(err error) error {
	if err == nil {
		return nil
	}
	return final{err}
}

// IsNonRetryable reports whether [NonRetryable] has marked the error.
func IsNonRetryable(err error) bool {
	var f final
	return errors.As(err, &f)
}
