// Package entities stores the entities that lifecycles govern, each with a status, a version and data. A status
// changes only by a transition that names the status it leaves, and every change writes an event to the
// entity's stream, whose head is the entity's row.
package entities

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/refusals"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// Entity is an object with a status. Its version is that of the last event on its stream.
type Entity struct {
	Lifecycle string
	ID        string
	Status    string
	Version   int64
	Data      []byte // a JSON object
	CreatedAt time.Time
	UpdatedAt time.Time
	// Claim is the current or last claim of the entity. Create and Transition do not return it.
	Claim Claim
}

// Stream returns the name of the stream that holds an entity's history.
func Stream(lifecycle, id string) string { return "$entity/" + lifecycle + "/" + id }

// CreateArgs describes a new entity.
type CreateArgs struct {
	Lifecycle string `arg:"lifecycle"`
	ID        string `arg:"entity"`
	Status    string `arg:"status"`
	Data      []byte `arg:"data"`
	Meta      events.Meta
}

// TransitionArgs moves an entity from one of the statuses From to To. If ExpectVersion is set, the entity must
// be at that version. Data replaces the entity's data unless it is nil. Event is the name of the event; Note, a
// JSON document, is added to it beside from and to.
type TransitionArgs struct {
	Lifecycle, ID string
	From          []string
	To            string
	ExpectVersion *int64
	Data          []byte
	Event         string
	Note          []byte
	After         string // the after-effect, if there is one
	Meta          events.Meta
}

// result is an entity after the command or, if the command was refused, as it was found. Version [events.None]
// means that it does not exist.
type result struct {
	applied bool
	entity  Entity
}

var (
	createVerb = store.VerbOf[CreateArgs](store.Decl{Name: "entities.create", Group: true, Events: store.HistoryEvents},
		func(a CreateArgs) []string { return []string{key(a.Lifecycle, a.ID)} }, scan).RecoverWith(recoveredCreate).
		Emits(func(a CreateArgs) store.Emission {
			return store.Emission{Stream: Stream(a.Lifecycle, a.ID), Names: []string{"created"}}
		}).GuardStatus(func(a CreateArgs) store.Move { return store.Move{Lifecycle: a.Lifecycle, To: []string{a.Status}} })
	transitionVerb = store.NewVerb(store.Decl{Name: "entities.transition", Group: true, Events: store.HistoryEvents},
		func(a TransitionArgs) []string { return []string{key(a.Lifecycle, a.ID)} }, bindTransition, scan).RecoverWith(recoveredTransition).
		Emits(func(a TransitionArgs) store.Emission {
			return store.Emission{Stream: Stream(a.Lifecycle, a.ID), Names: []string{a.Event, After(a.After)}}
		}).GuardStatus(func(a TransitionArgs) store.Move { return store.Move{Lifecycle: a.Lifecycle, To: []string{a.To}} })
	getVerb = store.NewVerb(store.Decl{Name: "entities.get", Lane: store.Read},
		nil, func(a [2]string, args *store.Args) { args.Text("lifecycle", a[0]); args.Text("entity", a[1]) },
		func(r *result, row store.Row) error { r.applied = row.Applied(); return scanPlanned(&r.entity, row) })
)

func key(lifecycle, id string) string { return "entity/" + lifecycle + "/" + id }

func bindTransition(a TransitionArgs, args *store.Args) {
	args.Text("lifecycle", a.Lifecycle)
	args.Text("entity", a.ID)
	one := "" // for the fast form
	if len(a.From) == 1 {
		one = a.From[0]
	}
	args.MaybeText("one", one)
	args.Text("froms", store.JSON(a.From))
	args.Text("target", a.To)
	args.MaybeInt("want", a.ExpectVersion)
	args.MaybeText("data", string(a.Data))
	args.Text("event", a.Event)
	args.MaybeText("note", string(a.Note))
	events.BindMeta(args, a.Meta)
}

func scan(r *result, row store.Row) error {
	r.applied = row.Applied()
	e := &r.entity
	return row.Scan(&e.Status, &e.Version, &e.Data, &e.CreatedAt, &e.UpdatedAt)
}

func recoveredCreate(a CreateArgs, m store.CommitProof) result {
	return result{true, Entity{Status: a.Status, Version: m.Version, Data: a.Data, CreatedAt: m.At, UpdatedAt: m.At}}
}

// recoveredTransition knows everything but the time of creation and data that the transition left unchanged.
func recoveredTransition(a TransitionArgs, m store.CommitProof) result {
	return result{true, Entity{Status: a.To, Version: m.Version, Data: a.Data, UpdatedAt: m.At}}
}

// Create creates an entity. If it exists, Create leaves it unchanged and returns [fault.Conflict].
func Create(ctx context.Context, d store.Doer, a CreateArgs) (Entity, error) {
	if a.Data == nil {
		a.Data = []byte("{}")
	}
	if err := cmp.Or(checkNames(a.Lifecycle, a.ID, a.Status), strictjson.Object(a.Data), events.CheckMeta(a.Meta)); err != nil {
		return Entity{}, err
	}
	r, err := createVerb.Do(ctx, d, a)
	e := named(r.entity, a.Lifecycle, a.ID)
	if err == nil && !r.applied {
		err = fault.New(fault.Conflict, "%s %q already exists with status %q at version %d: choose another id", a.Lifecycle, a.ID, e.Status, e.Version).
			With("status", e.Status).With("version", e.Version)
	}
	return e, refusals.Note(ctx, d, refusals.Try{Stream: Stream(a.Lifecycle, a.ID), Action: "create", Actor: a.Meta.Actor}, err)
}

// Get returns an entity, or [fault.NotFound].
func Get(ctx context.Context, d store.Doer, lifecycle, id string) (Entity, error) {
	if err := checkNames(lifecycle, id, "any"); err != nil {
		return Entity{}, err
	}
	r, err := getVerb.Do(ctx, d, [2]string{lifecycle, id})
	if err == nil && !r.applied {
		err = missing(lifecycle, id)
	}
	return named(r.entity, lifecycle, id), err
}

// Transition moves an entity and returns it. It returns [fault.InvalidTransition] if the entity is in none of
// the statuses named, [fault.Concurrency] if it is at another version, and [fault.ClaimFailed] if it is
// claimed. In these cases nothing is written, and the entity is returned as it was found.
func Transition(ctx context.Context, d store.Doer, a TransitionArgs) (Entity, error) {
	if err := checkTransition(a); err != nil {
		return Entity{}, err
	}
	r, err := transitionVerb.Do(ctx, d, a)
	e := named(r.entity, a.Lifecycle, a.ID)
	switch {
	case err != nil:
		return e, err
	case !r.applied:
		return e, refusal(a, e)
	case e.CreatedAt.IsZero():
		return completed(ctx, d, e), nil
	}
	return e, nil
}

// completed adds what the event does not contain: data that the transition left unchanged. If another
// transition has replaced the data since, the result has the newer data. If the entity cannot be read, the
// transition is applied nonetheless.
func completed(ctx context.Context, d store.Doer, e Entity) Entity {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), store.Completing)
	defer cancel()
	now, err := Get(ctx, d, e.Lifecycle, e.ID)
	if err != nil {
		return e
	}
	e.CreatedAt = now.CreatedAt
	if e.Data == nil {
		e.Data = now.Data
	}
	return e
}

func refusal(a TransitionArgs, e Entity) error {
	if e.Version == events.None {
		return missing(a.Lifecycle, a.ID)
	}
	switch offered := slices.Contains(a.From, e.Status); {
	case offered && a.ExpectVersion != nil && *a.ExpectVersion != e.Version:
		return events.Moved(a.Lifecycle+" "+a.ID, *a.ExpectVersion, e.Version)
	case offered: // a claim is the only remaining reason
		return fault.New(fault.ClaimFailed, "another operation is already in progress on %s %q: try again later", a.Lifecycle, a.ID).With("status", e.Status)
	}
	return fault.New(fault.InvalidTransition, "%s %q has status %q, but this transition requires %s", a.Lifecycle, a.ID, e.Status, strings.Join(a.From, " or ")).
		With("status", e.Status).With("version", e.Version)
}

func missing(lifecycle, id string) *fault.Error {
	return fault.New(fault.NotFound, "%s %q does not exist", lifecycle, id)
}

func named(e Entity, lifecycle, id string) Entity {
	e.Lifecycle, e.ID = lifecycle, id
	return e
}
