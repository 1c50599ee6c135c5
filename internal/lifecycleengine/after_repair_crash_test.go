package lifecycleengine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
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

const mendedConfig = `{
  "workflow": "mended", "owning_module": "fx", "initial_status": "open", "status_types": ["open", "closed", "archived"],
  "steps": [{"step_id": 1, "step_key": "close", "status": "open", "successful_state": "closed", "success_after_effect": "Mail"},
            {"step_id": 2, "step_key": "archive", "status": "closed", "successful_state": "archived", "success_after_effect": "Mail"}]
}`

const repairedMail = "$after:mended:Mail"

// mailboxes is an external mail service: it sees the calls of processes that crash right
// afterwards, and outlives them. The context can mark it as down.
type (
	downKey   struct{}
	mailboxes struct {
		mu    sync.Mutex
		calls map[string]int // by key
	}
)

func (m *mailboxes) called(key string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls[key]
}

func (m *mailboxes) repairParts() []holdfast.Part {
	return []holdfast.Part{part(handling(mendedConfig, "afterEffect", "Mail", func(ctx context.Context, a *Act) error {
		m.mu.Lock()
		m.calls[a.Operation]++
		m.mu.Unlock()
		if ctx.Value(downKey{}) != nil {
			return fault.NonRetryable(errors.New("no mail today"))
		}
		a.Commit(func(ctx context.Context, tx *store.Tx) error {
			_, err := stream.Append(ctx, tx, "mails", stream.Any, stream.Event{Name: a.Operation})
			return err
		})
		return nil
	}, Declared{}).Start)}
}

// repairScenario moves an entity through two steps, so that the after-effect of the first is blocked or
// both are delivered; repairs it; and delivers the rest. Every part checks the current state, so
// that repairScenario can be repeated from the beginning.
func repairScenario(how string) func(context.Context, *holdfast.Engine) error {
	return func(ctx context.Context, hf *holdfast.Engine) error {
		if err := takeSteps(ctx, hf); err != nil {
			return err
		}
		if err := passTime(ctx, hf); err != nil { // an earlier attempt may have left a lease
			return err
		}
		if repaired, err := isRepaired(ctx, hf); err != nil {
			return err
		} else if !repaired {
			down := ctx
			if how != "reset" {
				down = context.WithValue(ctx, downKey{}, true)
			}
			if err := mailRound(down, hf); err != nil {
				return err
			}
			at, err := reactions.Stands(ctx, engine.Of(hf), repairedMail, entities.Stream("mended", "x"))
			if err != nil {
				return err
			}
			if how == "reset" && at.Watermark < at.Due || how != "reset" && !at.Blocked {
				return fmt.Errorf("got position %+v", at)
			}
			touched, _, err := reactions.Repair(ctx, engine.Of(hf), how, "", reactions.Filter{Reaction: repairedMail})
			if err != nil {
				return err
			}
			if len(touched) != 1 {
				return fmt.Errorf("repair touched %+v, want 1 position", touched)
			}
		}
		return mailRound(ctx, hf)
	}
}

func takeSteps(ctx context.Context, hf *holdfast.Engine) error {
	s := registryOf(engine.Of(hf)).boundTo("mended")
	s.workspaces = []string{store.WorkspaceOf(ctx)}
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

// passTime runs a round of the janitor after all leases have expired.
func passTime(ctx context.Context, hf *holdfast.Engine) error {
	err := store.Shift(ctx, engine.Of(hf), time.Hour)
	if err == nil {
		_, err = reactions.SweepAll(ctx, engine.Of(hf), func([]string) {})
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

func isRepaired(ctx context.Context, hf *holdfast.Engine) (bool, error) {
	names, err := repairEvents(ctx, hf)
	return slices.ContainsFunc(names, func(n string) bool { return n != "blocked" }), err
}

// mailRound runs one round of a worker.
func mailRound(ctx context.Context, hf *holdfast.Engine) error {
	s := registryOf(engine.Of(hf)).boundTo("mended")
	at, err := engine.Of(hf).Partition(ctx, store.Read)
	if err != nil {
		return err
	}
	if _, err := reactions.CollectDue(ctx, engine.Of(hf), at, []string{repairedMail}); err != nil {
		return err
	}
	leases, err := reactions.Take(ctx, engine.Of(hf), reactions.TakeArgs{Reactions: []reactions.Wanted{{Name: repairedMail, Lease: time.Minute}}, Holder: "me", Limit: 1, Crashed: 1})
	if err != nil || len(leases) == 0 {
		return err
	}
	l := leases[0]
	if err := reactions.LoadEvents(ctx, engine.Of(hf), store.HistoryEvents, leases, func(*reactions.Lease) []string { return nil }, 10); err != nil {
		return err
	}
	done := l.Watermark
	for i, e := range l.Events {
		d := &reactions.Delivery{Event: e, Lease: l, Attempt: 1}
		if failed := s.after(ctx, s.handlers["Mail"], d); failed != nil {
			if !fault.IsNonRetryable(failed) { // an error of the database
				return failed
			}
			return reactions.Block(ctx, engine.Of(hf), l, done, e.Version, failed.Error(), 1, true)
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
		done = e.Version
	}
	return nil
}

// checkRepairedOnce checks the end state: each mail was sent at least once and applied once, by its
// key; a skipped mail was not applied; nothing is left after the repair.
func (m *mailboxes) checkRepairedOnce(how string) func(context.Context, *holdfast.Engine) error {
	return func(ctx context.Context, hf *holdfast.Engine) error {
		// A janitor covers all workspaces, so the next case would see the remains of this one.
		if err := passTime(ctx, hf); err != nil {
			return err
		}
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
		switch how {
		case "skip":
			applied, names = operations[1:], []string{"blocked", "skipped"}
		case "reset":
			applied, names = append(operations, operations[0]+"/1", operations[1]+"/1"), []string{"reset"}
		}
		if !slices.Equal(mails, applied) {
			return fmt.Errorf("applied mails %q, want %q", mails, applied)
		}
		for _, key := range append(operations, applied...) {
			if m.called(key) == 0 {
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
		m := &mailboxes{calls: make(map[string]int)}
		holdfasttest.Crash(t, holdfasttest.Scenario{Name: how, Parts: m.repairParts, Do: repairScenario(how), Check: m.checkRepairedOnce(how), Pairs: true,
			Recover: passTime})
	}
}
