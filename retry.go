package holdfast

import "time"

// RetryPolicy sets how many times work is attempted and how long to wait between attempts. It has the same meaning for
// the events of a reaction, the steps of a run, the items of a batch and the after-effects of a lifecycle, except that
// reactions and after-effects restrict Multiplier. A zero field means the default. Each option that takes a policy
// documents its default for MaxAttempts.
//
// The pause after the n-th consecutive failure is Backoff × Multiplier^(n−1), at most MaxBackoff, with jitter: the
// actual pause is a random duration between half of that value and the full value. An error that is [NonRetryable] ends
// the attempts immediately.
type RetryPolicy struct {
	// MaxAttempts is the number of attempts, including the first. 1 means no retry.
	MaxAttempts int
	// Backoff is the pause after the first failure; the default is a second, or MaxBackoff if that is shorter.
	Backoff time.Duration
	// Multiplier is the factor by which the pause grows with each failure; the default is 2, and 1 keeps the pause
	// constant. Reactions accept only 1 and 2, after-effects only 2.
	Multiplier float64
	// MaxBackoff is the longest pause, at least Backoff; the default is five minutes, or Backoff if that is longer.
	MaxBackoff time.Duration
}
