package bulk

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/lifecycleengine"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// Filter selects members. Each kind of object has its own fields, which [Order.check] verifies; empty fields match all.
type Filter struct {
	// Runs. DefinitionID also selects operations of steps.
	Status       string `json:"status,omitempty"`
	DefinitionID string `json:"definitionId,omitempty"`
	// Positions of reactions.
	Reaction string `json:"reaction,omitempty"`
	Stream   string `json:"stream,omitempty"` // RE2
	Source   string `json:"source,omitempty"` // event or history
	Blocked  *bool  `json:"blocked,omitempty"`
	// Operations of entities.
	Lifecycle string `json:"lifecycle,omitempty"`
	// Runs that were created, or operations that began, in this time; Until is not included.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
}

// action is what a bulk does to each member.
type action struct {
	// fields are the fields of a filter that apply.
	fields []string
	// walk selects the members of a filter, and find reads one by its id. An object that the action would refuse is no
	// member of a filter, and an error of find.
	walk func(*selection, Filter) error
	find func(*selection, string) (Member, error)
	// act does the action, and calls end in its transaction.
	act func(ctx context.Context, e *engine.Engine, o Order, m Member, end commit) error
}

type commit = func(context.Context, *store.Tx) error

// actions are the actions by name: the kind of the object, and what is done to it.
var actions = map[string]action{
	"run.retry":          commandOn(runengine.Retry),
	"run.cancel":         commandOn(runengine.Cancel),
	"run.pause":          commandOn(runengine.Pause),
	"run.resume":         commandOn(runengine.Resume),
	"reaction.unblock":   repairOf("unblock"),
	"reaction.skip":      repairOf("skip"),
	"operation.release":  interventionIn("held", release),
	"operation.resolve":  interventionIn("uncertain", resolve),
	"operation.withdraw": interventionIn("due", withdraw),
}

// Actions returns the names of all actions, in order.
func Actions() []string {
	names := make([]string, 0, len(actions))
	for name := range actions {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// check validates an order and returns its action. Orders that are stored have no ids.
func (o Order) check() (action, error) {
	a, ok := actions[o.Action]
	switch {
	case !ok:
		return a, bad("/action", "action must be one of %s, got %.80q", strings.Join(Actions(), ", "), o.Action)
	case len(o.IDs) > MaxIDs:
		return a, bad("/ids", "ids must have at most %d elements, got %d: use a filter, or several bulks", MaxIDs, len(o.IDs))
	case o.Action != "operation.resolve" && (o.Happened != nil || o.Outcome != ""):
		return a, bad("/outcome", "happened and outcome apply to operation.resolve, not to %s: omit them", o.Action)
	case o.Action == "operation.resolve" && o.Happened == nil && o.Outcome == "":
		return a, bad("/happened", "a resolution needs an answer: set happened to whether the unknown effects happened, or outcome, or both")
	case o.Reason != "" && o.Action != "operation.release" && o.Action != "operation.withdraw":
		return a, bad("/reason", "reason applies to operation.release and operation.withdraw, not to %s: omit it", o.Action)
	}
	if !slices.Contains([]string{"", "success", "failure", "invalid"}, o.Outcome) {
		return a, bad("/outcome", "outcome must be success, failure or invalid, got %.80q", o.Outcome)
	}
	if o.Filter != nil {
		return a, o.Filter.check(o.Action, a.fields)
	}
	return a, o.checkIDs()
}

func (o Order) checkIDs() error {
	seen := make(map[string]bool)
	for _, id := range o.IDs {
		if err := strictjson.Text("ids", id, 4*events.MaxName+1); err != nil { // a reaction, a slash and a stream
			return strictjson.Within(err, "/ids")
		}
		if seen[id] {
			return bad("/ids", "id %.80q is listed twice: list it once", id)
		}
		seen[id] = true
	}
	return nil
}

func (f *Filter) check(name string, fields []string) error {
	for field, set := range map[string]bool{"status": f.Status != "", "definitionId": f.DefinitionID != "", "reaction": f.Reaction != "", "stream": f.Stream != "", "source": f.Source != "",
		"blocked": f.Blocked != nil, "lifecycle": f.Lifecycle != "", "since": !f.Since.IsZero(), "until": !f.Until.IsZero()} {
		if set && !slices.Contains(fields, field) {
			return bad("/filter/"+field, "the filter of %s has no %s: use %s", name, field, strings.Join(fields, ", "))
		}
	}
	if !slices.Contains([]string{"", "event", "history"}, f.Source) {
		return bad("/filter/source", "source must be event or history, got %.80q", f.Source)
	}
	return nil
}

func bad(pointer, format string, args ...any) error {
	return fault.New(fault.Validation, format, args...).With("pointer", pointer)
}

// commandOn is a command on runs. A retry is bound to the version of the run: a run that has failed again is another
// failure. The other commands are not, because the steps of a run change its version too.
func commandOn(command string) action {
	member := func(r runengine.Run) Member {
		m := Member{ID: r.ID, State: r.Status}
		if command == runengine.Retry {
			m.Expect = &r.Version
		}
		return m
	}
	return action{
		fields: []string{"status", "definitionId", "since", "until"},
		walk: func(s *selection, f Filter) error {
			from := runengine.From[command]
			if f.Status != "" {
				if !slices.Contains(from, f.Status) {
					return bad("/filter/status", "%s acts on runs with status %s, got %.80q", s.order.Action, strings.Join(from, ", "), f.Status)
				}
				from = []string{f.Status}
			}
			for _, status := range from {
				in := runengine.Filter{Status: status, Definition: f.DefinitionID, Times: store.Times{Since: f.Since, Until: f.Until}}
				for r, err := range store.SeqFound(func(after runengine.Run, limit int) ([]store.Found[runengine.Run], error) {
					return runengine.List(s.ctx, s.doer, in, after.ID, limit)
				}, func(r runengine.Run) runengine.Run { return r }) {
					if err == nil && r.Allows(command) == nil {
						err = s.add(member(r))
					}
					if err != nil {
						return err
					}
				}
			}
			return nil
		},
		find: func(s *selection, id string) (Member, error) {
			r, err := runengine.Get(s.ctx, s.doer, id)
			if err == nil {
				err = r.Allows(command)
			}
			return member(r), err
		},
		act: func(ctx context.Context, e *engine.Engine, o Order, m Member, end commit) error {
			return e.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
				if _, err := runengine.LocalOf(e).Executor.Command(ctx, tx, m.ID, runengine.Command{Name: command, Version: m.Expect, Actor: o.Actor}); err != nil {
					return err
				}
				return end(ctx, tx)
			})
		},
	}
}

// repairOf is a repair of positions, whose ids are reaction/stream. It is bound to the event that failed: another event
// must not be skipped.
func repairOf(how string) action {
	member := func(p reactions.Position) Member {
		m := Member{ID: p.Reaction + "/" + p.Stream, State: "failing", Expect: expecting(p.Failing, 0)}
		if p.Blocked {
			m.State = "blocked"
		}
		return m
	}
	return action{
		fields: []string{"reaction", "stream", "source", "blocked"},
		walk: func(s *selection, f Filter) error {
			in := reactions.Filter{Reaction: f.Reaction, Pattern: f.Stream} // blocked or failing: both have an index, and nothing else can be repaired
			if in.Failing = f.Blocked != nil && !*f.Blocked; !in.Failing {
				in.Blocked = new(true)
			}
			if f.Source != "" {
				in.Own = new(f.Source == "history")
			}
			if how == "unblock" && in.Failing {
				return bad("/filter/blocked", "reaction.unblock acts on blocked streams: set blocked to true or omit it")
			}
			if f.Reaction != "" {
				if _, err := reactions.Get(s.ctx, s.doer, f.Reaction); err != nil {
					return err
				}
			}
			return pages(s, func(after reactions.Position, limit int) ([]reactions.Position, error) {
				all, _, err := reactions.Query(s.ctx, s.doer, in, after, limit)
				return all, err
			}, func(p reactions.Position) error {
				if reactions.Kind(p.Reaction) == "" || p.Allows(how) != nil {
					return nil
				}
				return s.add(member(p))
			})
		},
		find: func(s *selection, id string) (Member, error) {
			reaction, stream, err := cutPosition(id)
			if err != nil {
				return Member{}, err
			}
			p, err := reactions.Stands(s.ctx, s.doer, reaction, stream)
			if err == nil {
				err = p.Allows(how)
			}
			return member(p), err
		},
		act: func(ctx context.Context, e *engine.Engine, o Order, m Member, end commit) error {
			reaction, stream, err := cutPosition(m.ID)
			if err != nil {
				return err
			}
			one := reactions.One{Reaction: reaction, Stream: stream, Failing: *cmp.Or(m.Expect, new(int64(-1)))}
			return e.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
				if err := reactions.RepairOne(ctx, tx, how, o.Actor, one); err != nil {
					return err
				}
				return end(ctx, tx)
			})
		},
	}
}

// cutPosition parses the id of a position. Names of reactions have no slash.
func cutPosition(id string) (reaction, stream string, err error) {
	reaction, stream, ok := strings.Cut(id, "/")
	if !ok || stream == "" || reactions.Kind(reaction) == "" {
		err = fault.New(fault.NotFound, "position %q does not exist: the id of a position is reaction/stream", id)
	}
	return reaction, stream, err
}

// intervene intervenes in one operation. step is the operation of a step in its stored form, or "".
type intervene func(ctx context.Context, e *engine.Engine, o Order, id, step string, r lease.Intervention) error

// interventionIn is an intervention in operations of a phase. It is bound to their epoch.
func interventionIn(phase string, do intervene) action {
	member := func(id, state string, epoch int64) Member {
		return Member{ID: id, State: state, Expect: expecting(epoch, 1)}
	}
	return action{
		fields: []string{"lifecycle", "definitionId", "since", "until"},
		walk: func(s *selection, f Filter) error {
			if f.DefinitionID == "" {
				err := pages(s, func(after lifecycleengine.Operation, limit int) ([]lifecycleengine.Operation, error) {
					return lifecycleengine.InPhase(s.ctx, s.doer, phase, after.ID, limit)
				}, func(o lifecycleengine.Operation) error {
					if f.Lifecycle != "" && f.Lifecycle != o.Lifecycle || !f.between(o.Since) {
						return nil
					}
					return s.add(member(o.ID, o.Phase, o.Epoch))
				})
				if err != nil {
					return err
				}
			}
			if phase != "uncertain" || f.Lifecycle != "" { // only uncertain steps have an index
				return nil
			}
			return pages(s, func(after runengine.ClaimedStep, limit int) ([]runengine.ClaimedStep, error) {
				behind := ""
				if after.Run.ID != "" {
					behind = after.Operation()
				}
				return runengine.Uncertain(s.ctx, s.doer, behind, limit)
			}, func(l runengine.ClaimedStep) error {
				if f.DefinitionID != "" && f.DefinitionID != l.Run.Definition || !f.between(l.Step.StartedAt) {
					return nil
				}
				return s.add(member(l.OperationID(), "uncertain", l.Step.Epoch))
			})
		},
		find: func(s *selection, id string) (Member, error) {
			state, epoch, err := stateOf(s.ctx, s.doer, id)
			if err == nil && state != phase && (phase != "held" || state != "due") {
				err = fault.New(fault.Conflict, "operation %s is %s: %s requires an operation that is %s", id, state, s.order.Action, phase)
			}
			return member(id, state, epoch), err
		},
		act: func(ctx context.Context, e *engine.Engine, o Order, m Member, end commit) error {
			step, ok := runengine.OperationOf(m.ID)
			if !ok {
				step = ""
			}
			return do(ctx, e, o, m.ID, step, lease.Intervention{Reason: o.Reason, Actor: o.Actor, Epoch: m.Expect, Also: end})
		},
	}
}

// stateOf returns the phase and the epoch of an operation.
func stateOf(ctx context.Context, d store.Doer, id string) (string, int64, error) {
	step, ok := runengine.OperationOf(id)
	if !ok {
		p, err := lifecycleengine.Find(ctx, d, id)
		return p.Phase, p.Epoch, err
	}
	l, err := runengine.ByOperation(ctx, d, step)
	return l.Step.Phase(), l.Step.Epoch, err
}

func release(ctx context.Context, e *engine.Engine, _ Order, id, step string, r lease.Intervention) (err error) {
	if step != "" {
		_, err = runengine.LocalOf(e).Executor.ReleaseHeld(ctx, e, step, r)
	} else {
		_, err = lifecycleengine.Release(ctx, e, id, r)
	}
	return err
}

func withdraw(ctx context.Context, e *engine.Engine, _ Order, id, step string, r lease.Intervention) error {
	if step != "" {
		return fault.New(fault.Conflict, "operation %s is a step of a run: cancel the run instead", id)
	}
	_, err := lifecycleengine.Withdraw(ctx, e, id, r)
	return err
}

// resolve gives the same answer for all effects of an operation whose outcome is unknown.
func resolve(ctx context.Context, e *engine.Engine, o Order, id, step string, r lease.Intervention) error {
	at, err := e.Partition(ctx, store.Write)
	if err != nil {
		return err
	}
	operation := id
	if step != "" {
		operation = step
	}
	journal, err := effects.List(ctx, e, at, operation)
	if err != nil {
		return err
	}
	var known []effects.Resolution
	for _, x := range journal {
		if x.State == effects.Begun && o.Happened != nil {
			known = append(known, effects.Resolution{Name: x.Name, Ordinal: x.Ordinal, State: effects.StateOf(*o.Happened)})
		}
	}
	if step != "" {
		_, err = runengine.LocalOf(e).Executor.Resolve(ctx, e, step, known, o.Outcome, r)
	} else {
		_, err = lifecycleengine.Resolve(ctx, e, id, known, lifecycleengine.Outcome(o.Outcome), r)
	}
	return err
}
