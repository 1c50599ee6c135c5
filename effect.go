package holdfast

import (
	"context"
	"encoding/json"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Effect does something to the world outside, such as charging a card, so that it
// is never done twice by guess. The intent is committed before the call. What call
// returns is kept, as JSON, and given to every later attempt of the same operation
// in place of another call.
//
// key names the effect to the other side: it is the same for every attempt of one
// operation, and new for the next. An error from call leaves the outcome unknown,
// unless it is [NotDone]. What is done on the next attempt about an effect whose
// outcome is unknown is said by an option: without one, the operation is parked
// until a person resolves it.
//
// Effects belong into the body of a claimed action, with the context that it was
// given. An operation calls them in the same order on each attempt, as far as they
// have the same name: one that did not happen, and was followed by another of its
// name, does not happen again on a later attempt, but returns an error with the same
// text. A call that is repeated while its outcome is unknown is the same effect.
func Effect[R any](ctx context.Context, name string, call func(ctx context.Context, key string) (R, error), o ...EffectOption) (R, error) {
	var r R
	j := effects.From(ctx)
	if j == nil {
		return r, effects.Missing(name)
	}
	c := effects.Call{Name: name, Policy: effects.Hold,
		Try: func(ctx context.Context, key string) (any, error) { return call(ctx, key) },
		Result: func(data []byte) error {
			if len(data) == 0 {
				return nil
			}
			return json.Unmarshal(data, &r)
		}}
	for _, option := range o {
		option.set(&c)
	}
	err := j.Do(ctx, c)
	return r, err
}

// EffectOption changes how an effect is done.
type EffectOption struct{ set func(*effects.Call) }

// OnUnknownRetry has an effect of unknown outcome tried again, with the same key:
// for another side that honours it.
func OnUnknownRetry() EffectOption {
	return EffectOption{func(c *effects.Call) { c.Policy = effects.Retry }}
}

// OnUnknownProbe has the other side asked whether an effect of unknown outcome
// happened, and with which result. If it did not, it is tried again.
func OnUnknownProbe[R any](ask func(ctx context.Context, key string) (r R, happened bool, err error)) EffectOption {
	return EffectOption{func(c *effects.Call) {
		c.Policy = effects.Probe
		c.Probe = func(ctx context.Context, key string) (any, bool, error) { return ask(ctx, key) }
	}}
}

// RecordNow has the result written at once, rather than with the next write of the
// operation: one round trip more, and less that a crash can leave unknown.
func RecordNow() EffectOption { return EffectOption{func(c *effects.Call) { c.Now = true }} }

// NotDone says of an effect's error that the effect did not happen, and is known
// not to have: a card that was declined.
func NotDone(err error) error { return effects.NotHappened(err) }

// Invalid is returned by a validation or an action that refuses what it was asked.
func Invalid(reason string) error { return fault.New(fault.ActionInvalid, "%s", reason) }

// Contradiction is a call of an effect by a holder that had lost its lease, or lost it before it could
// record the outcome: the process was stopped for longer than the lease, for example. It changes no
// operation, and the operation may have gone on without it, so that the effect may have happened
// twice, or although a person said that it did not. It is listed until a person acknowledges it.
type Contradiction struct {
	ID        string
	Operation string
	Subject   string // what the operation is of
	Effect    string
	Ordinal   int
	Key       string          // under which the effect was called
	Epoch     int64           // of the late holder
	Happened  bool            // the call succeeded; otherwise its outcome is unknown
	Result    json.RawMessage // of a call that succeeded
	Node      string          // the node that recorded it
	At        time.Time
}

// Contradictions returns the contradictions in the context's workspace that nobody has acknowledged, of
// up to limit operations behind one ("" for the first), in the order of their operations.
func (e *Engine) Contradictions(ctx context.Context, after string, limit int) ([]Contradiction, error) {
	if limit <= 0 || limit > 1000 {
		limit = 100
	}
	return e.contradictions(ctx, "", after, limit)
}

// ContradictionsOf returns the contradictions of one operation that nobody has acknowledged.
func (e *Engine) ContradictionsOf(ctx context.Context, operation string) ([]Contradiction, error) {
	return e.contradictions(ctx, operation, "", 1)
}

func (e *Engine) contradictions(ctx context.Context, operation, after string, limit int) ([]Contradiction, error) {
	at, err := engine.Of(e).Partition(ctx, store.Read)
	if err != nil {
		return nil, err
	}
	found, err := effects.Contradictions(ctx, engine.Of(e), at, operation, after, limit)
	all := make([]Contradiction, len(found))
	for i, c := range found {
		all[i] = Contradiction{ID: c.ID, Operation: c.Operation, Subject: c.Subject, Effect: c.Name, Ordinal: c.Ordinal, Key: effects.Key(c.Operation, c.Name, c.Ordinal),
			Epoch: c.Epoch, Happened: c.State == effects.Done, Node: c.Node, At: c.At}
		if all[i].Happened {
			all[i].Result = c.Result
		}
	}
	return all, err
}

// Acknowledge records who has seen contradictions of an operation, by their ids. They are kept, but not
// listed any more. Acknowledging again changes nothing; an id that the operation does not have is
// [ErrNotFound].
func (e *Engine) Acknowledge(ctx context.Context, operation, by string, ids ...string) error {
	at, err := engine.Of(e).Partition(ctx, store.Write)
	if err != nil {
		return err
	}
	return effects.Acknowledge(ctx, engine.Of(e), at, operation, by, ids)
}
