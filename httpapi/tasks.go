package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/batch"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/batches"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/handlers"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/lifecycleengine"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/runs"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strict"
	"github.com/holdfast-go/holdfast/internal/tokens"
	"github.com/holdfast-go/holdfast/internal/wake"
	"github.com/holdfast-go/holdfast/wire"
)

func (a *API) taskRoutes() {
	add(a, route{method: http.MethodPost, path: "tasks/claim", id: "claimTasks", tag: "tasks", summary: "Take what there is to do for handlers, or wait for something to come.",
		roles: workers, once: asHandOut,
		more: "A task counts as received once it is renewed, journals an effect or is ended."}, claimTasks)
	add(a, route{method: http.MethodPost, path: "tasks/{id}/complete", id: "completeTask", tag: "tasks", summary: "End a task that is done.", roles: workers, once: underHold,
		more: "Completed again under the same epoch, it answers the same."}, completeTask)
	add(a, route{method: http.MethodPost, path: "tasks/{id}/fail", id: "failTask", tag: "tasks", summary: "End a task that is not done.", roles: workers, once: underHold}, failTask)
	add(a, route{method: http.MethodPost, path: "tasks/{id}/renew", id: "renewTask", tag: "tasks", summary: "Extend the hold of a task.", roles: workers, once: underHold}, renewTask)
	add(a, route{method: http.MethodPost, path: "tasks/{id}/effects", id: "journalTaskEffect", tag: "tasks", summary: "Journal an effect of a task.", roles: workers, once: underHold,
		more: "It begins the effect, or says what became of it."}, journalTaskEffect)
}

type claimTasksIn struct{ Body wire.ClaimTasks }

func claimTasks(c *call, in *claimTasksIn) (wire.Tasks, error) {
	b := in.Body
	if b.Limit == 0 {
		b.Limit = 10
	}
	if b.Limit < 1 || b.Limit > 1000 {
		return wire.Tasks{}, fault.New(fault.Validation, "limit is 1 to 1000").With("pointer", "/limit")
	}
	if len(b.Handlers) == 0 || len(b.Handlers) > 100 {
		return wire.Tasks{}, fault.New(fault.Validation, "handlers are 1 to 100").With("pointer", "/handlers")
	}
	for i, name := range b.Handlers {
		if err := c.serves(name); err != nil {
			return wire.Tasks{}, within(err, "/handlers/"+strconv.Itoa(i))
		}
	}
	lease := hold.Lease
	if b.LeaseMs != 0 {
		lease = span(b.LeaseMs)
	}
	if err := strict.Text("worker", b.Worker, events.MaxName); err != nil {
		return wire.Tasks{}, err
	}
	if err := entities.CheckLease(lease); err != nil {
		return wire.Tasks{}, err
	}
	wait := 20 * time.Second
	if b.WaitMs != nil {
		wait = span(*b.WaitMs)
	}
	out := wire.Tasks{Tasks: []wire.Task{}}
	if c.api.declares {
		if _, _, err := c.declare(b.Handlers); err != nil {
			return out, err
		}
	}
	topics := lifecycleengine.TaskTopics(c.key.Workspace, b.Handlers)
	now, err := c.declared()
	if err != nil {
		return out, err
	}
	signer, err := c.api.signers.Signer(c.ctx(), c.api.engine)
	if err != nil {
		return out, err
	}
	for _, x := range now.servedBy(b.Handlers) {
		topics = append(topics, store.MarkTopic(x.Name))
	}
	for _, name := range b.Handlers {
		topics = append(topics, batches.Topic(name), runs.Topic(name))
	}
	err = c.await(wait, topics, func() (bool, error) {
		now, err := c.declared() // before there is a transaction
		if err != nil {
			return false, err
		}
		kinds := c.taskKinds(b.Handlers, now)
		var needs []wake.Need
		for _, k := range kinds {
			needs = append(append(needs, wake.Need{Kind: k.held}), k.due...)
		}
		busy := make(map[string]bool)
		some, found, err := handOut(c, needs, func(d holdfast.Doer, due map[wake.Need]bool) (wire.Tasks, time.Time, error) {
			return c.takeTasks(d, kinds, due, claim{b, lease, now, busy, signer})
		})
		if found {
			out = some
		}
		return found, err
	})
	return out, err
}

// claim is a claim of tasks, as it is looked for.
type claim struct {
	wire.ClaimTasks
	lease    time.Duration
	declared handled         // by its workspace
	busy     map[string]bool // batches and runs at which an earlier try of the transaction gave way
	signer   tokens.Signer
}

// taskKind is a kind of tasks: how they are taken, whose expired leases end first, and what there must be.
type taskKind struct {
	take func(holdfast.Doer, *wire.Tasks, claim) error
	held string
	due  []wake.Need
}

func (c *call) taskKinds(handlers []string, now handled) []taskKind {
	var names []string
	for _, x := range now.servedBy(handlers) {
		names = append(names, x.Name)
	}
	return []taskKind{
		{c.takeOperations, wake.HeldOperation, wake.Needs(wake.Operation, lifecycleengine.TaskQueues(c.key.Workspace, handlers)...)},
		{c.takeEvents, wake.HeldReaction, wake.Needs(wake.Reaction, names...)},
		{c.takeItems, wake.HeldItem, wake.Needs(wake.Batch, handlers...)},
		{c.takeSteps, wake.HeldStep, wake.Needs(wake.Step, handlers...)},
	}
}

// takeTasks takes tasks of the kinds of which something is due; in a transaction of the first of them that there are any of.
func (c *call) takeTasks(d holdfast.Doer, kinds []taskKind, due map[wake.Need]bool, a claim) (out wire.Tasks, until time.Time, err error) {
	out.Tasks = []wire.Task{}
	// Each kind is first in its turn, so that none starves behind the others.
	first := int(c.api.turns.Add(1) % int64(len(kinds)))
	_, whole := d.(*store.Tx)
	for i := range kinds {
		k := kinds[(first+i)%len(kinds)]
		if err == nil && len(out.Tasks) < a.Limit && !(whole && len(out.Tasks) > 0) && slices.ContainsFunc(k.due, func(n wake.Need) bool { return due[n] }) {
			err = takeSome(k, d, &out, a)
		}
	}
	if len(out.Tasks) > 0 && !whole { // they are held: who asked is to know
		err = nil
	}
	for i, t := range out.Tasks {
		until = firstEnd(until, t.Until)
		out.Tasks[i].ID = a.signer.Task(c.key.Workspace, t.ID, t.Epoch, t.Handler)
	}
	return out, until, err
}

// serves refuses what is not for the handlers that the API key is restricted to.
func (c *call) serves(handler string) error {
	if c.key.Serves(handler) {
		return nil
	}
	return fault.New(fault.Forbidden, "the API key does the tasks of %q alone", c.key.Handlers)
}

// unrestricted refuses what is taken by hand, for no handler.
func (c *call) unrestricted() error { return c.serves("") }

// handedOut returns the id of a task that was given to a worker, for a handler that the API key serves.
func (c *call) handedOut(signed string, epoch int64) (id string, err error) {
	if err := checkEpoch(epoch); err != nil {
		return "", err
	}
	signer, err := c.api.signers.Signer(c.ctx(), c.api.engine)
	if err != nil {
		return "", err
	}
	id, handler, err := signer.Open(c.key.Workspace, signed, epoch)
	if err == nil {
		err = c.serves(handler)
	}
	return id, err
}

// handOutStep is how many leases are taken at once: so many may be given out beyond the bytes of a page, because
// their size is known only when they are taken.
const handOutStep = 16

// takeSome takes tasks of a kind, until it has none left, there are enough, or they have the bytes of a page.
func takeSome(k taskKind, d holdfast.Doer, out *wire.Tasks, a claim) error {
	for limit := a.Limit; len(out.Tasks) < limit && bytesOf(out.Tasks) < store.PageBytes; {
		a.Limit = min(limit, len(out.Tasks)+handOutStep)
		if err := k.take(d, out, a); err != nil || len(out.Tasks) < a.Limit {
			return err
		}
	}
	return nil
}

// bytesOf is how large the documents of tasks are.
func bytesOf(all []wire.Task) (n int) {
	for _, t := range all {
		n += len(t.Input) + len(t.Context.Input) + len(t.Context.State)
		if e := t.Context.Entity; e != nil {
			n += len(e.Data)
		}
		if e := t.Context.Event; e != nil {
			n += len(e.Data)
		}
	}
	return n
}

// takeOperations takes steps that the handlers do.
func (c *call) takeOperations(d holdfast.Doer, out *wire.Tasks, a claim) error {
	taken, err := lifecycleengine.TakeTasks(c.ctx(), c.api.engine, store.DoerOf(d), a.Worker, a.Handlers, a.Limit-len(out.Tasks), a.lease)
	for _, t := range taken {
		out.Tasks = append(out.Tasks, taskOf(t))
	}
	return err
}

// takeEvents takes events of reactions, and after-effects, that the handlers serve.
func (c *call) takeEvents(d holdfast.Doer, out *wire.Tasks, a claim) error {
	served := a.declared.servedBy(a.Handlers)
	names := make(map[string]reactions.Info, len(served))
	for _, x := range served {
		names[x.Name] = x
	}
	taken, err := reactions.TakeTasks(c.ctx(), store.DoerOf(d), reactions.Ask{Reactions: served, Holder: a.Worker, Limit: a.Limit - len(out.Tasks), Lease: a.lease,
		Every: lifecycleengine.IsAfter, Wants: func(l *reactions.Lease, e events.Event) (bool, error) {
			if x := names[l.Reaction]; lifecycleengine.IsAfter(x) {
				return lifecycleengine.WantsAfter(x.Options.Handler, e)
			}
			return true, nil
		}})
	for _, t := range taken {
		if !lifecycleengine.IsAfter(t.Reaction) {
			out.Tasks = append(out.Tasks, eventTask(t))
			continue
		}
		x, err := lifecycleengine.AfterTask(c.ctx(), c.api.engine, t)
		if err != nil { // it runs out, and is taken again
			c.api.log.Warn("an after-effect could not be given out", "reaction", t.Reaction.Name, "stream", t.Lease.Stream, "error", err)
			continue
		}
		out.Tasks = append(out.Tasks, taskOf(x))
	}
	return err
}

// takeItems takes items of batches that the handlers do.
func (c *call) takeItems(d holdfast.Doer, out *wire.Tasks, a claim) error {
	taken, err := batches.Take(c.ctx(), store.DoerOf(d), batches.Ask{Handlers: a.Handlers, Kind: "worker", Holder: a.Worker, Elsewhere: true, Limit: a.Limit - len(out.Tasks), Lease: a.lease, Busy: a.busy})
	for _, t := range taken {
		x := wire.Task{ID: t.TaskID(), Epoch: t.Epoch, Handler: t.Handler, Kind: "batchItem", Input: t.Input, Attempt: t.Attempt(), Until: wire.At(t.Until),
			IdempotencyKey: t.Operation(), Context: wire.TaskContext{Batch: t.Batch, Item: t.Key, ArtifactPrefix: prefixOf(t)}}
		out.Tasks = append(out.Tasks, x)
	}
	return err
}

// prefixOf is where an item may put artifacts, if there is a store for them.
func prefixOf(t batches.Taken) string {
	if !t.Artifacts {
		return ""
	}
	return batch.Prefix(t.Workspace, t.Batch, t.Key)
}

func eventTask(t reactions.Task) wire.Task {
	e := toldEvent(t.Event)
	return wire.Task{ID: t.ID(), Epoch: t.Lease.Epoch, Handler: t.Reaction.Options.Handler, Kind: "reaction", Input: t.Event.Data, Attempt: t.Lease.Attempt(),
		Until: wire.At(t.Lease.Until), IdempotencyKey: t.Lease.Operation(t.Event.Version), Context: wire.TaskContext{Reaction: t.Reaction.Name, Event: &e}}
}

// await looks until something is found, or for so long, or until the server stops, or until others wait for the room that the request has.
func (c *call) await(wait time.Duration, topics []string, look func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(c.ctx(), min(max(wait, 0), longestWait))
	defer cancel()
	c.share.keep(2 * len(c.body)) // which is as sent and as read
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		heard, leave := c.api.engine.Hub().Wait(topics...)
		err := c.still()
		found := false
		if err == nil {
			found, err = look()
		}
		if err == nil && !found && ctx.Err() == nil && !c.api.stopping.Load() && !c.share.wanted() {
			c.pause(ctx, heard, pause)
			leave()
			continue
		}
		leave()
		return err
	}
}

func taskOf(t lifecycleengine.Task) wire.Task {
	e := entityOf(t.Lifecycle, t.Entity)
	w := wire.Task{ID: t.ID, Epoch: t.Epoch, Handler: t.Handler, Kind: t.Kind, Input: t.Input, Attempt: t.Attempt, Until: wire.At(t.Until), IdempotencyKey: t.Operation,
		Context: wire.TaskContext{StepKey: t.Step, Requester: t.Requester, Entity: &e}}
	if len(w.Input) == 0 {
		w.Input = raw("null")
	}
	return w
}

type completeTaskIn struct {
	ID   string `path:"id"`
	Body wire.CompleteTask
}

// checkEpoch refuses a call that does not say which hold it means.
func checkEpoch(epoch int64) error {
	if epoch > 0 {
		return nil
	}
	return fault.New(fault.Validation, "epoch is that of the hold, 1 or more").With("pointer", "/epoch")
}

func completeTask(c *call, in *completeTaskIn) (_ wire.EndedTask, err error) {
	if in.ID, err = c.handedOut(in.ID, in.Body.Epoch); err != nil {
		return wire.EndedTask{}, err
	}
	if reactions.IsTask(in.ID) {
		if len(in.Body.State) > 0 {
			return wire.EndedTask{}, fault.New(fault.Validation, "only an action has a state").With("pointer", "/state")
		}
		version, err := reactions.CompleteTask(c.ctx(), c.api.engine, in.ID, in.Body.Epoch)
		return wire.EndedTask{Status: "acked", Version: version}, err
	}
	if batches.IsTask(in.ID) {
		return completeItem(c, in)
	}
	if isStep(in.ID) {
		return completeStep(c, in)
	}
	e, err := lifecycleengine.CompleteTask(c.ctx(), c.api.engine, in.ID, in.Body.Epoch, in.Body.Output, in.Body.State)
	return endedTask(e), err
}

// completeItem ends an item that is done.
func completeItem(c *call, in *completeTaskIn) (wire.EndedTask, error) {
	if len(in.Body.State) > 0 {
		return wire.EndedTask{}, fault.New(fault.Validation, "only an action has a state").With("pointer", "/state")
	}
	t, err := batches.TaskOf(c.ctx(), c.api.engine, in.ID, in.Body.Epoch)
	if err != nil {
		return wire.EndedTask{}, err
	}
	e, err := batches.Settle(c.ctx(), c.api.engine, t, in.Body.Output)
	return wire.EndedTask{Status: e.State}, err
}

func endedTask(e rawEntity) wire.EndedTask {
	return wire.EndedTask{Status: e.Status, Version: e.Version}
}

type failTaskIn struct {
	ID   string `path:"id"`
	Body wire.FailTask
}

func failTask(c *call, in *failTaskIn) (_ wire.EndedTask, err error) {
	b := in.Body
	if in.ID, err = c.handedOut(in.ID, b.Epoch); err != nil {
		return wire.EndedTask{}, err
	}
	retryable := b.Retryable == nil || *b.Retryable
	if reactions.IsTask(in.ID) {
		if b.Message == "" { // without one it would be no failure
			return wire.EndedTask{}, fault.New(fault.Validation, "message says what went wrong").With("pointer", "/message")
		}
		version, f, err := reactions.FailTask(c.ctx(), c.api.engine, in.ID, b.Epoch, b.Message, retryable && !b.Invalid)
		out := wire.EndedTask{Status: "failed", Version: version, NotBefore: wire.At(f.NotBefore)}
		if f.Blocked {
			out.Status = "blocked"
		}
		if f.Skipped {
			out.Status = "skipped"
		}
		return out, err
	}
	if batches.IsTask(in.ID) {
		t, err := batches.TaskOf(c.ctx(), c.api.engine, in.ID, b.Epoch)
		if err != nil {
			return wire.EndedTask{}, err
		}
		e, err := batches.Fail(c.ctx(), c.api.engine, t, b.Message, batches.Pause(t.Failures+1), b.Invalid || !retryable)
		return wire.EndedTask{Status: e.State}, err
	}
	if isStep(in.ID) {
		return failStep(c, in)
	}
	e, err := lifecycleengine.FailTask(c.ctx(), c.api.engine, in.ID, b.Epoch, b.Message, retryable, b.Invalid)
	return endedTask(e), err
}

type renewTaskIn struct {
	ID   string `path:"id"`
	Body wire.Renew
}

func renewTask(c *call, in *renewTaskIn) (_ wire.Renewed, err error) {
	if in.ID, err = c.handedOut(in.ID, in.Body.Epoch); err != nil {
		return wire.Renewed{}, err
	}
	lease := hold.Lease
	if in.Body.LeaseMs != 0 {
		lease = span(in.Body.LeaseMs)
	}
	if batches.IsTask(in.ID) {
		return renewItem(c, in, lease)
	}
	if isStep(in.ID) {
		return renewStep(c, in, lease)
	}
	if reactions.IsTask(in.ID) {
		if err := entities.CheckLease(lease); err != nil {
			return wire.Renewed{}, err
		}
		r, err := reactions.RenewTask(c.ctx(), c.api.engine, in.ID, in.Body.Epoch, lease, func(handler string) (time.Duration, error) {
			h, err := handlers.Get(c.ctx(), c.api.engine, handler)
			if fault.CodeOf(err) == fault.NotFound {
				err = nil // it was taken away meanwhile
			}
			return cmp.Or(h.Timeout, hold.Timeout), err
		})
		return wire.Renewed{Until: wire.At(r.Until), CancelRequested: r.CancelRequested}, err
	}
	until, err := lifecycleengine.RenewTask(c.ctx(), c.api.engine, in.ID, in.Body.Epoch, lease)
	return wire.Renewed{Until: wire.At(until)}, err
}

// renewItem extends the hold on an item, and tells whether its batch is to be cancelled.
func renewItem(c *call, in *renewTaskIn, lease time.Duration) (wire.Renewed, error) {
	if err := entities.CheckLease(lease); err != nil {
		return wire.Renewed{}, err
	}
	t, err := batches.TaskOf(c.ctx(), c.api.engine, in.ID, in.Body.Epoch)
	if err != nil {
		return wire.Renewed{}, err
	}
	r, err := batches.Renew(c.ctx(), c.api.engine, t, lease)
	return wire.Renewed{Until: wire.At(r.Until), CancelRequested: r.CancelRequested}, err
}

type taskEffectIn struct {
	ID   string `path:"id"`
	Body wire.EffectCall
}

func journalTaskEffect(c *call, in *taskEffectIn) (_ wire.EffectState, err error) {
	b := in.Body
	if in.ID, err = c.handedOut(in.ID, b.Epoch); err != nil {
		return wire.EffectState{}, err
	}
	in.ID = strings.TrimSuffix(in.ID, journalMark)
	if err := checkEffect(b); err != nil {
		return wire.EffectState{}, err
	}
	if reactions.IsTask(in.ID) || batches.IsTask(in.ID) {
		return wire.EffectState{}, fault.New(fault.Validation, "effects are those of actions and of steps of runs: an event or an item is repeated, under the same idempotencyKey, until it is done")
	}
	if isStep(in.ID) {
		return journalStepEffect(c, in.ID, b)
	}
	x, err := lifecycleengine.TaskEffect(c.ctx(), c.api.engine, in.ID, b.Epoch, b.Name, b.Ordinal, b.Result, b.NotDone)
	return wire.EffectState{Key: x.Key, State: x.State, Result: x.Result}, err
}

// checkEffect refuses what cannot be journaled.
func checkEffect(b wire.EffectCall) error {
	if err := effects.CheckCall(b.Name, b.Ordinal); err != nil {
		return err
	}
	if b.NotDone && len(b.Result) > 0 {
		return fault.New(fault.Validation, "an effect has a result, or is not done")
	}
	return nil
}
