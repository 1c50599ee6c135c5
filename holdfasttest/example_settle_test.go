package holdfasttest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/lifecycle"
	"github.com/holdfast-go/holdfast/run"
)

// Settle does what the loops of a running program would do, and returns what waits for somebody. No time passes but
// that of the database: the reminder is sent after a week.
func ExampleSettle() {
	t, done := exampleT() // in a test, t is the *testing.T
	defer done()

	chase := run.Define("chase", "1",
		run.Wait("week", 7*24*time.Hour),
		run.Task("remind", func(context.Context, any) (string, error) { return "reminded", nil }, run.Idempotent()),
		run.Approval("ask", "Write it off?", run.For("manager")))
	hf := holdfasttest.Open(t, chase)
	ctx := context.Background()
	r, _, err := chase.Start(ctx, hf, nil)
	if err != nil {
		fmt.Println(err)
	}

	waiting, err := holdfasttest.Settle(ctx, hf)
	for _, w := range waiting {
		fmt.Println(w.Kind, w.Owner, w.Reason)
	}
	for a := range run.ListApprovals(ctx, hf, run.ApprovalFilter{Run: r.ID}) {
		_, err = run.Decide(ctx, hf, a.ID, run.Decision{Status: run.Approved, Requester: "manager"}, run.By("ann"))
	}
	fmt.Println(err)

	waiting, err = holdfasttest.Settle(ctx, hf)
	fmt.Println(len(waiting), err)
	r, err = run.Get(ctx, hf, r.ID)
	fmt.Println(r.Status, err)
	// Output:
	// pendingApproval manager The run waits for a decision at step "ask": Write it off?
	// <nil>
	// 0 <nil>
	// COMPLETED <nil>
}

const billConfig = `
workflow: bill
owning_module: billing
status_types: [open, closing, closed]
initial_status: open
janitor: standard
steps:
  - step_id: 10
    step_key: close
    status: open
    successful_claim_state: [closing, open]
    successful_state: closed
    action: Charge
`

// TestACardIsChargedOnce is the test of docs/testing.md: a card is charged once, whatever crashes at whatever point.
func TestACardIsChargedOnce(t *testing.T) {
	world := new(holdfasttest.World)
	type Bill struct {
		Cents int `json:"cents"`
	}
	bills := lifecycle.MustParse[Bill]([]byte(billConfig)).Action("Charge", func(ctx context.Context, a *lifecycle.Act[Bill]) error {
		_, err := holdfast.Effect(ctx, "charge", func(ctx context.Context, key string) (bool, error) {
			return true, world.Call(ctx, "charge", key) // the gateway
		}, holdfast.OnUnknownRetry())
		return err
	}, lifecycle.Journaled())

	holdfasttest.Crash(t, holdfasttest.Scenario{
		Parts: func() []holdfast.Part { return []holdfast.Part{bills} },
		Do: func(ctx context.Context, hf *holdfast.Engine) error {
			if _, err := bills.Create(ctx, hf, "b1", Bill{Cents: 1200}); err != nil && !errors.Is(err, holdfast.ErrConflict) {
				return err
			}
			_, err := bills.Fire(ctx, hf, "b1", "close", "system")
			return err
		},
		Accepts: []error{holdfast.ErrInvalidTransition}, // it is closed
		Check: func(ctx context.Context, hf *holdfast.Engine) error {
			if b, err := bills.Get(ctx, hf, "b1"); err != nil || b.Status != "closed" {
				return fmt.Errorf("the bill is %q: %w", b.Status, err)
			}
			if keys := world.Keys(ctx, "charge"); len(keys) != 1 {
				return fmt.Errorf("the card was charged %d times: %q", len(keys), keys)
			}
			return nil
		},
	})
}
