package lifecycle

import (
	"context"
	"encoding/json"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/attempts"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/events"
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
	Deaths    int
	Error     string
	Manual    bool // taken by hand: nobody resumes it
	// Handler is that of its action, as it was taken; "" for one that has none, and for one that was taken by
	// an earlier program: see [HandlerOf].
	Handler string

	plan   *entities.Plan
	revert string
}

func operationOf(e entities.Entity) *Operation {
	c := e.Claim
	if c.Phase == entities.Free || c.Phase == "" {
		return nil
	}
	o := &Operation{ID: c.Operation, Lifecycle: e.Lifecycle, Entity: e.ID, Status: e.Status, Step: c.Step, Requester: c.Requester,
		Phase: string(c.Phase), Holder: c.Holder, Epoch: c.Epoch, Since: c.ClaimedAt, Failures: c.Failures, Deaths: c.Deaths,
		Error: c.Error, Manual: c.Manual, plan: c.Plan, revert: c.Revert}
	if c.Phase == entities.Held {
		o.Until = c.Until
	}
	if c.Plan != nil {
		o.Handler = c.Plan.Action
	}
	return o
}

// public is an entity as this package shows it.
func public[E any](e entities.Entity) (Entity[E], error) {
	p := Entity[E]{ID: e.ID, Status: e.Status, Version: e.Version, CreatedAt: e.CreatedAt, UpdatedAt: e.UpdatedAt, Claimed: operationOf(e)}
	if len(e.Data) == 0 {
		return p, nil
	}
	if err := json.Unmarshal(e.Data, &p.Data); err != nil {
		return p, fault.New(fault.Internal, "the data of the %s %q is no %T: %s", e.Lifecycle, e.ID, p.Data, err)
	}
	return p, nil
}

func shown[E any](e entities.Entity, err error) (Entity[E], error) {
	p, bad := public[E](e)
	if err == nil {
		err = bad
	}
	return p, err
}

// Create makes an entity in the config's initial status. One that exists is
// [holdfast.ErrConflict], and stays as it is. Rows of a table of the user's own are
// made by the user.
func (l *Lifecycle[E]) Create(ctx context.Context, d holdfast.Doer, id string, data E) (Entity[E], error) {
	if l.config.Table != nil {
		return Entity[E]{}, fault.New(fault.Validation, "the entities of %s are the rows of %s: insert one there", l.Name(), l.config.Table.Name)
	}
	raw, err := json.Marshal(data)
	if err != nil {
		return Entity[E]{}, fault.New(fault.Validation, "the data of %q cannot be kept as JSON: %s", id, err)
	}
	return shown[E](entities.Create(ctx, store.DoerOf(d), entities.CreateArgs{Lifecycle: l.Name(), ID: id, Status: l.config.InitialStatus, Data: raw}))
}

// Get returns an entity, or [holdfast.ErrNotFound].
func (l *Lifecycle[E]) Get(ctx context.Context, e *holdfast.Engine, id string) (Entity[E], error) {
	s, err := l.at(engine.Of(e))
	if err != nil {
		return Entity[E]{}, err
	}
	return shown[E](s.ground.get(ctx, id))
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
	all, err := events.Read(ctx, store.DoerOf(d), events.ReadArgs{Stream: entities.Stream(l.Name(), id), From: from, Limit: limit})
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
	boardOf(engine.Of(e)).log.Flush()
	all, err := attempts.List(ctx, engine.Of(e), l.Name(), id, 0)
	out := make([]Attempt, len(all))
	for i, a := range all {
		out[i] = Attempt{a.Step, a.Requester, a.Code, a.Detail, a.At}
	}
	return out, err
}
