package fault_test

import (
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/fault"
)

// Errors have a code that survives wrapping. errors.Is compares codes.
func ExampleCodeOf() {
	err := fmt.Errorf("close bill b1: %w", fault.New(fault.ClaimFailed, "another operation is in progress").With("holder", "node-2"))
	fmt.Println(fault.CodeOf(err))
	fmt.Println(errors.Is(err, fault.Of(fault.ClaimFailed)))
	fmt.Println(fault.CodeOf(errors.New("disk full")))
	// Output:
	// CLAIM_FAILED
	// true
	// INTERNAL_ERROR
}
