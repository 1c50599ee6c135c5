package httpapi

import (
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/batches"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/handlers"
	"github.com/holdfast-go/holdfast/internal/runs"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/lifecycle"
	"github.com/holdfast-go/holdfast/wire"
)

type listOperationsIn struct {
	State  string `query:"state" doc:"held, due, uncertain, contradicted or lost"`
	Limit  *int   `query:"limit"`
	Cursor string `query:"cursor"`
}

// contradicted is the state by which operations with contradictions are listed, and begins the cursor
// of a page of them.
const contradicted = "contradicted"

// lost is the state by which operations are listed whose last hand-outs were lost.
const lost = "lost"

// listOperations lists the operations of entities, then those of steps, then those at their end that
// have contradictions.
func listOperations(c *call, in *listOperationsIn) (wire.List[wire.Operation], error) {
	p, err := c.page(in.Limit, in.Cursor)
	if err == nil && in.State != contradicted && in.State != lost && checkState(in.State) != nil {
		err = fault.New(fault.Validation, "state must be held, due, uncertain, contradicted or lost, got %q", in.State)
	}
	if err != nil {
		return wire.List[wire.Operation]{}, err
	}
	l := &operationList{call: c, limit: p.limit}
	after, third := strings.CutPrefix(p.after, contradicted+":")
	switch {
	case in.State == lost:
		err = l.lost(p.after)
	case in.State == contradicted || third && in.State == "":
		err = l.contradicted(after, in.State == "")
	case runs.IsOperation(p.after):
		err = l.steps(in.State, p.after)
	default:
		err = l.entities(in.State, p.after)
	}
	return listed(c, l.all, l.next), err
}

// operationList is a page of operations. Each of its parts is followed by the next while there is room.
type operationList struct {
	*call
	limit int
	all   []wire.Operation
	next  string
}

func (l *operationList) entities(state, after string) error {
	found, err := lifecycle.Operations(l.ctx(), l.api.engine, state, after, l.limit)
	if err != nil {
		return err
	}
	for _, x := range found {
		l.all = append(l.all, operationOf(l.call, x.Operation, x.Effects))
	}
	if err := l.contradict(l.all); err != nil {
		return err
	}
	if len(found) == l.limit {
		l.next = found[len(found)-1].ID
		return nil
	}
	return l.steps(state, "")
}

func (l *operationList) steps(state, after string) error {
	if state != "" && state != "uncertain" {
		return nil
	}
	room := l.limit - len(l.all)
	found, last, err := l.stepOperations(after, room)
	if err != nil {
		return err
	}
	if err := l.contradict(found); err != nil {
		return err
	}
	l.all = append(l.all, found...)
	if len(found) == room {
		l.next = last
		return nil
	}
	if state == "" {
		return l.contradicted("", true)
	}
	return nil
}

// contradicted adds operations with contradictions; ended says that only those that the other parts do not list.
func (l *operationList) contradicted(after string, ended bool) error {
	room := l.limit - len(l.all)
	found, err := l.api.engine.Contradictions(l.ctx(), after, room)
	if err != nil {
		return err
	}
	count := 0
	for i, x := range found {
		if i > 0 && found[i-1].Operation == x.Operation {
			continue
		}
		count++
		w, err := l.operation(x)
		if err != nil {
			return err
		}
		if ended && w.State != "ended" && (w.Kind == "action" || w.State == "uncertain") { // it is listed above
			continue
		}
		all := []wire.Operation{w}
		if err := l.contradict(all); err != nil {
			return err
		}
		l.all = append(l.all, all...)
	}
	if count == room {
		l.next = contradicted + ":" + found[len(found)-1].Operation
	}
	return nil
}

// lost adds what was handed out to workers of whom nothing was heard. Items and deliveries, which are listed by
// nothing else, are named as their tasks' idempotency keys name them.
func (l *operationList) lost(after string) error {
	found, err := handlers.LostHandOuts(l.ctx(), l.api.engine, after, l.limit)
	for _, x := range found {
		w := wire.Operation{Kind: x.Kind, State: "due", Handler: x.Handler, Since: wire.At(x.At), Epoch: x.Epoch, Error: x.Error, Effects: []wire.Effect{}, LostHandOuts: x.Times}
		if x.Held {
			w.State = "held"
		}
		switch x.Kind {
		case "action":
			w.ID, w.Subject = x.Parts[2], x.Parts[0]+"/"+x.Parts[1]
		case "runStep":
			visit, _ := strconv.ParseInt(x.Parts[2], 10, 64) // it is one
			step := runs.Live{Run: runs.Run{ID: x.Parts[0]}, Step: runs.Step{Name: x.Parts[1], Visit: visit}}
			w.ID, w.Subject = step.OperationID(), step.Subject()
		case "batchItem":
			w.ID, w.Subject = batches.Operation(l.key.Workspace, x.Parts[0], x.Parts[1]), "batch "+x.Parts[0]+" item "+x.Parts[1]
		default:
			w.ID, w.Subject = x.Parts[0]+"/"+x.Parts[1], "reaction "+x.Parts[0]+" stream "+x.Parts[1]
		}
		l.all = append(l.all, w)
	}
	if len(found) == l.limit {
		l.next = found[len(found)-1].Place
	}
	return err
}

// operation is the operation of a contradiction, as it is now.
func (l *operationList) operation(x holdfast.Contradiction) (w wire.Operation, err error) {
	if runs.IsOperation(x.Operation) {
		s, err := runs.ByOperation(l.ctx(), l.api.engine, x.Operation)
		if err == nil {
			return l.stepOperation(&s, phaseOf(s.Step))
		}
		if fault.CodeOf(err) != fault.NotFound {
			return w, err
		}
	} else {
		p, err := lifecycle.Find(l.ctx(), l.api.engine, x.Operation)
		if err == nil {
			return operationOf(l.call, p.Operation, p.Effects), nil
		}
		if fault.CodeOf(err) != fault.NotFound {
			return w, err
		}
	}
	w = wire.Operation{ID: x.Operation, Kind: "action", Subject: x.Subject, State: "ended", Effects: []wire.Effect{}}
	if runs.IsOperation(x.Operation) {
		w.Kind = "runStep"
	}
	at, err := l.api.engine.Place(l.ctx(), store.Read)
	if err != nil {
		return w, err
	}
	journal, err := effects.List(l.ctx(), l.api.engine, at, x.Operation)
	for _, e := range journal {
		w.Effects = append(w.Effects, wire.Effect{Name: e.Name, Ordinal: e.Ordinal, Key: effects.Key(x.Operation, e.Name, e.Ordinal), State: string(e.State), Result: e.Result})
		w.Epoch = max(w.Epoch, e.Epoch)
	}
	return w, err
}

func phaseOf(s runs.Step) string {
	switch {
	case s.Uncertain:
		return "uncertain"
	case s.Holder != "":
		return "held"
	case s.Status == runs.Running || s.Status == runs.Waiting || s.Status == runs.Pending:
		return "due"
	}
	return "ended"
}

// contradict adds the contradictions of operations. Mostly there are none at all, and one question says so.
func (l *operationList) contradict(all []wire.Operation) error {
	if len(all) == 0 {
		return nil
	}
	some, err := l.api.engine.Contradictions(l.ctx(), "", 1)
	if err != nil || len(some) == 0 {
		return err
	}
	for i := range all {
		if all[i].Contradictions, err = l.contradictionsOf(all[i].ID); err != nil {
			return err
		}
	}
	return nil
}

func (c *call) contradictionsOf(id string) ([]wire.Contradiction, error) {
	if operation, ok := runs.OperationOf(id); ok {
		id = operation
	}
	found, err := c.api.engine.ContradictionsOf(c.ctx(), id)
	var all []wire.Contradiction
	for _, x := range found {
		w := wire.Contradiction{ID: x.ID, Name: x.Effect, Ordinal: x.Ordinal, Key: x.Key, Epoch: x.Epoch, State: "unknown", Result: x.Result, Node: x.Node, At: wire.At(x.At)}
		if x.Happened {
			w.State = "done"
		}
		all = append(all, w)
	}
	return all, err
}

func operationOf(c *call, o lifecycle.Operation, list []lifecycle.Effect) wire.Operation {
	w := wire.Operation{ID: o.ID, Kind: "action", Subject: o.Lifecycle + "/" + o.Entity, State: o.Phase, Handler: c.handlerOf(o), Since: wire.At(o.Since), Epoch: o.Epoch,
		Error: o.Error, Effects: make([]wire.Effect, len(list))}
	for i, x := range list {
		w.Effects[i] = wire.Effect{Name: x.Name, Ordinal: x.Ordinal, Key: x.Key, State: x.State, Result: x.Result}
	}
	return w
}

type acknowledgeIn struct {
	ID   string `path:"id"`
	Body wire.Acknowledge
}

func acknowledge(c *call, in *acknowledgeIn) (wire.Acknowledged, error) {
	id := in.ID
	if operation, ok := runs.OperationOf(id); ok {
		id = operation
	}
	if err := c.api.engine.Acknowledge(c.ctx(), id, c.actor(), in.Body.Contradictions...); err != nil {
		return wire.Acknowledged{}, err
	}
	left, err := c.contradictionsOf(id)
	if left == nil {
		left = []wire.Contradiction{}
	}
	return wire.Acknowledged{Contradictions: left}, err
}
