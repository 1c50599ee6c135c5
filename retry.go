package holdfast

import "time"

// RetryPolicy says how often a failed operation is attempted and how long to wait between attempts. It has the same meaning
// for the events of a reaction, the steps of a run, the items of a batch and the after-effects of a lifecycle. A zero
// field takes the default, which the option that uses the policy documents for MaxAttempts.
//
// The pause after the n-th failure in a row is Backoff × Multiplier^(n−1), at most MaxBackoff, with jitter: between half of it
// and all of it. An error that is [NonRetryable] ends the attempts at once.
type RetryPolicy struct {
	// MaxAttempts is the number of attempts, the first included. 1 means no retry.
	MaxAttempts int
	// Backoff is the pause after the first failure; the default is a second.
	Backoff time.Duration
	// Multiplier is the growth of the pause with each failure; the default is 2, and 1 keeps the pause constant.
	// Reactions accept only 1 and 2, after-effects only 2.
	Multiplier float64
	// MaxBackoff is the longest pause; the default is five minutes.
	MaxBackoff time.Duration
}
