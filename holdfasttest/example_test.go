package holdfasttest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/stream"
)

// Race calls a function from several goroutines at once. Eight callers place the same order: one wins.
func ExampleRace() {
	t, done := exampleT() // in a test, t is the *testing.T
	defer done()

	hf := holdfasttest.Open(t)
	won, lost := holdfasttest.Race(t, 8, func(int) error {
		_, err := stream.Append(context.Background(), hf, "order-7", stream.None, stream.Event{Name: "placed"})
		return err
	})
	for _, err := range lost {
		if !errors.Is(err, holdfast.ErrConcurrency) {
			fmt.Println(err)
		}
	}
	fmt.Println("won:", won, "lost:", len(lost))
	// Output:
	// won: 1 lost: 7
}

// exampleT returns a test for an example, and a function that ends it.
func exampleT() (testing.TB, func()) {
	t := new(fakeT)
	return t, func() {
		for _, f := range slices.Backward(t.cleanups) {
			f()
		}
	}
}

type fakeT struct {
	testing.TB
	cleanups []func()
}

func (t *fakeT) Helper()                   {}
func (t *fakeT) Attr(string, string)       {}
func (t *fakeT) Name() string              { return "Example" }
func (t *fakeT) Cleanup(f func())          { t.cleanups = append(t.cleanups, f) }
func (t *fakeT) Errorf(f string, a ...any) { fmt.Printf(f, a...) }
func (t *fakeT) Fatalf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }
func (t *fakeT) Logf(f string, a ...any)   { fmt.Printf(f, a...) }
func (t *fakeT) Output() io.Writer         { return io.Discard }
func (t *fakeT) TempDir() string {
	dir, err := os.MkdirTemp("", "holdfast")
	if err != nil {
		panic(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
