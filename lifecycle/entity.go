package lifecycle

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/lifecycleengine"
	"github.com/holdfast-go/holdfast/internal/refusals"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Entity is an object with a status. For a user-owned table, Version is the value of its version column, and Data its
// row.
type Entity[E any] struct {
	ID        string
	Status    string
	Version   int64
	Data      E
	CreatedAt time.Time
	UpdatedAt time.Time
	// Claimed is the unfinished operation on the entity, or nil.
	Claimed *Operation
}

// Operation is one requested unit of work on an entity. It survives crashes; each execution of it is an attempt.
type Operation struct {
	ID        string
	Lifecycle string
	Entity    string
	Status    string // claim status; for a serialized requester, the status that the step starts from
	Step      string
	Requester string
	Phase     Phase
	Holder    string
	Epoch     int64
	Since     time.Time
	Until     time.Time // end of the lease
	Failures  int
	Crashes   int
	Error     string
	Manual    bool // true for a manual claim, which is not resumed
	// Handler is the operation's action handler at the time of the claim, or "" if it has none.
	Handler string
	// Effects has the effects in the journal. [ListOperations] and [GetOperation] set it.
	Effects []holdfast.EffectInfo
}

func operationOf(o *lifecycleengine.Operation) *Operation {
	if o == nil {
		return nil
	}
	p := publicOperation(o.OperationFacts)
	return &p
}

func publicOperation(o lifecycleengine.OperationFacts) Operation {
	return Operation{ID: o.ID, Lifecycle: o.Lifecycle, Entity: o.Entity, Status: o.Status, Step: o.Step, Requester: o.Requester, Phase: Phase(o.Phase), Holder: o.Holder,
		Epoch: o.Epoch, Since: o.Since, Until: o.Until, Failures: o.Failures, Crashes: o.Crashes, Error: o.Error, Manual: o.Manual, Handler: o.Handler}
}

// typed returns an entity with its data decoded into an E.
func typed[E any](e lifecycleengine.Entity) (Entity[E], error) {
	p := Entity[E]{ID: e.ID, Status: e.Status, Version: e.Version, CreatedAt: e.CreatedAt, UpdatedAt: e.UpdatedAt, Claimed: operationOf(e.Claimed)}
	if len(e.Data) == 0 {
		return p, nil
	}
	if err := json.Unmarshal(e.Data, &p.Data); err != nil {
		return p, fault.New(fault.Internal, "the data of %s %q is not a valid %T: %s", e.Lifecycle, e.ID, p.Data, err)
	}
	return p, nil
}

// shown returns the result of a call of the engine. It decodes the entity also beside an error.
func shown[E any](e lifecycleengine.Entity, err error) (Entity[E], error) {
	p, bad := typed[E](e)
	if err == nil {
		err = bad
	}
	return p, err
}

// encoded returns the stored form of an E.
func encoded[E any](id string, data E) (json.RawMessage, error) {
	raw, err := json.Marshal(data)
	if err != nil {
		return nil, fault.New(fault.Validation, "the data of entity %q cannot be encoded as JSON: %s", id, err)
	}
	return raw, nil
}

// Create creates an entity in the config's initial status. If the entity exists, the error is [holdfast.ErrConflict],
// and the entity is unchanged. For a user-owned table, insert the row with SQL instead: Create returns [holdfast.ErrValidation].
func (l *Lifecycle[E]) Create(ctx context.Context, d holdfast.Doer, id string, data E, o ...ActorOption) (Entity[E], error) {
	raw, err := encoded(id, data)
	if err != nil {
		return Entity[E]{}, err
	}
	var actor string
	for _, option := range o {
		actor = option.actor
	}
	return shown[E](l.inner.CreateAt(ctx, store.DoerOf(d), id, "", raw, actor))
}

// Get returns an entity, or [holdfast.ErrNotFound]. In a transaction, read the row of a user-owned table with SQL
// instead: Get returns [holdfast.ErrValidation].
func (l *Lifecycle[E]) Get(ctx context.Context, d holdfast.Doer, id string) (Entity[E], error) {
	return shown[E](l.inner.Get(ctx, store.DoerOf(d), id))
}

// GetAt returns an entity as it was at a version, without its claim. If the version is no longer retained or does not
// exist yet, it returns [holdfast.ErrNotFound]. The earlier data of a user-owned table, and of a config with data_history:
// false, is not recorded: GetAt returns [holdfast.ErrValidation].
func (l *Lifecycle[E]) GetAt(ctx context.Context, d holdfast.Doer, id string, version int64) (Entity[E], error) {
	return shown[E](l.inner.GetAt(ctx, store.DoerOf(d), id, version))
}

// Filter selects entities. The zero value selects all.
type Filter struct {
	Status string
	// Since and Until limit when entities were created, UpdatedSince and UpdatedUntil when they were last changed: from a
	// time, inclusive, until another, exclusive.
	Since, Until, UpdatedSince, UpdatedUntil time.Time
}

// List iterates over entities, ordered by id. It reads all of them, and applies the filter to them. List the rows of a
// user-owned table with SQL instead: List returns [holdfast.ErrValidation].
func (l *Lifecycle[E]) List(ctx context.Context, d holdfast.Doer, f Filter) iter.Seq2[Entity[E], error] {
	g := entities.Filter{Status: f.Status, Times: store.Times{Since: f.Since, Until: f.Until, UpdatedSince: f.UpdatedSince, UpdatedUntil: f.UpdatedUntil}}
	list := store.SeqFound(func(after lifecycleengine.Entity, limit int) ([]store.Found[lifecycleengine.Entity], error) {
		return l.inner.List(ctx, store.DoerOf(d), g, after.ID, limit)
	}, func(x lifecycleengine.Entity) lifecycleengine.Entity { return x })
	return func(yield func(Entity[E], error) bool) {
		for x, err := range list {
			if p, err := shown[E](x, err); !yield(p, err) || err != nil {
				return
			}
		}
	}
}

// Event is an event in the history of an entity.
type Event struct {
	Version int64
	Name    string
	Data    json.RawMessage
	// Correlation, Causation and Actor describe the origin of the event.
	Correlation, Causation, Actor string
	At                            time.Time
}

// ReadHistory iterates over the events of an entity, starting at version from. If the entity does not exist, the error
// is [holdfast.ErrNotFound].
func (l *Lifecycle[E]) ReadHistory(ctx context.Context, d holdfast.Doer, id string, from int64) iter.Seq2[Event, error] {
	return store.SeqIn(func() error {
		_, err := l.inner.Get(ctx, store.DoerOf(d), id)
		if fault.CodeOf(err) == fault.Validation { // a user-owned row is not read inside a transaction
			return nil
		}
		return err
	}, func(after events.Event, limit int) ([]events.Event, error) {
		start := from
		if after.Name != "" {
			start = after.Version + 1
		}
		return l.inner.History(ctx, store.DoerOf(d), id, start, limit)
	}, func(x events.Event) Event {
		return Event{x.Version, x.Name, x.Data, x.Correlation, x.Causation, x.Actor, x.At}
	})
}

// Refusal records a write to an entity that was refused because another one was in progress or came first.
type Refusal struct {
	// Step is the step that was fired, or what a holder tried after it had lost its lease: "settle", "renew", "beginEffect",
	// "endEffect" or "enqueue". A refused [Lifecycle.Create] is "create".
	Step      string
	Requester string
	Actor     string
	Node      string // the node that refused it
	Code      fault.Code
	Version   int64          // the entity's version when it was refused: the refusal comes after that event and before the next
	Operation string         // the operation in progress or, for a late holder, its own
	Epoch     int64          // the epoch of a late holder's lease
	StandsFor int64          // the number of refusals that this one stands for: more than 1 only above 100 refusals per second
	Detail    map[string]any // the fields of the error
	At        time.Time
}

// ListRefusals iterates over the refusals on an entity, the latest first. Refusals are recorded shortly after they
// happen, outside of transactions, and retained for a week. A node that crashes may lose the last ones. If the entity does
// not exist, the error is [holdfast.ErrNotFound].
func (l *Lifecycle[E]) ListRefusals(ctx context.Context, e *holdfast.Engine, id string) iter.Seq2[Refusal, error] {
	return store.SeqIn(func() error {
		_, err := l.inner.Get(ctx, engine.Of(e), id)
		return err
	}, func(after refusals.Refusal, limit int) ([]refusals.Refusal, error) {
		return l.inner.Refusals(ctx, engine.Of(e), id, after.Cursor(), limit)
	}, func(r refusals.Refusal) Refusal {
		return Refusal{r.Action, r.Requester, r.Actor, r.Node, fault.Code(r.Code), r.Version, r.Operation, r.Epoch, r.StandsFor, r.Detail, r.At}
	})
}
