package lifecycleengine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/lifecycleconfig"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Act is a running step, as passed to its body; lifecycle.Act documents it.
type Act struct {
	Entity    Entity
	Step      string
	Requester string
	Operation string
	Attempt   int
	Input     json.RawMessage

	w       *work
	kind    string // action, validation or afterEffect
	misused error  // a call that the kind does not permit and that cannot return an error
}

// work is an [Act] with the state that the attempt needs.
type work struct {
	entity    entities.Entity
	step      string
	requester string
	operation string
	attempt   int
	input     []byte
	data      []byte                      // the data that the body sets, or nil
	own       bool                        // the entity is a row of a user table
	checking  bool                        // the validation has begun and has not passed
	started   bool                        // the action has begun
	held      func(context.Context) error // fails if the lease of the claim may have expired; nil without a claim
	doubtful  bool                        // an earlier attempt may have acted
	cleared   bool                        // a probe reported that no earlier attempt acted
	stage     string                      // the stage that the operation was last queued for, or ""
	output    []byte
	commits   []func(context.Context, *store.Tx) error
}

// commit is a write of a body, in the transaction that settles the step.
type commit = func(context.Context, *store.Tx) error

// Commit adds a write to the transaction that settles the step.
func (a *Act) Commit(f func(context.Context, *store.Tx) error) {
	if a.kind == "validation" { // it also runs for a manual claim, and does not run again when an action is resumed
		a.misused = fault.New(fault.Validation, "a validation cannot write: call WriteTx in the action")
		return
	}
	a.w.commits = append(a.w.commits, f)
}

// Set replaces the entity's data when the step is settled.
func (a *Act) Set(data json.RawMessage) error {
	if a.kind != "action" {
		return fault.New(fault.Validation, "only an action can set the data of entity %q: call Set in the action of the step", a.Entity.ID)
	}
	if a.w.own {
		return fault.New(fault.Validation, "entity %q is a row in the program's own table: change the row in WriteTx", a.Entity.ID)
	}
	a.w.data = data
	return nil
}

// Handle adds a handler of a kind: "action", "validation" or "afterEffect". An empty or used name is an error of Start.
func (l *Lifecycle) Handle(kind, name string, f func(context.Context, *Act) error, d Declared) {
	l.add(kind, name, func(ctx context.Context, w *work) error {
		a := &Act{Entity: Public(w.entity), Step: w.step, Requester: w.requester, Operation: w.operation, Attempt: w.attempt, Input: w.input, w: w, kind: kind}
		err := f(ctx, a)
		if err == nil && a.misused != nil {
			err = fault.NonRetryable(a.misused)
		}
		return err
	}, d)
}

// bodies runs the validation and the action of a step.
func (c *Lifecycle) bodies(ctx context.Context, step *lifecycleconfig.Step, w *work) error {
	if h := c.handler(step.Validation, w.requester); h != nil && w.stage != stageAction && !w.doubtful { // a step that may have acted was valid
		if h.queue != "" {
			return &handOn{stageValidation, h.queue}
		}
		w.checking = true
		if err := h.call(ctx, w); err != nil {
			return err
		}
		w.checking = false
	}
	if h := c.handler(step.Action, w.requester); h != nil {
		if h.queue != "" {
			return &handOn{stageAction, h.queue}
		}
		if w.held != nil {
			if err := w.held(ctx); err != nil {
				return err
			}
		}
		w.started = true
		return h.call(ctx, w)
	}
	return nil
}

// handOn is the error that bodies returns if a worker runs the next stage.
type handOn struct{ stage, queue string }

func (h *handOn) Error() string { return "waiting for a worker: " + h.stage }

// call runs a handler within its timeout.
func (h *handler) call(ctx context.Context, w *work) error {
	if h.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, h.Timeout, errTimeout)
		defer cancel()
	}
	if h.body == nil {
		return fault.New(fault.Validation, "handler %q is served by workers and cannot be called in this process", h.name)
	}
	err := h.body(ctx, w)
	if err != nil && errors.Is(context.Cause(ctx), errTimeout) {
		return errors.Join(errTimeout, err)
	}
	return err
}

var errTimeout = errors.New("the handler exceeded its timeout")

// actionError returns the error that the caller of a step without a claim gets if a body fails. The entity is unchanged and
// free, as after a released claim, so the outcome is the same.
func actionError(err error) error {
	var f *fault.Error
	if errors.As(err, &f) && (f.Code == fault.ActionInvalid || f.Code == fault.ActionFailed) {
		return err
	}
	return fault.New(fault.ActionFailed, "%s", err).Wrap(err).With("outcome", "released")
}

// panicked is the error for a body that panicked.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// catchPanic runs f and returns a panic as an error.
func catchPanic(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &panicked{p, debug.Stack()}
		}
	}()
	return f()
}
