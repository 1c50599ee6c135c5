package lifecycle

import (
	"context"
	"encoding/json"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/lifecycleengine"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Entity is a thing with a status. In a table of the user's own, Version is that of
// its version column, and Data its row.
type Entity[E any] struct {
	ID        string
	Status    string
	Version   int64
	Data      E
	CreatedAt time.Time
	UpdatedAt time.Time
	// Claimed is the operation that the entity is in, or nil.
	Claimed *Operation
}

// Operation is one asked-for piece of work on an entity. It survives crashes; each
// try is an attempt.
type Operation struct {
	ID        string
	Lifecycle string
	Entity    string
	Status    string // the claim status; of a serialized requester, where the step starts
	Step      string
	Requester string
	Phase     string // "held", "due", to be resumed, or "uncertain"
	Holder    string
	Epoch     int64
	Since     time.Time
	Until     time.Time // of the hold
	Failures  int
	Crashes   int
	Error     string
	Manual    bool // taken by hand: nobody resumes it
	// Handler is that of its action, as it was taken; "" for one that has none.
	Handler string
}

func operation(o *lifecycleengine.Operation) *Operation {
	if o == nil {
		return nil
	}
	p := Operation(o.OperationFacts)
	return &p
}

// typed is an entity with its data as an E.
func typed[E any](e lifecycleengine.Entity) (Entity[E], error) {
	p := Entity[E]{ID: e.ID, Status: e.Status, Version: e.Version, CreatedAt: e.CreatedAt, UpdatedAt: e.UpdatedAt, Claimed: operation(e.Claimed)}
	if len(e.Data) == 0 {
		return p, nil
	}
	if err := json.Unmarshal(e.Data, &p.Data); err != nil {
		return p, fault.New(fault.Internal, "the data of the %s %q is no %T: %s", e.Lifecycle, e.ID, p.Data, err)
	}
	return p, nil
}

func shown[E any](e lifecycleengine.Entity, err error) (Entity[E], error) {
	p, bad := typed[E](e)
	if err == nil {
		err = bad
	}
	return p, err
}

// encoded is an E as it is kept.
func encoded[E any](id string, data E) (json.RawMessage, error) {
	raw, err := json.Marshal(data)
	if err != nil {
		return nil, fault.New(fault.Validation, "the data of %q cannot be kept as JSON: %s", id, err)
	}
	return raw, nil
}

// Create makes an entity in the config's initial status. One that exists is
// [holdfast.ErrConflict], and stays as it is. Rows of a table of the user's own are
// made by the user.
func (l *Lifecycle[E]) Create(ctx context.Context, d holdfast.Doer, id string, data E) (Entity[E], error) {
	raw, err := encoded(id, data)
	if err != nil {
		return Entity[E]{}, err
	}
	return shown[E](l.inner.Create(ctx, store.DoerOf(d), id, raw))
}

// Get returns an entity, or [holdfast.ErrNotFound].
func (l *Lifecycle[E]) Get(ctx context.Context, e *holdfast.Engine, id string) (Entity[E], error) {
	return shown[E](l.inner.Get(ctx, engine.Of(e), id))
}

// List returns entities in the order of their ids, behind one of them: those in a
// status, or all.
func (l *Lifecycle[E]) List(ctx context.Context, e *holdfast.Engine, status, behind string, limit int) ([]Entity[E], error) {
	found, err := l.inner.List(ctx, engine.Of(e), status, behind, limit)
	all := make([]Entity[E], 0, len(found))
	for _, x := range found {
		p, bad := typed[E](x)
		if bad != nil {
			return nil, bad
		}
		all = append(all, p)
	}
	return all, err
}

// Event is an event of an entity's history.
type Event struct {
	Version int64
	Name    string
	Data    json.RawMessage
	Actor   string
	At      time.Time
}

// History returns what happened to an entity, from a version on.
func (l *Lifecycle[E]) History(ctx context.Context, d holdfast.Doer, id string, from int64, limit int) ([]Event, error) {
	all, err := l.inner.History(ctx, store.DoerOf(d), id, from, limit)
	out := make([]Event, len(all))
	for i, e := range all {
		out[i] = Event{e.Version, e.Name, e.Data, e.Actor, e.At}
	}
	return out, err
}

// Attempt is a try that was refused.
type Attempt struct {
	Step, Requester, Code string
	Detail                map[string]any
	At                    time.Time
}

// Attempts returns who was refused on an entity, the last first. It is a log by the
// way: what could not be noted is missing.
func (l *Lifecycle[E]) Attempts(ctx context.Context, e *holdfast.Engine, id string) ([]Attempt, error) {
	all, err := l.inner.Attempts(ctx, engine.Of(e), id)
	out := make([]Attempt, len(all))
	for i, a := range all {
		out[i] = Attempt{a.Step, a.Requester, a.Code, a.Detail, a.At}
	}
	return out, err
}
