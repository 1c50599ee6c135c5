package lease

import "github.com/holdfast-go/holdfast/fault"

// Release is a request to end a lease without its holder.
type Release struct {
	Reason, Actor string
	Epoch         *int64 // of the lease that the caller has seen, nil for any
}

// Check returns an error if the lease now has another epoch: the request was for an earlier holder.
func (r Release) Check(operation string, now int64) error {
	switch {
	case r.Epoch == nil || *r.Epoch == now && now > 0:
		return nil
	case *r.Epoch < 1:
		return fault.New(fault.Validation, "the epoch of a lease must be at least 1, got %d", *r.Epoch).With("pointer", "/epoch")
	}
	return fault.New(fault.Concurrency, "the lease of operation %s has epoch %d, not %d: read the operation again", operation, now, *r.Epoch).With("epoch", now)
}
