package lifecycleengine

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/lifecycleconfig"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Entity is an object with a status; lifecycle.Entity documents it.
type Entity struct {
	Lifecycle string
	ID        string
	Status    string
	Version   int64
	Data      json.RawMessage
	CreatedAt time.Time
	UpdatedAt time.Time
	Claimed   *Operation
}

// Operation is one requested unit of work on an entity.
type Operation struct {
	OperationFacts
	plan   *entities.Plan
	revert string
}

// OperationFacts is the public part of an operation; lifecycle.Operation documents it.
type OperationFacts struct {
	ID        string
	Lifecycle string
	Entity    string
	Status    string
	Step      string
	Requester string
	Phase     string
	Holder    string
	Epoch     int64
	Since     time.Time
	Until     time.Time
	Failures  int
	Crashes   int
	Error     string
	Manual    bool
	Handler   string
}

func operationOf(e entities.Entity) *Operation {
	c := e.Claim
	if c.Phase == entities.Free || c.Phase == "" {
		return nil
	}
	o := &Operation{plan: c.Plan, revert: c.Revert, OperationFacts: OperationFacts{ID: c.Operation, Lifecycle: e.Lifecycle, Entity: e.ID, Status: e.Status, Step: c.Step, Requester: c.Requester,
		Phase: string(c.Phase), Holder: c.Holder, Epoch: c.Epoch, Since: c.ClaimedAt, Failures: c.Failures, Crashes: c.Crashes,
		Error: c.Error, Manual: c.Manual}}
	if c.Phase == entities.Held {
		o.Until = c.Until
	}
	if c.Plan != nil {
		o.Handler = c.Plan.Action
	}
	return o
}

// Public returns the public part of an entity.
func Public(e entities.Entity) Entity {
	return Entity{Lifecycle: e.Lifecycle, ID: e.ID, Status: e.Status, Version: e.Version, Data: e.Data, CreatedAt: e.CreatedAt, UpdatedAt: e.UpdatedAt, Claimed: operationOf(e)}
}

func publicEntity(e entities.Entity, err error) (Entity, error) { return Public(e), err }

// CreateAt creates an entity in a status ("" for the initial one), which must not be a claim status.
func (l *Lifecycle) CreateAt(ctx context.Context, d store.Doer, id, status string, data json.RawMessage, by string) (Entity, error) {
	if l.config.Table != nil {
		return Entity{}, l.userTableError()
	}
	if status == "" {
		status = l.config.InitialStatus
	}
	claimed := slices.ContainsFunc(l.config.Claims(), func(c lifecycleconfig.ClaimState) bool { return c.Into == status })
	if !slices.Contains(l.config.StatusTypes, status) || claimed {
		return Entity{}, fault.New(fault.Validation, "an entity of lifecycle %q cannot start in status %q: use a status in the config that is not a claim status", l.Name(), status).With("pointer", "/status")
	}
	return publicEntity(entities.Create(ctx, d, entities.CreateArgs{Lifecycle: l.Name(), ID: id, Status: status, Data: data, Meta: events.Meta{Actor: by}}))
}

// userTableError returns the error of a method that only supports Holdfast's own table.
func (l *Lifecycle) userTableError() error {
	return fault.New(fault.Validation, "the entities of lifecycle %q are the rows of table %q: use the table directly", l.Name(), l.config.Table.Name)
}

// List returns entities after the given id, in the order of their ids. A filter searches (store.Found).
func (l *Lifecycle) List(ctx context.Context, d store.Doer, f entities.Filter, behind string, limit int) ([]store.Found[Entity], error) {
	if l.config.Table != nil {
		return nil, l.userTableError()
	}
	found, err := entities.List(ctx, d, l.Name(), f, behind, limit)
	all := make([]store.Found[Entity], 0, len(found))
	for _, x := range found {
		all = append(all, store.Found[Entity]{Row: Public(x.Row), Wanted: x.Wanted, Edge: x.Edge})
	}
	return all, err
}

// History returns the events of an entity, starting at a version.
func (l *Lifecycle) History(ctx context.Context, d store.Doer, id string, from int64, limit int) ([]events.Event, error) {
	return events.Read(ctx, d, events.ReadArgs{Stream: entities.Stream(l.Name(), id), From: from, Limit: limit})
}
