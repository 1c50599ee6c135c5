// Package effects is the journal of what an operation does to the world outside.
//
// An effect is begun before it is tried: the intent is committed, under the hold
// of its operation, and only then the call is made. So whoever comes after a crash
// knows that it may have happened. What is known of it afterwards, its result or
// that it did not happen, closes it. The key of an effect is the same for every
// attempt of one operation, and never that of another.
//
// An intent without a result is unknown, and never guessed: it is tried again only
// where the other side is said to honour the key, asked about where it can be
// asked, and otherwise the operation waits for a person.
package effects

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// State is what is known of an effect.
type State string

// The states.
const (
	New     State = "new" // begun just now, by this attempt
	Begun   State = "begun"
	Done    State = "done"
	NotDone State = "notDone"
)

// Policy is what is done about an effect that was begun and has no result.
type Policy string

// The policies.
const (
	Hold  Policy = "hold"  // a person says what happened
	Retry Policy = "retry" // the other side honours the key: it is tried again
	Probe Policy = "probe" // the other side is asked
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

// Body is the name of the effect that an opaque body is as a whole.
const Body = "$body"

// Key is the key of an effect: the same for every attempt.
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
	by      By     `arg:"person"`
}

type answer struct {
	held bool
	Entry
}

func row(t entities.Ticket) []string { return []string{"entity/" + t.Lifecycle + "/" + t.ID} }

var (
	beginVerb = store.VerbOf[beginArgs](store.Decl{Name: "effects.begin", Idempotent: true},
		func(a beginArgs) []string { return row(a.Ticket) },
		store.Outcome(func(r *answer) (*bool, []any) {
			return &r.held, []any{(*string)(&r.State), &r.Epoch, (*string)(&r.Policy), &r.Result}
		}))
	endVerb = store.VerbOf[endArgs](store.Decl{Name: "effects.end", Idempotent: true},
		func(a endArgs) []string { return row(a.Ticket) },
		store.Outcome(func(r *answer) (*bool, []any) { return &r.held, []any{(*string)(&r.State), &r.Result} }))
	listVerb = store.NewVerb(store.Decl{Name: "effects.list", Lane: store.Read}, nil, store.TextArg("operation"),
		store.Each(func(e *Entry) []any {
			return []any{&e.Name, &e.Ordinal, &e.Epoch, (*string)(&e.State), (*string)(&e.Policy), &e.Result, &e.BegunAt}
		}))
)

// Book is where the effects of one operation are noted, by who holds it. Where the hold is
// lost, the errors are [fault.LeaseLost].
type Book interface {
	// Operation is the same for every attempt.
	Operation() string
	// Begin notes that an effect is about to be tried, with the results of earlier ones,
	// and returns how it stands.
	Begin(ctx context.Context, name string, ordinal int, p Policy, results []entities.Result) (Entry, error)
	// End notes what became of an effect, and returns how it stands then, with its result:
	// the first end counts.
	// That it did not happen counts for an effect that an earlier attempt began only where the
	// other side was asked about that; otherwise it stays begun.
	End(ctx context.Context, name string, ordinal int, s State, result []byte, asked bool) (State, []byte, error)
}

// OfClaim is the book of an operation on an entity.
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

func (b claimBook) End(ctx context.Context, name string, ordinal int, s State, result []byte, asked bool) (State, []byte, error) {
	return EndWith(ctx, b.d, b.at, b.t, name, ordinal, s, result, asked)
}

// Begin notes that an effect is about to be tried, with the results of earlier
// ones, and returns how it stands. Where the hold is lost, the error is
// [fault.LeaseLost].
func Begin(ctx context.Context, d store.Doer, at store.Partition, t entities.Ticket, name string, ordinal int, p Policy, results []entities.Result) (Entry, error) {
	r, err := beginVerb.DoAt(ctx, d, at, beginArgs{t, name, ordinal, p, results})
	if err == nil && !r.held {
		err = lost(t)
	}
	r.Name, r.Ordinal = name, ordinal
	if r.State == "" || (r.State == Begun && r.Epoch == t.Epoch) { // the answer to it was lost: it is this attempt's own
		r.State = New
	}
	return r.Entry, err
}

// End notes what became of an effect, and returns how it stands then: the first
// end counts. Where the hold is lost, the error is [fault.LeaseLost].
func End(ctx context.Context, d store.Doer, at store.Partition, t entities.Ticket, name string, ordinal int, s State, result []byte, asked bool) (State, error) {
	state, _, err := EndWith(ctx, d, at, t, name, ordinal, s, result, asked)
	return state, err
}

// EndWith is [End], and returns the result, too, that is kept.
func EndWith(ctx context.Context, d store.Doer, at store.Partition, t entities.Ticket, name string, ordinal int, s State, result []byte, asked bool) (State, []byte, error) {
	return end(ctx, d, at, endArgs{t, name, ordinal, s, result, HolderSays(asked)})
}

// By says whose word on an effect it is.
type By int64

// Whose word it is.
const (
	ByHolder By = iota // of this call alone
	ByPerson
	ByAsking // of a holder who asked the other side, and so of earlier calls, too
)

// HolderSays is the word of a holder.
func HolderSays(asked bool) By {
	if asked {
		return ByAsking
	}
	return ByHolder
}

// Resolve notes what a person knows of an effect whose operation is uncertain.
func Resolve(ctx context.Context, d store.Doer, at store.Partition, t entities.Ticket, name string, ordinal int, s State, result []byte) (State, error) {
	if result != nil {
		if err := strictjson.Check(result); err != nil {
			return "", err
		}
	}
	state, _, err := end(ctx, d, at, endArgs{t, name, ordinal, s, result, ByPerson})
	switch {
	case fault.CodeOf(err) == fault.LeaseLost:
		return "", fault.New(fault.Conflict, "the operation %s is not uncertain", t.Operation)
	case err == nil && state == "":
		return "", fault.New(fault.NotFound, "the operation %s has no effect %q, ordinal %d", t.Operation, name, ordinal)
	case err == nil && state != s:
		return state, fault.New(fault.Conflict, "of the effect %q, ordinal %d, it is known already that it is %s", name, ordinal, state)
	}
	return state, err
}

func end(ctx context.Context, d store.Doer, at store.Partition, a endArgs) (State, []byte, error) {
	r, err := endVerb.DoAt(ctx, d, at, a)
	if err == nil && !r.held {
		err = lost(a.Ticket)
	}
	return r.State, r.Result, err
}

// List returns the effects of an operation.
func List(ctx context.Context, d store.Doer, at store.Partition, operation string) ([]Entry, error) {
	return listVerb.DoAt(ctx, d, at, operation)
}

func lost(t entities.Ticket) error { return lease.Lost("the "+t.Lifecycle+" "+t.ID, t.Epoch) }

// BegunBefore is the error of an effect that an earlier attempt began, and whose outcome is unknown.
func BegunBefore(name string, ordinal int) *fault.Error {
	return fault.New(fault.Conflict, "the effect %q, ordinal %d, was begun by an earlier attempt, and nothing is known of it: the operation waits for a person", name, ordinal)
}

// CheckName refuses names that effects cannot have.
func CheckName(name string) error {
	if len(name) > 0 && name[0] == '$' {
		return fault.New(fault.Validation, "an effect's name does not begin with $: %q", name)
	}
	return strictjson.Text("effect", name, events.MaxName)
}

// CheckCall refuses what cannot be the name and ordinal of a call.
func CheckCall(name string, ordinal int) error {
	if ordinal < 0 || ordinal > math.MaxInt32 {
		return fault.New(fault.Validation, "the ordinal of an effect is 0 to %d", math.MaxInt32).With("pointer", "/ordinal")
	}
	return CheckName(name)
}

// resultOf makes of a result what the journal keeps.
func resultOf(v any) (json.RawMessage, error) {
	data, err := json.Marshal(v)
	if err == nil {
		err = strictjson.Check(data)
	}
	if err != nil {
		return nil, fault.New(fault.Validation, "the result of an effect cannot be kept as JSON: %v", err)
	}
	return data, nil
}
