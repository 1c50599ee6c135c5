package holdfasttest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/stream"
)

// Race calls a function from several goroutines at once. Eight callers place the same order: one wins.
func ExampleRace() {
	test := func(t *testing.T) {
		hf := holdfasttest.Open(t)
		won, lost := holdfasttest.Race(t, 8, func(int) error {
			_, err := stream.Append(context.Background(), hf, "order-7", stream.None, stream.Event{Name: "placed"})
			return err
		})
		for _, err := range lost {
			if !errors.Is(err, holdfast.ErrConcurrency) {
				t.Error(err)
			}
		}
		fmt.Println("won:", won, "lost:", len(lost))
	}
	runTest("TestRace", test) // a test file would declare func TestRace(t *testing.T) instead
	// Output:
	// won: 1 lost: 7
}

// runTest runs a test inside an example.
func runTest(name string, test func(*testing.T)) {
	if !testing.RunTests(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{Name: name, F: test}}) {
		fmt.Println("FAIL", name)
	}
}
