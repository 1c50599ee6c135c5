package lifecycleengine

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/stream"
)

const mailedConfig = `{
  "workflow": "mailed", "owning_module": "fx", "initial_status": "open", "status_types": ["open", "closing", "closed"],
  "steps": [{"step_id": 1, "step_key": "close", "status": "open", "successful_claim_state": ["closing", "open"], "successful_state": "closed",
    "success_after_effect": "Mail"}]
}`

// mailed returns a lifecycle whose after-effect records the operation that it follows,
// together with its acknowledgement.
func mailed() []holdfast.Part {
	return []holdfast.Part{part(handling(mailedConfig, "afterEffect", "Mail", func(_ context.Context, a *Act) error {
		a.Commit(func(ctx context.Context, tx *store.Tx) error {
			_, err := stream.Append(ctx, tx, "mails", stream.Any, stream.Event{Name: a.Operation})
			return err
		})
		return nil
	}, Declared{}).Start)}
}

// closeAndMail closes an entity, unless that was requested before.
func closeAndMail(ctx context.Context, hf *holdfast.Engine) error {
	s := registryOf(engine.Of(hf)).boundTo("mailed")
	e, err := entities.Get(ctx, engine.Of(hf), "mailed", "x")
	if fault.CodeOf(err) == fault.NotFound {
		e, err = entities.Create(ctx, engine.Of(hf), entities.CreateArgs{Lifecycle: "mailed", ID: "x", Status: "open", Data: []byte(`{}`)})
	}
	if err == nil && e.Version == 0 {
		_, err = s.fire(ctx, "x", "close", "admin", FireOptions{})
	}
	return err
}

// mailedOnce checks the end state: a settled step has exactly one after-effect, under its own
// operation, and a reverted step has none.
func mailedOnce(ctx context.Context, hf *holdfast.Engine) error {
	e, err := entities.Get(ctx, engine.Of(hf), "mailed", "x")
	if err != nil {
		return err
	}
	mails, err := holdfast.Collect(stream.Read(ctx, hf, "mails", 0))
	if err != nil {
		return err
	}
	history, err := holdfast.Collect(stream.Read(ctx, hf, entities.Stream("mailed", "x"), 0))
	if err != nil {
		return err
	}
	var operations []string
	for _, h := range history {
		var data struct{ Operation string }
		if h.Name == settled("close") && json.Unmarshal(h.Data, &data) == nil {
			operations = append(operations, data.Operation)
		}
	}
	switch {
	case e.Status == "open" && len(mails)+len(operations) == 0:
		return nil
	case e.Status == "closed" && len(mails) == 1 && len(operations) == 1 && mails[0].Name == operations[0]:
		return nil
	}
	return fmt.Errorf("status is %q, operations %q, but mails %v", e.Status, operations, mails)
}

// TestCrashOfAnAfterEffect verifies, at every point and for every fault, that a settled step is
// followed by its after-effect, whose writes apply once and under the step's own operation; and
// that a reverted step is not.
func TestCrashOfAnAfterEffect(t *testing.T) {
	holdfasttest.Crash(t, holdfasttest.Scenario{Name: "after", Parts: mailed, Do: closeAndMail, Check: mailedOnce,
		Pairs: true})
}
