package wake

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/store"
)

// leaseOf is the kind of the leases under which work of a kind is served.
var leaseOf = map[string]string{Reaction: HeldReaction, Operation: HeldOperation, Step: HeldStep, Batch: HeldItem}

// farLease is longer than any lease.
const farLease = 365 * 24 * time.Hour

// Unserved returns the needs that have work due although no node holds a lease on work of the same kind. Such work may
// still be taken in the next moment, so a caller asks repeatedly.
func Unserved(ctx context.Context, d store.Doer, shards []int16, needs []WorkKind) (unserved []WorkKind, err error) {
	due, err := HasWork(ctx, d, shards, needs)
	leased := make(map[string]bool)
	for n := range due {
		if _, known := leased[n.Kind]; err == nil && leaseOf[n.Kind] != "" && !known {
			var next time.Duration
			_, next, err = hasWork(ctx, d, shards, []WorkKind{{Kind: leaseOf[n.Kind]}}, farLease)
			leased[n.Kind] = next > 0
		}
	}
	for _, n := range needs {
		if due[n] && !leased[n.Kind] {
			unserved = append(unserved, n)
		}
	}
	return unserved, err
}

// TakenAtOnce reports whether a running node takes due work of this kind within seconds, and holds a lease while it
// serves it. Expired leases may wait for the janitor, and timers and conditions of runs have no lease.
func (k WorkKind) TakenAtOnce() bool {
	return leaseOf[k.Kind] != "" && (k.Kind != Step || k.Name != "")
}

// String describes the work, for the log.
func (k WorkKind) String() string {
	switch k.Kind {
	case Operation:
		// The name is a queue: "l:" and the name of the lifecycle.
		return fmt.Sprintf("operations of lifecycle %q", k.Name[min(len("l:"), len(k.Name)):])
	case Step:
		if k.Name == "" {
			return "timers and conditions of runs"
		}
		return fmt.Sprintf("run steps of handler %q", k.Name)
	case Batch:
		return fmt.Sprintf("items of batch kind %q", k.Name)
	case HeldReaction, HeldStream, HeldOperation, HeldStep, HeldItem:
		return "expired leases (" + k.Kind + ")"
	}
	return fmt.Sprintf("%s %q", k.Kind, k.Name)
}
