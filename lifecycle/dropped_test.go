package lifecycle_test

import (
	"context"
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/lifecycle"
)

// TestAValidationIsDropped verifies that a program whose config no longer has the validation of a step can
// resume an operation that was claimed with the validation.
func TestAValidationIsDropped(t *testing.T) {
	onEach(t, func(t *testing.T, db string) {
		ctx := t.Context()
		w := unopened(t, db, invoices)
		of := func(validation string, fail error) *lifecycle.Lifecycle[bill] {
			return lifecycle.MustParse[bill]([]byte(`
workflow: crate
owning_module: post
status_types: [open, packing, sent]
initial_status: open
janitor: {stuck_after: 5m}
steps:
- {step_id: 1, step_key: pack, status: open, successful_claim_state: [packing, open], successful_state: sent, action: Pack`+validation+`}
`)).Action("Pack", func(ctx context.Context, _ *lifecycle.Act[bill]) error {
				if _, err := holdfast.Effect(ctx, "label", func(context.Context, string) (int, error) { return 7, nil }); err != nil {
					return err
				}
				return fail
			}, lifecycle.Journaled())
		}
		old := of(", validation: May", errors.New("it dies"))
		old.Validation("May", func(context.Context, *lifecycle.Act[bill]) error { return nil })
		one := w.engine(old)
		if _, err := old.Create(ctx, one, "b1", bill{}); err != nil {
			t.Fatal(err)
		}
		if _, err := old.Fire(ctx, one, "b1", "pack", "admin"); fault.CodeOf(err) != fault.ActionFailed {
			t.Fatal(err)
		}
		now := of("", nil)
		two := w.engine(now)
		stop := w.run(two)
		defer stop()
		testkit.Eventually(t, "the operation is done", func() bool {
			e, err := now.Get(ctx, two, "b1")
			if err == nil && e.Claimed != nil && e.Claimed.Phase == "uncertain" {
				t.Fatalf("the operation is parked: %s", e.Claimed.Error)
			}
			return err == nil && e.Status == "sent"
		})
	})
}
