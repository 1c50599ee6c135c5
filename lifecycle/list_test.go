package lifecycle_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/lifecycle"
	"github.com/holdfast-go/holdfast/run"
)

// Properties: the history has the actor of a create, and the actor and correlation of a step; an effect that is
// journaled as done without a result is done, with the result null.
func TestOriginsAndEffectsOfAClaim(t *testing.T) {
	things := lifecycle.MustParse[struct{}]([]byte(`{"workflow": "thing", "owning_module": "m", "status_types": ["a", "busy", "b"], "initial_status": "a",
		"steps": [{"step_id": 1, "step_key": "go", "status": "a", "successful_state": {"any": "b"}, "successful_claim_state": {"any": ["busy", "a"]}}]}`)).RecoveredBy()
	for name, open := range storetest.Databases(t) {
		t.Run(name, func(t *testing.T) {
			hf, ctx := holdfasttest.OpenOn(t, holdfasttest.At(open(t)), things), t.Context()
			if _, err := things.Create(ctx, hf, "x", struct{}{}, lifecycle.By("mia")); err != nil {
				t.Fatal(err)
			}
			c, err := things.Claim(ctx, hf, "x", "go", "any", lifecycle.By("ann"), lifecycle.Correlation("c-1"))
			if err != nil {
				t.Fatal(err)
			}
			if x, err := c.BeginEffect(ctx, "mail", 0); err != nil || x.State != holdfast.EffectBegun || x.Since.IsZero() || x.Policy != holdfast.EffectHold {
				t.Errorf("begun: got %+v, %v", x, err)
			}
			if x, err := c.EffectDone(ctx, "mail", 0, nil); err != nil || x.State != holdfast.EffectDone || string(x.Result) != "null" || x.Since.IsZero() {
				t.Errorf("done without a result: got %+v, %v", x, err)
			}
			if _, err := c.BeginEffect(ctx, "print", 0); err != nil {
				t.Fatal(err)
			}
			if x, err := c.EffectNotDone(ctx, "print", 0); err != nil || x.State != holdfast.EffectNotDone || x.Since.IsZero() {
				t.Errorf("not done: got %+v, %v", x, err)
			}
			if _, err := c.Settle(ctx, nil, nil); err != nil {
				t.Fatal(err)
			}
			all, err := holdfast.Collect(things.ReadHistory(ctx, hf, "x", 0))
			if err != nil || len(all) < 3 || all[0].Actor != "mia" || all[1].Actor != "ann" || all[1].Correlation != "c-1" {
				t.Errorf("got history %+v, %v", all, err)
			}
		})
	}
}

// Properties: lists that span several pages have every element once and in order, on both databases.
func TestListsSpanPages(t *testing.T) {
	const n = 1003 // two pages and a bit
	things := lifecycle.MustParse[struct{}]([]byte(`{"workflow": "thing", "owning_module": "m", "status_types": ["a", "b"], "initial_status": "a",
		"steps": [{"step_id": 1, "step_key": "go", "status": "a", "successful_state": {"any": "b"}}]}`))
	def := run.Define("waits", "1", run.Wait("w", 24*time.Hour))
	for name, open := range storetest.Databases(t) {
		t.Run(name, func(t *testing.T) {
			hf := holdfasttest.OpenOn(t, holdfasttest.At(open(t)), things, def)
			ctx := t.Context()
			err := hf.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
				for i := range n {
					id := fmt.Sprintf("%04d", i)
					if _, err := things.Create(ctx, tx, id, struct{}{}); err != nil {
						return err
					}
					if _, _, err := def.Start(ctx, tx, struct{}{}, run.Key(id)); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			check := func(what string, got []string, err error) {
				if slices.Sort(got); err != nil || len(got) != n || len(slices.Compact(got)) != n {
					t.Errorf("%s: got %d distinct elements, want %d: %v", what, len(got), n, err)
				}
			}
			var ids []string
			for e, failed := range things.List(ctx, hf, lifecycle.Filter{}) {
				ids, err = append(ids, e.ID), failed
			}
			if !slices.IsSorted(ids) {
				t.Error("entities are not in order")
			}
			check("entities", ids, err)
			ids = nil
			for r, failed := range run.List(ctx, hf, run.Filter{Definition: def.ID()}) {
				ids, err = append(ids, r.Key), failed
			}
			check("runs", ids, err)
		})
	}
}
