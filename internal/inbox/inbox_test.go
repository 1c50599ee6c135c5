package inbox_test

import (
	"context"
	"encoding/json"
	"strconv"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/inbox"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/lifecycle"
	"github.com/holdfast-go/holdfast/run"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const config = `{"workflow": "note", "owning_module": "notes", "initial_status": "open", "status_types": ["open", "closed"],
  "steps": [{"step_id": 1, "step_key": "close", "status": "open", "successful_state": "closed"}]}`

// TestTheInboxIsCapped verifies that a kind is counted and listed up to the cap and then marked, and that another workspace
// is not counted.
func TestTheInboxIsCapped(t *testing.T) {
	d := run.Define("ask", "1", run.Approval("ok", "?"))
	holdfasttest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		start := func(ctx context.Context, n int) {
			t.Helper()
			inOne(t, ctx, e, n, func(ctx context.Context, tx holdfast.Tx, _ int) error {
				_, _, err := d.Start(ctx, tx, struct{}{})
				return err
			})
		}
		check := func(ctx context.Context, entries int, capped bool) {
			t.Helper()
			all, counts, err := inbox.List(ctx, engine.Of(e), inbox.PendingApproval)
			if err != nil || len(all) != entries || len(counts) != 1 || counts[0] != (inbox.Count{Kind: inbox.PendingApproval, Count: entries, Capped: capped}) {
				t.Errorf("listed %d entries, counts %+v, %v, want %d, capped %t", len(all), counts, err, entries, capped)
			}
		}
		start(t.Context(), inbox.Cap)
		check(t.Context(), inbox.Cap, false)
		other := holdfast.InWorkspace(t.Context(), "other")
		start(other, 1)
		check(other, 1, false)
		start(t.Context(), 1)
		check(t.Context(), inbox.Cap, true)
	}, d)
}

// TestCountsAreCapped verifies that entities are counted up to the cap and then marked.
func TestCountsAreCapped(t *testing.T) {
	testlevel.Long(t)
	notes := lifecycle.MustParse[json.RawMessage]([]byte(config))
	holdfasttest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		check := func(entities int64, more bool) {
			t.Helper()
			n, err := inbox.Statuses(t.Context(), engine.Of(e), "note")
			if err != nil || n.Counts["open"] != entities || n.Capped != more {
				t.Errorf("got statuses %+v, %v, want %d, capped %t", n, err, entities, more)
			}
			o, err := inbox.Overall(t.Context(), engine.Of(e))
			if err != nil || o.Entities.Counts["note"] != entities || o.Entities.Capped != more {
				t.Errorf("got overview %+v, %v, want %d entities, capped %t", o, err, entities, more)
			}
		}
		create := func(ctx context.Context, d holdfast.Doer, id string) error {
			_, err := notes.Create(ctx, d, id, json.RawMessage(`{}`))
			return err
		}
		inOne(t, t.Context(), e, inbox.CountCap, func(ctx context.Context, tx holdfast.Tx, i int) error { return create(ctx, tx, "n"+strconv.Itoa(i)) })
		check(inbox.CountCap, false)
		for _, id := range []string{"x", "y"} {
			if err := create(t.Context(), e, id); err != nil {
				t.Fatal(err)
			}
		}
		check(inbox.CountCap+1, true)
	}, notes)
}

// inOne calls f n times in one transaction.
func inOne(t *testing.T, ctx context.Context, e *holdfast.Engine, n int, f func(context.Context, holdfast.Tx, int) error) {
	t.Helper()
	err := e.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
		for i := range n {
			if err := f(ctx, tx, i); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
