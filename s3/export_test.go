package s3

import "time"

// SetRetryUnit sets the longest pause before the second attempt of a request.
func SetRetryUnit(d time.Duration) { retryUnit = d }
