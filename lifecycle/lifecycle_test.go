package lifecycle_test

import (
	"context"
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/lifecycle"
)

type bill struct {
	Cents int `json:"cents"`
}

const billing = `{
  "workflow": "billing", "owning_module": "billing", "status_types": ["open", "approved", "closing", "closed"],
  "initial_status": "open", "janitor": {},
  "steps": [
    {"step_id": 10, "step_key": "approve", "status": "open", "successful_state": "approved"},
    {"step_id": 20, "step_key": "close", "status": "approved",
     "successful_claim_state": {"admin": ["closing", "approved"]}, "successful_state": {"admin": "closed"}, "action": {"admin": "Close"}}
  ]
}`

func TestFire(t *testing.T) {
	l := lifecycle.MustParse[bill]([]byte(billing)).Action("Close", func(ctx context.Context, a *lifecycle.Act[bill]) error {
		return a.Set(bill{Cents: a.Entity.Data.Cents + 1})
	}, lifecycle.Transactional())
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		ctx := t.Context()
		if _, err := l.Create(ctx, e, "b", bill{41}); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Fire(ctx, e, "b", "close", "admin"); !errors.Is(err, holdfast.ErrInvalidTransition) {
			t.Fatal(err)
		}
		if got, err := l.Fire(ctx, e, "b", "approve", "anybody"); err != nil || got.Status != "approved" || got.Version != 1 {
			t.Fatal(got, err)
		}
		got, err := l.Fire(ctx, e, "b", "close", "admin")
		if err != nil || got.Status != "closed" || got.Version != 3 || got.Data.Cents != 42 || got.Claimed != nil {
			t.Fatal(got, err)
		}
	}, l)
}
