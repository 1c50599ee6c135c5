// Package lease implements the leases that entities, streams, reactions, steps and items have in common.
//
// A lease is four columns on the row it protects: holder, epoch, until, deaths. Taking the lease increments the
// epoch, which is never reset. Every later write of the holder, its release included, is a conditional update
// of that same row: the epoch must still be the holder's, and the database's time must not be past until. A
// holder that was stopped or cut off and returns too late can therefore write nothing, whether or not the lease
// has a new holder.
//
// While the holder works, a [Renewer] renews the lease in the background, at most until the handler's timeout,
// so that a handler that hangs does not keep its lease forever. A remote holder is silent until it writes under
// its epoch: it renews, begins an effect, or ends its work. A lease that expires while its holder is silent is
// a lost hand-out, which no worker may ever have received, and not a crash: it is counted separately, the work
// is due again after [LostPause], and it is never given up for this reason.
//
// A [Janitor] on any node releases the leases of crashed holders. Two janitors at once do no harm, because
// releasing is conditional too.
//
// Rejected: a separate table of leases (its check in a subquery let an old epoch settle), and node clocks (a
// clock that is an hour off must change nothing).
package lease

import (
	"fmt"
	"hash/fnv"
	"time"

	"github.com/holdfast-go/holdfast/fault"
)

// Defaults of leases.
const (
	// DefaultDuration is the duration of a lease without a renewal.
	DefaultDuration = 30 * time.Second
	// MaxCrashes is how many holders may crash before the work is given up.
	MaxCrashes = 5
	// Timeout is the maximum time that a lease is renewed.
	Timeout = 15 * time.Minute
	// LongestSnooze is the longest time for which work can be given back.
	LongestSnooze = 30 * 24 * time.Hour
)

// LostPause returns the pause after the n-th consecutive lost hand-out: none at first, then up to 1, 3, 7, 15
// seconds and so on, up to five minutes. It is spread between half and all of that by the name of the work, so
// that work lost together does not return together. Otherwise an item that crashes its worker before the worker's
// first call would take the other items with it each time.
func LostPause(n int64, name string) time.Duration {
	if n < 2 {
		return 0
	}
	half := min(time.Second<<min(n-1, 9)-time.Second, 5*time.Minute) / 2
	h := fnv.New32a()
	fmt.Fprint(h, n, name)
	return half + half*time.Duration(h.Sum32()%1000)/1000
}

// Lease is the right to work on something until it expires.
type Lease struct {
	Epoch int64
	Until time.Time // database time
}

// Lost returns the error of a holder that no longer has the lease on what it wants to write.
func Lost(what string, epoch int64) *fault.Error {
	return fault.New(fault.LeaseLost,
		"%s: the lease with epoch %d has expired or ended, so this holder can no longer record results: stop the work", what, epoch).
		With("epoch", epoch)
}
