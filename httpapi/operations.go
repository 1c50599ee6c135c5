package httpapi

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi/internal/shapes"
	"github.com/holdfast-go/holdfast/internal/batchengine"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/lifecycleengine"
	"github.com/holdfast-go/holdfast/internal/remotehandler"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/wire"
)

type listOperationsIn struct {
	State   string `query:"state" doc:"List only operations in this state: held, due, uncertain, contradicted or lost."`
	Handler string `query:"handler" doc:"List only operations of this handler. With it, a page may be short and still have a next one."`
	paged
}

// contradicted is the state filter for operations with contradictions, and the prefix of cursors of
// that part of the list.
const contradicted = "contradicted"

// lost is the state filter for operations whose last hand-outs were lost.
const lost = "lost"

// listOperations lists operations of entities, then those of steps, then ended ones that have
// contradictions.
func listOperations(c *call, in *listOperationsIn) (wire.List[wire.Operation], error) {
	p, err := c.page(in.paged)
	if err == nil && in.State != contradicted && in.State != lost && checkState(in.State) != nil {
		err = fault.New(fault.Validation, "state must be held, due, uncertain, contradicted or lost, got %q", in.State)
	}
	if err != nil {
		return wire.List[wire.Operation]{}, err
	}
	l := &operationList{call: c, page: p, handler: in.Handler}
	for range maxRowSearches {
		err = l.read(in.State)
		if err != nil || in.Handler == "" || l.next == "" || len(l.all) >= p.limit || p.spent() {
			break
		}
		l.page.after = l.next
	}
	return listed(c, l.all, l.next), err
}

// read reads the parts of the list from the page's cursor on, until the page is full. Operations of other handlers than the wanted
// one count, but are left out.
func (l *operationList) read(state string) error {
	after, third := strings.CutPrefix(l.page.after, contradicted+":")
	switch {
	case state == lost:
		return l.lost()
	case state == contradicted || third && state == "":
		return l.contradicted(after, state == "")
	case runengine.IsOperation(l.page.after):
		return l.steps(state, l.page.after)
	default:
		return l.entities(state, l.page.after)
	}
}

// wants reports whether operations of a handler are listed.
func (l *operationList) wants(handler string) bool { return l.handler == "" || l.handler == handler }

// add adds an operation to the page.
func (l *operationList) add(w wire.Operation) {
	if w.ID != "" && l.wants(w.Handler) {
		l.all = append(l.all, w)
	}
}

// operationList is a page of operations. Its parts follow each other until the page is full.
type operationList struct {
	*call
	page    page
	handler string // "" for all
	all     []wire.Operation
	next    string
	any     *bool // whether there are contradictions, once queried
}

// readPart reads one part of the list behind a cursor. Each operation needs several reads.
func readPart[T any](l *operationList, after string, read func(ctx context.Context, after string, limit int) ([]T, error), key func(T) string, show func(context.Context, T) (wire.Operation, error)) (err error) {
	p := page{limit: l.page.limit - len(l.all), after: after, budget: l.page.budget}
	_, l.next, err = readPage(l.call, p, func(ctx context.Context, after string, limit int) ([]T, error) {
		found, err := read(ctx, after, limit)
		for i, x := range found {
			w, failed := show(store.Whole(ctx), x)
			if failed != nil {
				return nil, failed
			}
			l.add(w)
			if i+1 < len(found) && store.Enough(ctx) {
				return found[:i+1], err
			}
		}
		return found, err
	}, key)
	return err
}

// entities adds operations of entities and, if the page has room, continues with steps.
func (l *operationList) entities(state, after string) error {
	err := readPart(l, after, func(ctx context.Context, after string, limit int) ([]lifecycleengine.Pending, error) {
		return lifecycleengine.OperationsWith(ctx, l.api.engine, state, after, limit, func(o lifecycleengine.Operation) bool { return l.wants(l.handlerOf(o)) })
	}, func(x lifecycleengine.Pending) string { return x.ID }, func(ctx context.Context, x lifecycleengine.Pending) (wire.Operation, error) {
		if !l.wants(l.handlerOf(x.Operation)) {
			return wire.Operation{}, nil
		}
		return l.addContradictions(ctx, operationOf(l.call, x.Operation, x.Effects))
	})
	if err != nil || l.next != "" {
		return err
	}
	return l.steps(state, "")
}

// steps adds uncertain steps of runs and, if the page has room, continues with contradicted operations.
func (l *operationList) steps(state, after string) error {
	if state != "" && state != "uncertain" {
		return nil
	}
	err := readPart(l, after, func(ctx context.Context, after string, limit int) ([]runengine.ClaimedStep, error) {
		return runengine.Uncertain(ctx, l.api.engine, after, limit)
	}, func(x runengine.ClaimedStep) string { return x.Operation() }, func(ctx context.Context, x runengine.ClaimedStep) (wire.Operation, error) {
		if !l.wants(x.Step.Handler) {
			return wire.Operation{}, nil
		}
		w, err := l.stepOperation(ctx, &x, "uncertain")
		if err != nil {
			return w, err
		}
		return l.addContradictions(ctx, w)
	})
	if err != nil || l.next != "" || state != "" {
		return err
	}
	return l.contradicted("", true)
}

// contradicted adds operations with contradictions. With ended, it skips those that the other parts
// list.
func (l *operationList) contradicted(after string, ended bool) error {
	return readPart(l, after, func(ctx context.Context, after string, limit int) ([]effects.Contradiction, error) {
		found, err := effects.Contradictions(store.Whole(ctx), l.api.engine, "", strings.TrimPrefix(after, contradicted+":"), limit)
		return slices.CompactFunc(found, func(a, b effects.Contradiction) bool { return a.Operation == b.Operation }), err
	}, func(x effects.Contradiction) string { return contradicted + ":" + x.Operation }, func(ctx context.Context, x effects.Contradiction) (wire.Operation, error) {
		w, err := l.operation(ctx, x)
		if err != nil || ended && w.State != "ended" && (w.Kind == "action" || w.State == "uncertain") { // the other parts list it
			return wire.Operation{}, err
		}
		return l.addContradictions(ctx, w)
	})
}

// lost adds operations that were handed out to workers that never responded. Batch items and
// deliveries appear in no other list; they have the ids of their tasks' idempotency keys.
func (l *operationList) lost() error {
	p := l.page
	p.limit -= len(l.all)
	found, next, err := readPage(l.call, p, func(ctx context.Context, after string, limit int) ([]remotehandler.Lost, error) {
		return remotehandler.LostHandOuts(ctx, l.api.engine, after, limit)
	}, func(x remotehandler.Lost) string { return x.Place })
	l.next = next
	for _, x := range found {
		w := wire.Operation{Kind: x.Kind, State: "due", Handler: x.Handler, Since: shapes.At(x.At), Epoch: x.Epoch, Error: x.Error, Effects: []wire.Effect{}, LostHandOuts: x.Times}
		if x.Held {
			w.State = "held"
		}
		switch x.Kind {
		case "action":
			w.ID, w.Subject = x.Parts[2], x.Parts[0]+"/"+x.Parts[1]
		case "runStep":
			visit, _ := strconv.ParseInt(x.Parts[2], 10, 64) // always a number
			step := runengine.ClaimedStep{Run: runengine.Run{ID: x.Parts[0]}, Step: runengine.Step{Name: x.Parts[1], Visit: visit}}
			w.ID, w.Subject = step.OperationID(), step.Subject()
		case "batchItem":
			w.ID, w.Subject = batchengine.Operation(l.key.Workspace, x.Parts[0], x.Parts[1]), "batch "+x.Parts[0]+" item "+x.Parts[1]
		default:
			w.ID, w.Subject = x.Parts[0]+"/"+x.Parts[1], "reaction "+x.Parts[0]+" stream "+x.Parts[1]
		}
		l.add(w)
	}
	return err
}

// operation returns the current operation of a contradiction.
func (l *operationList) operation(ctx context.Context, x effects.Contradiction) (w wire.Operation, err error) {
	if runengine.IsOperation(x.Operation) {
		s, err := runengine.ByOperation(ctx, l.api.engine, x.Operation)
		if err == nil {
			return l.stepOperation(ctx, &s, s.Step.Phase())
		}
		if fault.CodeOf(err) != fault.NotFound {
			return w, err
		}
	} else {
		p, err := lifecycleengine.Find(ctx, l.api.engine, x.Operation)
		if err == nil {
			return operationOf(l.call, p.Operation, p.Effects), nil
		}
		if fault.CodeOf(err) != fault.NotFound {
			return w, err
		}
	}
	w = wire.Operation{ID: x.Operation, Kind: "action", Subject: x.Subject, State: "ended", Effects: []wire.Effect{}}
	if runengine.IsOperation(x.Operation) {
		w.Kind = "runStep"
	}
	at, err := l.api.engine.Partition(ctx, store.Read)
	if err != nil {
		return w, err
	}
	journal, err := effects.List(ctx, l.api.engine, at, x.Operation)
	for _, e := range journal {
		w.Effects = append(w.Effects, wire.Effect{Name: e.Name, Ordinal: e.Ordinal, Key: effects.Key(x.Operation, e.Name, e.Ordinal), State: string(e.State), Result: e.Result})
		w.Epoch = max(w.Epoch, e.Epoch)
	}
	return w, err
}

// addContradictions adds the contradictions of an operation. Usually there are none at all, so one query
// checks that first.
func (l *operationList) addContradictions(ctx context.Context, w wire.Operation) (wire.Operation, error) {
	if l.any == nil {
		some, err := effects.Contradictions(l.ctx(), l.api.engine, "", "", 1)
		if err != nil {
			return w, err
		}
		any := len(some) > 0
		l.any = &any
	}
	var err error
	if *l.any {
		w.Contradictions, err = l.contradictionsOf(ctx, w.ID)
	}
	return w, err
}

func (c *call) contradictionsOf(ctx context.Context, id string) ([]wire.Contradiction, error) {
	if operation, ok := runengine.OperationOf(id); ok {
		id = operation
	}
	var all []wire.Contradiction
	for x, err := range holdfast.ListContradictions(ctx, c.api.hf, holdfast.ContradictionFilter{Operation: id}) {
		if err != nil {
			return nil, err
		}
		w := wire.Contradiction{ID: x.ID, Name: x.Effect, Ordinal: x.Ordinal, Key: x.Key, Epoch: x.Epoch, State: "unknown", Result: x.Result, Node: x.Node, At: shapes.At(x.At)}
		if !x.Unknown {
			w.State = "done"
		}
		all = append(all, w)
	}
	return all, nil
}

func operationOf(c *call, o lifecycleengine.Operation, list []lifecycleengine.Effect) wire.Operation {
	w := wire.Operation{ID: o.ID, Kind: "action", Subject: o.Lifecycle + "/" + o.Entity, State: o.Phase, Handler: c.handlerOf(o), Since: shapes.At(o.Since), Epoch: o.Epoch,
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
	if operation, ok := runengine.OperationOf(id); ok {
		id = operation
	}
	if err := holdfast.AcknowledgeContradictions(c.ctx(), c.api.hf, id, in.Body.Contradictions, holdfast.By(c.actor())); err != nil {
		return wire.Acknowledged{}, err
	}
	left, err := c.contradictionsOf(c.ctx(), id)
	if left == nil {
		left = []wire.Contradiction{}
	}
	return wire.Acknowledged{Contradictions: left}, err
}

// stepOperation returns the operation of a step.
func (c *call) stepOperation(ctx context.Context, l *runengine.ClaimedStep, state string) (wire.Operation, error) {
	w := wire.Operation{ID: l.OperationID(), Kind: "runStep", Subject: l.Subject(), State: state, Handler: l.Step.Handler,
		Since: timeOrNil(l.Step.StartedAt), Epoch: l.Step.Epoch, Error: l.Step.Error, Effects: []wire.Effect{}}
	journal, err := l.Journal(ctx, c.api.engine)
	for _, x := range journal {
		w.Effects = append(w.Effects, wire.Effect{Name: x.Name, Ordinal: x.Ordinal, Key: effects.Key(l.Operation(), x.Name, x.Ordinal), State: string(x.State), Result: x.Result})
	}
	return w, err
}

// resolveStep resolves an uncertain step.
func resolveStep(c *call, operation string, known []effects.Resolution, outcome string) (wire.Resolved, error) {
	l, err := runengine.LocalOf(c.api.engine).Executor.Resolve(c.ctx(), c.api.engine, operation, known, outcome, lease.Intervention{Actor: c.actor()})
	if err != nil {
		return wire.Resolved{}, err
	}
	if l.Operation() != operation || l.Step.Status != runengine.Running { // it has ended
		return wire.Resolved{}, nil
	}
	state := "due"
	if l.Step.Uncertain {
		state = "uncertain"
	}
	w, err := c.stepOperation(c.ctx(), &l, state)
	return wire.Resolved{Operation: &w}, err
}
