package scope

import "github.com/holdfast-go/holdfast/fault"

// ErrMutationTimeout is returned when waiting and deciding took longer than the budget. The change will never be
// applied. Compare with [errors.Is].
var ErrMutationTimeout = fault.Of(fault.MutationTimeout)
