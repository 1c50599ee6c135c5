package lease

import "github.com/holdfast-go/holdfast/fault"

// Release is a request to end a lease without its holder.
type Release struct {
	Reason, Actor string
	Epoch         int64 // the epoch of the lease, 0 for any
}

// Check returns an error if the lease now has another epoch: the request was for an earlier holder.
func (r Release) Check(operation string, now int64) error {
	if r.Epoch == 0 || r.Epoch == now {
		return nil
	}
	return fault.New(fault.Concurrency, "the lease of operation %s has epoch %d, not %d: read the operation again", operation, now, r.Epoch).With("epoch", now)
}
