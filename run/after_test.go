package run_test

import (
	"context"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/lifecycle"
	"github.com/holdfast-go/holdfast/run"
)

const paidConfig = `{
  "workflow": "bill", "owning_module": "billing", "initial_status": "open", "status_types": ["open", "closed"],
  "steps": [{"step_id": 1, "step_key": "close", "status": "open", "successful_state": "closed", "success_after_effect": "Chase"}]
}`

// Verifies that an after-effect starts a run, in the transaction that acknowledges it: one,
// however often it is delivered.
func TestAnAfterEffectStartsARun(t *testing.T) {
	def := run.Define("follow-up", "1", run.Task("note", func(_ context.Context, o order) (string, error) { return o.ID, nil }, run.Idempotent()))
	bills := func() *lifecycle.Lifecycle[order] {
		return lifecycle.MustParse[order]([]byte(paidConfig)).AfterEffect("Chase", func(_ context.Context, a *lifecycle.Act[order]) error {
			a.WriteTx(func(ctx context.Context, tx holdfast.Tx) error {
				_, _, err := def.Start(ctx, tx, order{ID: a.Entity.ID}, run.Key("chase-"+a.Operation))
				return err
			})
			return nil
		}, lifecycle.Transactional())
	}
	for name, where := range storetest.Databases(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := bills()
			e := holdfasttest.OpenOn(t, holdfasttest.At(where(t)), l, def)
			testkit.Run(t, e)
			if _, err := l.Create(t.Context(), e, "b1", order{ID: "b1"}); err != nil {
				t.Fatal(err)
			}
			if _, err := l.Fire(t.Context(), e, "b1", "close", "admin"); err != nil {
				t.Fatal(err)
			}
			var all []run.Run
			testkit.Eventually(t, "the run is over", func() bool {
				var err error
				if all, err = holdfast.Collect(run.List(t.Context(), e, run.Filter{Definition: def.ID()})); err != nil {
					t.Fatal(err)
				}
				return len(all) > 0 && all[0].Over()
			})
			if len(all) != 1 || string(all[0].Output) != `"b1"` {
				t.Errorf("got steps %+v", all)
			}
		})
	}
}
