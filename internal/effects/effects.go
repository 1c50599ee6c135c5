// Package effects is the journal of an operation's external side effects.
//
// An effect is begun before it is tried: the intent is committed under the lease of its operation, and only
// then is the call made. After a crash the next attempt therefore knows that the effect may have happened. The
// effect is closed when its outcome is known: its result, or that it did not happen. The key of an effect is
// the same for every attempt of one operation, and differs from those of all other operations.
//
// An intent without a result is unknown, and its outcome is never guessed: it is retried only if the remote
// side is declared to honor the key, probed if it can be probed, and otherwise the operation waits for manual
// resolution.
package effects

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// State is the known state of an effect.
type State string

// The states.
const (
	New     State = "new" // begun by this attempt
	Begun   State = "begun"
	Done    State = "done"
	NotDone State = "notDone"
)

// Policy decides how an effect without a result is resolved.
type Policy string

// The policies.
const (
	Hold  Policy = "hold"  // a person resolves it
	Retry Policy = "retry" // the remote side honors the key: it is retried
	Probe Policy = "probe" // the remote side is probed
)

// Entry is an effect in the journal.
type Entry struct {
	Name    string
	Ordinal int
	Epoch   int64
	State   State
	Policy  Policy
	Result  []byte
	BegunAt time.Time
}

// Body is the name of the effect that stands for an entire opaque handler.
const Body = "$body"

// Key returns the key of an effect: the same for every attempt.
func Key(operation, name string, ordinal int) string {
	return fmt.Sprintf("%s/%s/%d", operation, name, ordinal)
}

type beginArgs struct {
	entities.Ticket
	name    string            `arg:"name"`
	ordinal int               `arg:"ordinal"`
	policy  Policy            `arg:"policy"`
	Results []entities.Result `arg:"results"`
}

type endArgs struct {
	entities.Ticket
	name    string `arg:"name"`
	ordinal int    `arg:"ordinal"`
	state   State  `arg:"state"`
	result  []byte `arg:"result,null"`
	by      By     `arg:"person"` // the source of the outcome; the SQL argument is named person
}

type result struct {
	held bool
	Entry
}

func row(t entities.Ticket) []string { return []string{"entity/" + t.Lifecycle + "/" + t.ID} }

var (
	beginVerb = store.VerbOf[beginArgs](store.Decl{Name: "effects.begin", Idempotent: true},
		func(a beginArgs) []string { return row(a.Ticket) },
		store.Outcome(func(r *result) (*bool, []any) {
			return &r.held, []any{(*string)(&r.State), &r.Epoch, (*string)(&r.Policy), &r.Result}
		}))
	endVerb = store.VerbOf[endArgs](store.Decl{Name: "effects.end", Idempotent: true},
		func(a endArgs) []string { return row(a.Ticket) },
		store.Outcome(func(r *result) (*bool, []any) { return &r.held, []any{(*string)(&r.State), &r.Result} }))
	listVerb = store.NewVerb(store.Decl{Name: "effects.list", Lane: store.Read}, nil, store.TextArg("operation"),
		store.Each(func(e *Entry) []any {
			return []any{&e.Name, &e.Ordinal, &e.Epoch, (*string)(&e.State), (*string)(&e.Policy), &e.Result, &e.BegunAt}
		}))
)

// Book records the effects of one operation for its holder. If the lease is lost, the errors are
// [fault.LeaseLost].
type Book interface {
	// Operation is the same for every attempt.
	Operation() string
	// Begin records that an effect is about to be tried, and returns its state. In the same statement it records
	// results, those of earlier effects that are not in the journal yet.
	Begin(ctx context.Context, name string, ordinal int, p Policy, results []entities.Result) (Entry, error)
	// End records the outcome of an effect, and returns its state and its result: the first end counts. For an
	// effect that an earlier attempt began, NotDone counts only if the remote side was probed about the earlier
	// call; otherwise the effect stays begun.
	End(ctx context.Context, name string, ordinal int, s State, result []byte, probed bool) (State, []byte, error)
}

// OfClaim returns the book of an operation on an entity.
func OfClaim(d store.Doer, at store.Partition, t entities.Ticket) Book { return claimBook{d, at, t} }

type claimBook struct {
	d  store.Doer
	at store.Partition
	t  entities.Ticket
}

func (b claimBook) Operation() string { return b.t.Operation }

func (b claimBook) Begin(ctx context.Context, name string, ordinal int, p Policy, results []entities.Result) (Entry, error) {
	return Begin(ctx, b.d, b.at, b.t, name, ordinal, p, results)
}

func (b claimBook) End(ctx context.Context, name string, ordinal int, s State, result []byte, probed bool) (State, []byte, error) {
	return EndWith(ctx, b.d, b.at, b.t, name, ordinal, s, result, probed)
}

// Begin records that an effect is about to be tried, and returns its state. In the same statement it records results,
// those of earlier effects that are not in the journal yet. If the lease is lost, the error is [fault.LeaseLost].
func Begin(ctx context.Context, d store.Doer, at store.Partition, t entities.Ticket, name string, ordinal int, p Policy, results []entities.Result) (Entry, error) {
	r, err := beginVerb.DoAt(ctx, d, at, beginArgs{t, name, ordinal, p, results})
	if err == nil && !r.held {
		err = entities.Lost(ctx, d, at, t, "beginEffect", nil)
	}
	r.Name, r.Ordinal = name, ordinal
	// "" comes with an error. Begun under this epoch: this attempt called Begin before, and the response was lost.
	if r.State == "" || (r.State == Begun && r.Epoch == t.Epoch) {
		r.State = New
	}
	return r.Entry, err
}

// End records the outcome of an effect, and returns its state: the first end counts. If the lease is lost, the
// error is [fault.LeaseLost].
func End(ctx context.Context, d store.Doer, at store.Partition, t entities.Ticket, name string, ordinal int, s State, result []byte, probed bool) (State, error) {
	state, _, err := EndWith(ctx, d, at, t, name, ordinal, s, result, probed)
	return state, err
}

// EndWith is [End] that also returns the stored result.
func EndWith(ctx context.Context, d store.Doer, at store.Partition, t entities.Ticket, name string, ordinal int, s State, result []byte, probed bool) (State, []byte, error) {
	return end(ctx, d, at, endArgs{t, name, ordinal, s, result, HolderSays(probed)})
}

// By is the source of an outcome.
type By int64

// The sources of an outcome.
const (
	ByHolder By = iota // the holder, for this call only
	ByPerson           // a person, by manual resolution
	ByAsking           // a holder that probed the remote side, for earlier calls too
)

// HolderSays returns the source of an outcome that a holder reports.
func HolderSays(probed bool) By {
	if probed {
		return ByAsking
	}
	return ByHolder
}

// Resolution is an operator's knowledge of an effect: whether it happened, and its result.
type Resolution struct {
	Name    string
	Ordinal int
	State   State // Done or NotDone
	Result  json.RawMessage
}

// StateOf returns the state of an effect that happened, or of one that did not.
func StateOf(happened bool) State {
	if happened {
		return Done
	}
	return NotDone
}

// Check refuses a resolution that does not state an outcome: the zero value must not mean that an effect did not happen.
func (r Resolution) Check() error {
	switch {
	case r.State != Done && r.State != NotDone:
		return fault.New(fault.Validation, "the resolution of effect %q does not state whether the effect happened", r.Name).With("pointer", "/happened")
	case r.State == NotDone && len(r.Result) > 0:
		return fault.New(fault.Validation, "effect %q did not happen, so it has no result: omit the result", r.Name).With("pointer", "/result")
	case len(r.Result) > 0:
		return strictjson.Check(r.Result)
	}
	return nil
}

// Unresolved returns the error for an operation that cannot be released, because effects may have happened.
func Unresolved(operation string, names []string) error {
	return fault.New(fault.EffectUnresolved, "operation %s cannot be released, because its effects %s may have happened: resolve them, or wait for the holder", operation, strings.Join(names, ", ")).
		With("operation", operation).With("effects", names)
}

// Known returns resolutions as the audit shows them: without results, which may hold users' data.
func Known(all []Resolution) []map[string]any {
	known := make([]map[string]any, len(all))
	for i, r := range all {
		known[i] = map[string]any{"name": r.Name, "ordinal": r.Ordinal, "happened": r.State == Done}
	}
	return known
}

// Agree refuses a resolution that contradicts a known result.
func Agree(journal []Entry, known []Resolution) error {
	for _, k := range known {
		for _, x := range journal {
			if x.Name == k.Name && x.Ordinal == k.Ordinal && x.State == Done && !strictjson.Equal(orNull(x.Result), orNull(k.Result)) {
				return fault.New(fault.Conflict, "effect %q with ordinal %d already has a different result: omit the effect, or specify the recorded result", k.Name, k.Ordinal)
			}
		}
	}
	return nil
}

// Resolve records the outcome that a person reports for an effect of an uncertain operation.
func Resolve(ctx context.Context, d store.Doer, at store.Partition, t entities.Ticket, r Resolution) (State, error) {
	if err := r.Check(); err != nil {
		return "", err
	}
	state, _, err := end(ctx, d, at, endArgs{t, r.Name, r.Ordinal, r.State, r.Result, ByPerson})
	switch {
	case fault.CodeOf(err) == fault.LeaseLost:
		return "", fault.New(fault.Conflict, "operation %s is not uncertain: only an uncertain operation can be resolved", t.Operation)
	case err == nil && state == "":
		return "", fault.New(fault.NotFound, "operation %s has no effect %q with ordinal %d", t.Operation, r.Name, r.Ordinal)
	case err == nil && state != r.State:
		return state, fault.New(fault.Conflict, "effect %q with ordinal %d is already resolved as %s", r.Name, r.Ordinal, state)
	}
	return state, err
}

func end(ctx context.Context, d store.Doer, at store.Partition, a endArgs) (State, []byte, error) {
	r, err := endVerb.DoAt(ctx, d, at, a)
	if err == nil && !r.held {
		err = lease.Lost(a.Lifecycle+" "+a.ID, a.Epoch)
		if a.by != ByPerson {
			err = entities.Lost(ctx, d, at, a.Ticket, "endEffect", nil)
		}
	}
	return r.State, r.Result, err
}

// List returns the effects of an operation.
func List(ctx context.Context, d store.Doer, at store.Partition, operation string) ([]Entry, error) {
	return listVerb.DoAt(ctx, d, at, operation)
}

// BegunBefore returns the error of an effect that an earlier attempt began and whose outcome is unknown.
func BegunBefore(name string, ordinal int) *fault.Error {
	return fault.New(fault.Conflict, "effect %q with ordinal %d was begun by an earlier attempt, and its outcome is unknown: the operation waits for manual resolution", name, ordinal)
}

// CheckName refuses invalid effect names.
func CheckName(name string) error {
	if len(name) > 0 && name[0] == '$' {
		return fault.New(fault.Validation, "an effect name must not begin with $, got %q", name)
	}
	return strictjson.Text("effect", name, events.MaxName)
}

// CheckCall refuses an invalid name or ordinal of a call.
func CheckCall(name string, ordinal int) error {
	if ordinal < 0 || ordinal > math.MaxInt32 {
		return fault.New(fault.Validation, "an effect's ordinal must be between 0 and %d, got %d", math.MaxInt32, ordinal).With("pointer", "/ordinal")
	}
	return CheckName(name)
}

// resultOf encodes a result for the journal.
func resultOf(v any) (json.RawMessage, error) {
	data, err := json.Marshal(v)
	if err == nil {
		err = strictjson.Check(data)
	}
	if err != nil {
		return nil, fault.New(fault.Validation, "the effect's result cannot be stored as JSON: %v", err)
	}
	return data, nil
}
