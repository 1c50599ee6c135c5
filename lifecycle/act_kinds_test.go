package lifecycle_test

import (
	"context"
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/lifecycle"
)

// TestOnlyActionsChangeTheEntity verifies that Set and WriteTx of a validation, and Set of an after-effect, are errors: they
// were dropped, or applied only if the step was fired and not claimed.
func TestOnlyActionsChangeTheEntity(t *testing.T) {
	var does string
	var after error
	l := lifecycle.MustParse[bill]([]byte(`{"workflow": "bill", "owning_module": "billing", "initial_status": "open", "status_types": ["open", "closed"],
		"steps": [{"step_id": 1, "step_key": "close", "status": "open", "successful_state": {"admin": "closed"}, "validation": {"admin": "May"}, "success_after_effect": {"admin": "Tell"}}]}`)).
		Validation("May", func(_ context.Context, a *lifecycle.Act[bill]) error {
			switch does {
			case "sets":
				return a.Set(bill{1})
			case "writes":
				a.WriteTx(func(context.Context, holdfast.Tx) error { return nil })
			}
			return nil
		}).
		AfterEffect("Tell", func(_ context.Context, a *lifecycle.Act[bill]) error {
			after = a.Set(bill{2})
			return nil
		})
	hf := holdfasttest.OpenOn(t, holdfasttest.At(holdfasttest.SQLite(t)), l)
	if _, err := l.Create(t.Context(), hf, "b", bill{5}); err != nil {
		t.Fatal(err)
	}
	for _, does = range []string{"sets", "writes"} {
		if _, err := l.Fire(t.Context(), hf, "b", "close", "admin"); err == nil {
			t.Errorf("a validation %s, want an error", does)
		}
	}
	does = "passes"
	if _, err := l.Fire(t.Context(), hf, "b", "close", "admin"); err != nil {
		t.Fatal(err)
	}
	if waiting, err := holdfasttest.Settle(t.Context(), hf); err != nil || len(waiting) > 0 {
		t.Errorf("settle returned %v, %v", waiting, err)
	}
	if e, err := l.Get(t.Context(), hf, "b"); err != nil || e.Status != "closed" || e.Data.Cents != 5 || !errors.Is(after, holdfast.ErrValidation) {
		t.Errorf("got %+v, %v, want it closed with its data; the after-effect got %v, want ErrValidation", e, err, after)
	}
}
