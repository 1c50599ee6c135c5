package clock

import (
	"cmp"
	"math"
	"time"
)

// LongestBackoff is the default of the longest pause, unless the first pause is longer.
const LongestBackoff = 5 * time.Minute

// Backoff returns the pause after the n-th failure in a row, with jitter. Zero values take the defaults: a
// second, which doubles up to [LongestBackoff].
func Backoff(first time.Duration, multiplier float64, longest time.Duration, n int64) time.Duration {
	d := float64(cmp.Or(first, time.Second)) * math.Pow(cmp.Or(multiplier, 2), float64(max(n-1, 0)))
	return Jitter(time.Duration(min(d, float64(cmp.Or(longest, max(LongestBackoff, first))))))
}
