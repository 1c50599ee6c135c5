package holdfast

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Effect performs an external side effect, such as charging a card, so that it is never repeated on a guess. It commits
// the intent before it calls call, and stores the result of call as JSON. Later attempts of the same operation get the
// stored result, and call is not called again.
//
// key identifies the effect to the remote system: it is the same for every attempt of one operation, and differs
// between operations. An error from call leaves the outcome unknown, unless it is [NotDone]. The options determine how
// the next attempt resolves an effect whose outcome is unknown. Without an option, the operation is parked until a
// person resolves it.
//
// Call Effect only in the body of a claimed lifecycle action or of a run task, with the context that was passed to the
// body. Elsewhere it returns [ErrValidation]. Effects with the same name must be called in the same order on every
// attempt. If an effect did not happen and another effect with the same name followed it, later attempts do not try
// the first effect again: Effect returns an error with the same text as before. A call that is repeated while its
// outcome is unknown counts as the same effect.
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
		before := c.Policy
		if option.set(&c); before != effects.Hold && before != c.Policy {
			return r, fault.New(fault.Validation, "effect %q has both OnUnknownRetry and OnUnknownProbe: pass only one of them", name)
		}
	}
	err := j.Do(ctx, c)
	return r, err
}

// EffectOption is an option of [Effect].
type EffectOption struct{ set func(*effects.Call) }

// OnUnknownRetry retries an effect whose outcome is unknown, with the same key. Use it if the remote system treats
// the key as an idempotency key.
func OnUnknownRetry() EffectOption {
	return EffectOption{func(c *effects.Call) { c.Policy = effects.Retry }}
}

// OnUnknownProbe resolves an effect whose outcome is unknown by calling ask, which asks the remote system whether the
// effect happened and what its result was. If the effect did not happen, it is tried again.
func OnUnknownProbe[R any](ask func(ctx context.Context, key string) (r R, happened bool, err error)) EffectOption {
	return EffectOption{func(c *effects.Call) {
		c.Policy = effects.Probe
		c.Probe = func(ctx context.Context, key string) (any, bool, error) { return ask(ctx, key) }
	}}
}

// RecordNow writes the result of the effect immediately instead of with the next write of the operation. It costs one
// more round trip and shortens the time during which a crash leaves the outcome unknown.
func RecordNow() EffectOption { return EffectOption{func(c *effects.Call) { c.Now = true }} }

// EffectInfo is an effect of an operation or a step, as recorded in the journal.
type EffectInfo struct {
	Name    string
	Ordinal int // counts the effects of the operation that have the same name, from 0
	Key     string
	State   EffectState
	Policy  EffectPolicy
	Result  json.RawMessage
	Since   time.Time // when it was begun
}

// EffectState is the state of an effect.
type EffectState string

// The states of effects.
const (
	EffectBegun   EffectState = "begun" // its outcome is unknown
	EffectDone    EffectState = "done"
	EffectNotDone EffectState = "notDone"
)

// EffectPolicy determines what the next attempt of an operation does if the outcome of an effect is unknown.
type EffectPolicy string

// The policies of effects.
const (
	EffectHold  EffectPolicy = "hold"  // the operation waits for a [Resolution]
	EffectRetry EffectPolicy = "retry" // [OnUnknownRetry]
	EffectProbe EffectPolicy = "probe" // [OnUnknownProbe]
)

// Resolution is a person's report about an effect of an uncertain operation or step: whether it happened, and with
// which result. The name "$body" stands for the whole body of an opaque action or step.
type Resolution struct {
	Name    string
	Ordinal int
	State   EffectState     // EffectDone or EffectNotDone
	Result  json.RawMessage // only with EffectDone
}

// NotDone marks an error that an effect's call returns: the effect is known not to have happened, for example
// because the card was declined. NotDone(nil) returns an error too.
func NotDone(err error) error { return effects.NotHappened(err) }

// Invalid returns an error with which a validation or an action refuses a request: [ErrActionInvalid], with the
// reason as its message.
func Invalid(reason string) error { return fault.New(fault.ActionInvalid, "%s", reason) }

// Contradiction is an effect call by a holder that had lost its lease, or that lost it before it could record the
// outcome, for example because the process was suspended for longer than the lease. A contradiction does not change its
// operation. The operation may have continued without this holder, so the effect may have happened twice, or may have
// happened although a person reported that it did not. A contradiction is listed until a person acknowledges it.
type Contradiction struct {
	ID        string
	Operation string
	Subject   string // entity or run step of the operation
	Effect    string
	Ordinal   int
	Key       string          // key with which the effect was called
	Epoch     int64           // epoch of the late holder
	Unknown   bool            // true if the outcome of the call is unknown; otherwise the call succeeded with Result
	Result    json.RawMessage // nil if the outcome is unknown
	Node      string          // node that recorded it
	At        time.Time
}

// ContradictionFilter selects contradictions. The zero value selects all.
type ContradictionFilter struct {
	Operation string
}

// ListContradictions iterates over the unacknowledged contradictions in the context's workspace, ordered by operation.
func ListContradictions(ctx context.Context, d Doer, f ContradictionFilter) iter.Seq2[Contradiction, error] {
	return func(yield func(Contradiction, error) bool) {
		const page = 100 // operations
		for after := ""; ; {
			found, err := effects.Contradictions(ctx, store.DoerOf(d), f.Operation, after, page)
			if err != nil {
				yield(Contradiction{}, err)
				return
			}
			for _, c := range found {
				if !yield(contradiction(c), nil) {
					return
				}
				after = c.Operation
			}
			if len(found) == 0 || f.Operation != "" {
				return
			}
		}
	}
}

func contradiction(c effects.Contradiction) Contradiction {
	x := Contradiction{ID: c.ID, Operation: c.Operation, Subject: c.Subject, Effect: c.Name, Ordinal: c.Ordinal, Key: effects.Key(c.Operation, c.Name, c.Ordinal),
		Epoch: c.Epoch, Unknown: c.State != effects.Done, Node: c.Node, At: c.At}
	if !x.Unknown {
		x.Result = c.Result
	}
	return x
}

// ActorOption is the option [By] of [AcknowledgeContradictions].
type ActorOption struct{ actor string }

// By sets the actor to record.
func By(actor string) ActorOption { return ActorOption{actor} }

// AcknowledgeContradictions records that a person has seen the contradictions of an operation with the given ids. They
// stay stored but are no longer listed. Acknowledging again changes nothing. If the operation has no contradiction with
// one of the ids, the error is [ErrNotFound].
func AcknowledgeContradictions(ctx context.Context, d Doer, operation string, ids []string, o ...ActorOption) error {
	var by string
	for _, option := range o {
		by = option.actor
	}
	at, err := store.DoerOf(d).Partition(ctx, store.Write)
	if err != nil {
		return err
	}
	return effects.Acknowledge(ctx, store.DoerOf(d), at, operation, by, ids)
}
