package lifecycleengine

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/lifecycles"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Named returns a lifecycle of an engine by its name, for entities whose data is
// whatever JSON it is. There is none, or none for the context's workspace:
// [holdfast.ErrNotFound].
func Named(ctx context.Context, e *engine.Engine, name string) (*Lifecycle, error) {
	s, err := boardOf(e).find(ctx, name)
	if err != nil {
		return nil, err
	}
	return s.Lifecycle, nil
}

// find returns a lifecycle in the context's workspace.
func (b *board) find(ctx context.Context, name string) (*site, error) {
	s := b.site(name)
	if s == nil && b.door != nil {
		return b.door.site(ctx, name)
	}
	if s == nil || len(s.workspaces) > 0 && !slices.Contains(s.workspaces, store.WorkspaceOf(ctx)) {
		return nil, unknown(name)
	}
	return s, nil
}

func unknown(name string) error { return fault.New(fault.NotFound, "there is no lifecycle %q", name) }

// Names returns the names of the lifecycles of an engine that are for the context's
// workspace, rising.
func Names(ctx context.Context, e *engine.Engine) (all []string, err error) {
	b := boardOf(e)
	for _, name := range b.names() {
		if _, err := b.find(ctx, name); err == nil {
			all = append(all, name)
		}
	}
	if b.door != nil {
		put, err := b.door.names(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, put...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// Source is the config, as it was given.
func (l *Lifecycle) Source() []byte { return []byte(l.text) }

// Held returns a claim that was taken by hand before, here or on another node, for
// who knows its operation and its epoch. Whether it is still held is decided when it
// is used: what is done under one that was lost is [holdfast.ErrLeaseLost].
func (l *Lifecycle) Held(ctx context.Context, e *engine.Engine, id, operation string, epoch int64) (*Claim, error) {
	s, err := l.at(e)
	if err != nil {
		return nil, err
	}
	at, err := e.Place(ctx, store.Write)
	if err != nil {
		return nil, err
	}
	now, err := s.ground.get(ctx, id)
	if err != nil {
		return nil, err
	}
	if now.Claim.Operation != operation {
		return nil, hold.Lost("the "+l.Name()+" "+id, epoch)
	}
	t, err := s.attemptOf(ctx, at, now, operation, epoch)
	if err != nil {
		return nil, err
	}
	return &Claim{Entity: Public(t.entity), t: t}, nil
}

// Fate is what became of an operation.
type Fate struct {
	// Outcome is success; failed, which moved the entity to where failures go;
	// released, which put it back without effect; pending, while it is worked on
	// or is to be resumed; uncertain, until a person resolves it.
	Outcome string
	// Running says of a pending one that somebody works on it at this moment who
	// has not handed it on.
	Running bool
	Message string
	// Output is what a worker's action told.
	Output json.RawMessage
	// Invalid says of a released one that the step was refused.
	Invalid bool
}

// ActsUnclaimed says whether a step, where the entity is, runs code without a claim: then
// nothing tells that it has begun.
func (l *Lifecycle) ActsUnclaimed(ctx context.Context, e *engine.Engine, id, step, requester string) (bool, error) {
	s, err := l.at(e)
	if err != nil {
		return false, err
	}
	steps, err := s.offered(step, requester)
	if err != nil {
		return false, nil // it is refused
	}
	_, claimed := s.choices(steps, requester)
	if claimed || !slices.ContainsFunc(steps, func(x *lifecycles.Step) bool { return s.acts(x, requester) }) {
		return false, nil
	}
	now, err := s.ground.get(ctx, id)
	if fault.CodeOf(err) == fault.NotFound {
		return false, nil // it is refused
	}
	x := stepAt(steps, now.Status)
	if err != nil || x == nil {
		return false, err
	}
	_, claimed = s.claimAt(x, now.Status, requester)
	return !claimed && s.acts(x, requester), nil
}

// FateOf returns what became of an operation on an entity, also long after its end,
// as long as its history is kept: [holdfast.ErrNotFound] if nothing is known of it.
func (l *Lifecycle) FateOf(ctx context.Context, e *engine.Engine, id, operation string) (Fate, error) {
	s, err := l.at(e)
	if err != nil {
		return Fate{}, err
	}
	return s.fateOf(ctx, id, operation)
}

func (s *site) fateOf(ctx context.Context, id, operation string) (Fate, error) {
	now, err := s.ground.get(ctx, id)
	if err != nil && fault.CodeOf(err) != fault.NotFound {
		return Fate{}, err
	}
	if operation == "" {
		return Fate{}, fault.New(fault.NotFound, "an operation has an id")
	}
	if c := now.Claim; err == nil && c.Operation == operation && c.Phase != entities.Free {
		queue, _, err := entities.Queued(ctx, s.engine, s.config.Workflow, id)
		return Fate{Outcome: map[bool]string{true: "uncertain", false: "pending"}[c.Phase == entities.Uncertain], Running: c.Phase == entities.Held && queue == "",
			Message: c.Error}, err
	}
	return fateIn(ctx, s.engine, entities.Stream(s.config.Workflow, id), operation)
}

// How an attempt of an operation ended, as its history tells.
const (
	EndedSuccess = "success"
	EndedFailed  = "failed"  // or it was released
	EndedInvalid = "invalid" // it was refused
	EndedQueued  = "queued"  // it was handed on
	EndedOpen    = "open"    // something was begun: it is resumed, or waits for a person
)

// Ending is how an attempt ended, and the status and version that the entity had then.
type Ending struct {
	How     string // "": it did not, or its holder did not end it
	Status  string
	Version int64
	Message string
}

// Ended returns how the holder of an epoch ended an attempt, also when the entity has long
// gone on; where that is too long ago, it is not known any more.
func Ended(ctx context.Context, d store.Doer, lifecycle, id, operation string, epoch int64) (Ending, error) {
	for from, pages := int64(-1), 0; pages < 10; pages++ {
		page, err := events.Read(ctx, d, events.ReadArgs{Stream: entities.Stream(lifecycle, id), From: from, Limit: 200, Backward: true})
		if err != nil {
			return Ending{}, err
		}
		for _, x := range page {
			var told struct {
				Deaths    *int   `json:"deaths"` // of one that the janitor has freed
				Message   string `json:"message"`
				Operation string `json:"operation"`
				Epoch     int64  `json:"epoch"`
				To        string `json:"to"`
				Outcome   string `json:"outcome"`
			}
			if json.Unmarshal(x.Data, &told) != nil || told.Operation != operation || told.Epoch != epoch {
				continue
			}
			how := ""
			switch {
			case told.Deaths != nil:
				return Ending{}, nil
			case strings.HasPrefix(x.Name, "settled/"):
				how = EndedSuccess
			case x.Name == "released" && told.Outcome == "invalid":
				how = EndedInvalid
			case x.Name == "released" || strings.HasPrefix(x.Name, "failed/"):
				how = EndedFailed
			case x.Name == "queued":
				how = EndedQueued
			case x.Name == "interrupted" || x.Name == "parked":
				how = EndedOpen
			default:
				continue
			}
			return Ending{how, told.To, x.Version, told.Message}, nil
		}
		if len(page) == 0 || page[len(page)-1].Version == 0 {
			break
		}
		from = page[len(page)-1].Version - 1
	}
	return Ending{}, nil
}

// ended is what the last event of an operation tells.
type ended struct {
	Operation string `json:"operation"`
	Outcome   string `json:"outcome"`
	Message   string `json:"message"`
	Effects   int    `json:"effects"`
	Note      *struct {
		Operation string          `json:"operation"`
		Output    json.RawMessage `json:"output"`
	} `json:"note"`
}

// fateIn looks for the end of an operation in the history, from its end.
func fateIn(ctx context.Context, d store.Doer, stream, operation string) (Fate, error) {
	for from := int64(-1); ; {
		page, err := events.Read(ctx, d, events.ReadArgs{Stream: stream, From: from, Limit: 200, Backward: true})
		if err != nil {
			return Fate{}, err
		}
		for _, x := range page {
			var told ended
			if json.Unmarshal(x.Data, &told) != nil || told.Operation != operation && (told.Note == nil || told.Note.Operation != operation) {
				continue
			}
			f := Fate{Outcome: outcomeBy(x.Name), Message: told.Message, Invalid: told.Outcome == "invalid"}
			if f.Outcome == "released" && told.Effects > 0 {
				f.Outcome = "failed" // somebody has ended it so, knowing what had happened
			}
			if told.Note != nil {
				f.Output = told.Note.Output
			}
			return f, nil
		}
		if len(page) == 0 || page[len(page)-1].Version == 0 {
			return Fate{}, fault.New(fault.NotFound, "nothing is known of the operation %s any more", operation)
		}
		from = page[len(page)-1].Version - 1
	}
}

// outcomeBy is the outcome that the name of an operation's last event tells.
func outcomeBy(event string) string {
	switch {
	case len(event) > 8 && event[:8] == "settled/":
		return "success"
	case len(event) > 7 && event[:7] == "failed/":
		return "failed"
	}
	return "released"
}

// Statuses are the statuses that the config names.
func (l *Lifecycle) Statuses() []string { return slices.Clone(l.config.StatusTypes) }

// CreateAt is [Lifecycle.Create] with what a door adds: a status other than the initial
// one ("" for that), which must not be a claim's, and who asks.
func (l *Lifecycle) CreateAt(ctx context.Context, d store.Doer, id, status string, data json.RawMessage, by string) (Entity, error) {
	if l.config.Table != nil {
		return Entity{}, l.rowsOf()
	}
	if status == "" {
		status = l.config.InitialStatus
	}
	claimed := slices.ContainsFunc(l.config.Claims(), func(c lifecycles.ClaimState) bool { return c.Into == status })
	if !slices.Contains(l.config.StatusTypes, status) || claimed {
		return Entity{}, fault.New(fault.Validation, "an entity of %q cannot begin in the status %q", l.Name(), status).With("pointer", "/status")
	}
	return shown(entities.Create(ctx, d, entities.CreateArgs{Lifecycle: l.Name(), ID: id, Status: status, Data: data, Meta: events.Meta{Actor: by}}))
}

func (l *Lifecycle) rowsOf() error {
	return fault.New(fault.Validation, "the entities of %s are the rows of %s, in the program's own tables", l.Name(), l.config.Table.Name)
}

// List returns entities in the order of their ids, behind one of them: those in a
// status, or all.
func (l *Lifecycle) List(ctx context.Context, e *engine.Engine, status, behind string, limit int) ([]Entity, error) {
	if l.config.Table != nil {
		return nil, l.rowsOf()
	}
	found, err := entities.List(ctx, e, l.Name(), status, behind, limit)
	all := make([]Entity, 0, len(found))
	for _, x := range found {
		all = append(all, Public(x))
	}
	return all, err
}
