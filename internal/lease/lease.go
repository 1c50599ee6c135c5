// Package lease is what every kind of held thing has in common.
//
// A hold is four columns on the row of the thing held: holder, epoch, until,
// deaths. Taking adds one to the epoch, which never starts again. Every later
// write of the holder, its release included, is a conditional update of that
// very row: the epoch is still the holder's, and the database's time is not past
// the end. So a holder that was stopped, or cut off, and comes back too late can
// write nothing, whoever has the thing now, and also if nobody has.
//
// While the holder works, a [Renewer] renews the hold in the background, at most
// until the handler's timeout, so that a body that hangs is not held for ever.
// A holder elsewhere is quiet until it is heard of under its epoch: it renews, begins an
// effect, or ends what it holds. A lease that runs out while it is quiet is a lost
// hand-out, which nobody may ever have received, and not a death: it is counted apart, what
// was handed out is due again after [LostPause], and nothing is given up for it.
//
// What a dead holder left is freed by a [Janitor], on any node; two of them at
// once do no harm, because freeing is conditional too.
//
// Rejected: a table of leases beside the things (a check in a subquery let an
// old epoch settle), and node clocks (wrong by an hour, they must change
// nothing).
package lease

import (
	"fmt"
	"hash/fnv"
	"time"

	"github.com/holdfast-go/holdfast/fault"
)

// Defaults of holds.
const (
	// DefaultDuration is how long a hold lasts without a renewal.
	DefaultDuration = 30 * time.Second
	// MaxCrashes is how many holders may die before the thing is given up.
	MaxCrashes = 5
	// Timeout is how long a hold is renewed at the most.
	Timeout = 15 * time.Minute
)

// LostPause is the pause behind the n-th hand-out in a row of which nobody was heard: none,
// then up to 1, 3, 7, 15 seconds and so on, up to five minutes. It is scattered between half and all of
// that by the name of what was handed out, so that what was lost together comes back apart: else what kills
// its worker before that is heard of would take the others with it each time.
func LostPause(n int64, name string) time.Duration {
	if n < 2 {
		return 0
	}
	half := min(time.Second<<min(n-1, 9)-time.Second, 5*time.Minute) / 2
	h := fnv.New32a()
	fmt.Fprint(h, n, name)
	return half + half*time.Duration(h.Sum32()%1000)/1000
}

// Lease is the right to work on something, until it runs out.
type Lease struct {
	Epoch int64
	Until time.Time // in the database's time
}

// Lost is the error of a holder that no longer holds what it wants to write.
func Lost(what string, epoch int64) *fault.Error {
	return fault.New(fault.LeaseLost,
		"%s is no longer held under epoch %d: it ran out, or was ended; what this holder did after that is not recorded", what, epoch).
		With("epoch", epoch)
}
