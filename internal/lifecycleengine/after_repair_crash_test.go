package lifecycleengine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/stream"
)

const mendedConfig = `{
  "workflow": "mended", "owning_module": "fx", "initial_status": "open", "status_types": ["open", "closed", "archived"],
  "steps": [{"step_id": 1, "step_key": "close", "status": "open", "successful_state": "closed", "success_after_effect": "Mail"},
            {"step_id": 2, "step_key": "archive", "status": "closed", "successful_state": "archived", "success_after_effect": "Mail"}]
}`

const repairedMail = "$after:mended:Mail"

// repairing is a mail service that is down until it is mended.
type repairing struct {
	holdfasttest.World
	how string
}

func (m *repairing) parts() []holdfast.Part {
	return []holdfast.Part{part(handling(mendedConfig, "afterEffect", "Mail", func(ctx context.Context, a *Act) error {
		if err := m.Call(ctx, "mail", a.Operation); err != nil {
			return err
		}
		if m.how != "reset" && m.Count(ctx, "mended") == 0 {
			return fault.NonRetryable(errors.New("no mail today"))
		}
		a.Commit(func(ctx context.Context, tx *store.Tx) error {
			_, err := stream.Append(ctx, tx, "mails", stream.Any, stream.Event{Name: a.Operation})
			return err
		})
		return nil
	}, Declared{}).Start)}
}

// do moves an entity through two steps, so that the after-effect of the first is blocked or both are delivered, and
// repairs it. Every part checks the current state, so that do can be repeated from the beginning.
func (m *repairing) do(ctx context.Context, hf *holdfast.Engine) error {
	if err := takeSteps(ctx, hf); err != nil {
		return err
	}
	if done, err := repairEvents(ctx, hf); err != nil || slices.ContainsFunc(done, func(n string) bool { return n != "blocked" }) {
		return err
	}
	if _, err := holdfasttest.Settle(ctx, hf); err != nil {
		return err
	}
	at, err := reactions.Stands(ctx, engine.Of(hf), repairedMail, entities.Stream("mended", "x"))
	if err != nil {
		return err
	}
	if m.how == "reset" && at.Watermark < at.Due || m.how != "reset" && !at.Blocked {
		return fmt.Errorf("got position %+v", at)
	}
	if err := m.Call(ctx, "mended", ""); err != nil {
		return err
	}
	touched, _, err := reactions.Repair(ctx, engine.Of(hf), m.how, "", reactions.Filter{Reaction: repairedMail})
	if err == nil && len(touched) != 1 {
		err = fmt.Errorf("repair touched %+v, want 1 position", touched)
	}
	return err
}

func takeSteps(ctx context.Context, hf *holdfast.Engine) error {
	s := registryOf(engine.Of(hf)).boundTo("mended")
	e, err := entities.Get(ctx, engine.Of(hf), "mended", "x")
	if fault.CodeOf(err) == fault.NotFound {
		e, err = entities.Create(ctx, engine.Of(hf), entities.CreateArgs{Lifecycle: "mended", ID: "x", Status: "open", Data: []byte(`{}`)})
	}
	for _, step := range []string{"close", "archive"} {
		if err == nil && (e.Status == "open" || e.Status == "closed" && step == "archive") {
			e, err = s.fire(ctx, "x", step, "admin", FireOptions{})
		}
	}
	return err
}

// repairEvents returns the repairs of the reaction on the entity's stream.
func repairEvents(ctx context.Context, hf *holdfast.Engine) (names []string, err error) {
	all, err := holdfast.Collect(stream.Read(ctx, hf, reactions.Stream(repairedMail, entities.Stream("mended", "x")), 0))
	for _, e := range all {
		names = append(names, e.Name)
	}
	return names, err
}

// check checks the end state: each mail was sent at least once and applied once, by its key; a skipped mail was not
// applied; nothing is left after the repair.
func (m *repairing) check(ctx context.Context, hf *holdfast.Engine) error {
	var operations, mails []string
	history, err := holdfast.Collect(stream.Read(ctx, hf, entities.Stream("mended", "x"), 0))
	if err != nil {
		return err
	}
	for _, h := range history {
		var data struct {
			Operation string
			Note      struct{ Operation string }
		}
		if err := json.Unmarshal(h.Data, &data); err != nil {
			return err
		}
		if op := data.Operation + data.Note.Operation; op != "" {
			operations = append(operations, op)
		}
	}
	sent, err := holdfast.Collect(stream.Read(ctx, hf, "mails", 0))
	for _, e := range sent {
		mails = append(mails, e.Name)
	}
	if err != nil || len(operations) != 2 {
		return fmt.Errorf("got operations %q, %w, want 2", operations, err)
	}
	applied, names := operations, []string{"blocked", "unblocked"}
	switch m.how {
	case "skip":
		applied, names = operations[1:], []string{"blocked", "skipped"}
	case "reset":
		applied, names = append(operations, operations[0]+"/1", operations[1]+"/1"), []string{"reset"}
	}
	if !slices.Equal(mails, applied) {
		return fmt.Errorf("applied mails %q, want %q", mails, applied)
	}
	for _, key := range append(operations, applied...) {
		if !slices.Contains(m.Keys(ctx, "mail"), key) {
			return fmt.Errorf("no mail was sent with key %q", key)
		}
	}
	if got, err := repairEvents(ctx, hf); err != nil || !slices.Equal(got, names) {
		return fmt.Errorf("got repair history %q, %w", got, err)
	}
	at, err := reactions.Stands(ctx, engine.Of(hf), repairedMail, entities.Stream("mended", "x"))
	if err != nil || at.Blocked || at.Holder != "" || at.Watermark != at.Due {
		return fmt.Errorf("got position %+v, %w", at, err)
	}
	return nil
}

// TestCrashOfARepairedAfterEffect verifies, for each repair, at every point and for every
// fault, that an after-effect which is blocked and repaired, or reset, ends the same way:
// each mail is sent at least once and applied once, as seen by its key; a skipped mail is
// not applied; its successor is; and the repair is made once.
//
// The points are those between the steps' commits and the due notices, the claim, the call,
// the block (before it: the lease expires, and the call is repeated under its key), the repair
// (before it: it is made; after it: it is found in the history and not repeated), the
// next claim, and the acknowledgement with its writes.
func TestCrashOfARepairedAfterEffect(t *testing.T) {
	for _, how := range []string{"unblock", "skip", "reset"} {
		m := &repairing{how: how}
		holdfasttest.Crash(t, holdfasttest.Scenario{Name: how, Parts: m.parts, Do: m.do, Check: m.check, Pairs: true})
	}
}
