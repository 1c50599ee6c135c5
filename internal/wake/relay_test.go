package wake_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/testkit"
)

// Verifies that a node that does not run wakes the nodes that do, and that what it woke right before it closes is sent
// too: a program that starts a run and exits need not wait for a poll.
func TestANodeThatDoesNotRunWakesOthers(t *testing.T) {
	url := holdfasttest.PostgreSQL(t)
	running := holdfasttest.OpenOn(t, holdfasttest.At(url))
	testkit.Run(t, running)
	first, endFirst := engine.Of(running).Hub().Wait("first")
	defer endFirst()
	last, endLast := engine.Of(running).Hub().Wait("last")
	defer endLast()

	writer := holdfasttest.OpenOn(t, holdfasttest.At(url))
	testkit.Eventually(t, "the node that runs is woken", func() bool { // it may not listen yet
		engine.Of(writer).Hub().Wake([]string{"first"})
		select {
		case <-first:
			return true
		case <-time.After(50 * time.Millisecond):
			return false
		}
	})
	brief := holdfasttest.OpenOn(t, holdfasttest.At(url))
	engine.Of(brief).Hub().Wake([]string{"last"})
	if err := brief.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-last:
	case <-time.After(time.Minute):
		t.Error("what a node woke before it closed was not sent")
	}
	engine.Of(brief).Hub().Wake([]string{"ignored"}) // after Close: no panic, nothing is sent
}
