package lifecycleengine

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/reactions"
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

// closeAndMail closes an entity, unless that was requested before, and delivers the
// after-effects.
func closeAndMail(ctx context.Context, hf *holdfast.Engine) error {
	s := registryOf(engine.Of(hf)).boundTo("mailed")
	s.workspaces = []string{store.WorkspaceOf(ctx)}
	e, err := entities.Get(ctx, engine.Of(hf), "mailed", "x")
	if fault.CodeOf(err) == fault.NotFound {
		e, err = entities.Create(ctx, engine.Of(hf), entities.CreateArgs{Lifecycle: "mailed", ID: "x", Status: "open", Data: []byte(`{}`)})
	}
	if err == nil && e.Version == 0 {
		_, err = s.fire(ctx, "x", "close", "admin", FireOptions{})
	}
	if err != nil {
		return err
	}
	return deliver(ctx, hf, s)
}

// deliver runs one round of the worker that serves the after-effect.
func deliver(ctx context.Context, hf *holdfast.Engine, s *bound) error {
	const name = "$after:mailed:Mail"
	at, err := engine.Of(hf).Partition(ctx, store.Read)
	if err != nil {
		return err
	}
	if _, err := reactions.CollectDue(ctx, engine.Of(hf), at, []string{name}); err != nil {
		return err
	}
	leases, err := reactions.Take(ctx, engine.Of(hf), reactions.TakeArgs{Reactions: []reactions.Wanted{{Name: name, Lease: time.Minute}}, Holder: "me", Limit: 1, Crashed: 1})
	if err != nil || len(leases) == 0 {
		return err
	}
	l := leases[0]
	if err := reactions.LoadEvents(ctx, engine.Of(hf), store.HistoryEvents, leases, func(*reactions.Lease) []string { return []string{settled("close")} }, 10); err != nil {
		return err
	}
	for i, e := range l.Events {
		d := &reactions.Delivery{Event: e, Lease: l, Attempt: 1}
		if err := s.after(ctx, s.handlers["Mail"], d); err != nil {
			return err
		}
		end := reactions.End{Lease: l, Done: e.Version, Retain: i < len(l.Events)-1, Now: true}
		err := hf.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
			if err := d.Apply(ctx, store.TxOf(tx)); err != nil {
				return err
			}
			_, err := reactions.AckOne(ctx, store.DoerOf(tx), end)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// runRounds runs the background loops of a program after all leases have expired.
func runRounds(ctx context.Context, hf *holdfast.Engine) error {
	b := registryOf(engine.Of(hf))
	s := b.boundTo("mailed")
	s.workspaces = []string{store.WorkspaceOf(ctx)}
	if err := store.Shift(ctx, engine.Of(hf), time.Hour); err != nil {
		return err
	}
	if err := swept(ctx, hf, s); err != nil {
		return err
	}
	for range 2 { // the second takes the lease that a crash in the first left
		if err := deliver(ctx, hf, s); err != nil {
			return err
		}
	}
	return nil
}

// swept runs a round of the janitor that ends leases. It does not scan for strays: the number
// of its queries depends on the other contents of the database, and every run must count the
// same points.
func swept(ctx context.Context, hf *holdfast.Engine, s *bound) error {
	if _, err := s.registry.expire(ctx, true); err != nil {
		return err
	}
	_, err := reactions.SweepAll(ctx, engine.Of(hf), func([]string) {})
	return err
}

// mailedOnce checks the end state: a settled step has exactly one after-effect, under its own
// operation, and a reverted step has none.
func mailedOnce(ctx context.Context, hf *holdfast.Engine) error {
	// A janitor covers all workspaces, so the next case would see the remains of this one.
	if err := store.Shift(ctx, engine.Of(hf), time.Hour); err != nil {
		return err
	}
	if err := swept(ctx, hf, registryOf(engine.Of(hf)).boundTo("mailed")); err != nil {
		return err
	}
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
	holdfasttest.Crash(t, holdfasttest.Scenario{Name: "after", Parts: mailed, Do: closeAndMail, Recover: runRounds, Check: mailedOnce,
		Pairs: true})
}
