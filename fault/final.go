package fault

import "errors"

// final is an error that trying again does not mend.
type final struct{ error }

func (f final) Unwrap() error { return f.error }

// NonRetryable says of an error that trying again does not mend it. NonRetryable
// of nil is nil.
func NonRetryable(err error) error {
	if err == nil {
		return nil
	}
	return final{err}
}

// IsFinal says whether an error was said to be one that trying again does not
// mend.
func IsFinal(err error) bool {
	var f final
	return errors.As(err, &f)
}
