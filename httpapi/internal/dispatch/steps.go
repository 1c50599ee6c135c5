package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/lifecycleengine"
	"github.com/holdfast-go/holdfast/internal/remotehandler"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
	"github.com/holdfast-go/holdfast/internal/wake"
	"github.com/holdfast-go/holdfast/wire"
)

// stepper has URLs do the steps of runs, in all workspaces. A name may be that of one URL
// here and of another there, with another safety: so what is known of a handler is looked up
// in the workspace of each step, before that is taken.
type stepper struct {
	*urlDispatcher
	worker   *runengine.Worker // it keeps the holds, and records how they end
	capacity *lease.Capacity
	finder   runengine.Finder
	bodies   sync.WaitGroup
}

// stepsAgain wakes who has URLs do steps, when there is room for one who could have none.
const stepsAgain = "steps/http"

func newStepper(s *urlDispatcher) *stepper {
	e := s.engine
	p := &stepper{urlDispatcher: s, capacity: lease.NewCapacity(calledAtOnce, e.Alone, func() { e.Hub().WakeHere(stepsAgain) }).ByHandler()}
	p.finder.Order, p.finder.Capacity = &p.capacity.Order, p.capacity
	p.worker = &runengine.Worker{Engine: e, Executor: runengine.LocalOf(e).Executor, Hub: e.Hub(), Log: e.Log(), Name: e.Node(), Kind: "http",
		Handlers: func() map[string]runengine.Handled { return nil }, Body: p.step}
	return p
}

// run takes steps until ctx ends, and then waits for the calls that are under way.
func (p *stepper) run(ctx context.Context) {
	defer p.bodies.Wait()
	if p.box == nil { // it could sign nothing: others do
		return
	}
	poll := wake.Poller{Hub: p.engine.Hub(), Topics: []string{runengine.Made, remotehandler.Topic, stepsAgain}, Log: p.engine.Log(), Poll: p.poll,
		WorkKinds: func() []wake.WorkKind { return wake.WorkKinds(wake.Step, p.urls()...) }}
	poll.Run(ctx)
}

// poll takes what there is room for.
func (p *stepper) poll(ctx context.Context) (found bool, err error) {
	names := p.urls()
	if len(names) == 0 {
		return false, nil
	}
	shards, err := p.engine.Shards(ctx)
	for _, shard := range shards {
		some, failed := p.pollShard(ctx, shard, names)
		found, err = found || some, errors.Join(err, failed)
	}
	return found, err
}

func (p *stepper) pollShard(ctx context.Context, shard int16, names []string) (found bool, err error) {
	if err := p.capacity.Wait(ctx); err != nil {
		return false, err
	}
	ready, found, err := p.finder.Find(ctx, p.engine, store.Partition{Shard: shard}, names, "http", calledAtOnce)
	if err != nil {
		return false, err
	}
	// What was taken is served also when the node stops meanwhile: it would count as a death.
	in, cancel := context.WithTimeout(context.WithoutCancel(ctx), lease.DefaultDuration)
	defer cancel()
	for i := range ready {
		s := lease.Share{Workspace: ready[i].Run.Workspace, Handler: ready[i].Step.Handler}
		if p.capacity.Take(s, 1) == 0 {
			if p.capacity.Left() == 0 { // it looks again when there is some
				return true, err
			}
			continue
		}
		l, ok, failed := p.take(in, &ready[i])
		err = errors.Join(err, failed) // one that cannot be taken must not hold up the others
		if !ok {
			p.capacity.Free(s, 1)
			continue
		}
		found = true
		p.bodies.Go(func() {
			defer p.capacity.Free(s, 1)
			p.worker.Serve(ctx, l)
		})
	}
	return found, err
}

// take takes a step, as its workspace has declared the handler.
func (p *stepper) take(ctx context.Context, l *runengine.ClaimedStep) (runengine.ClaimedStep, bool, error) {
	ctx = store.InWorkspace(ctx, l.Run.Workspace)
	h, err := remotehandler.Get(ctx, p.engine, l.Step.Handler)
	if fault.CodeOf(err) == fault.NotFound || err == nil && h.Kind != "http" { // since it was found
		return *l, false, nil
	}
	if err != nil {
		return *l, false, err
	}
	return p.worker.Executor.Take(ctx, p.engine, l, runengine.Handled{Safety: h.Safety, Unknown: h.OnUnknown, Timeout: h.Timeout}, p.worker.Taker())
}

// step has a URL do a step of a run. One of which an earlier attempt may have acted is asked
// first, where it can be asked.
func (p *stepper) step(ctx context.Context, l *runengine.ClaimedStep) (runengine.Done, error) {
	h, err := remotehandler.Get(ctx, p.engine, l.Step.Handler)
	if err == nil && h.Kind != "http" { // since it was taken
		err = fault.New(fault.Unavailable, "the handler %q is not a URL any more", h.Name)
	}
	if err != nil {
		return runengine.Done{}, err
	}
	doubtful, err := l.Doubtful(ctx, p.engine)
	if err != nil {
		return runengine.Done{}, runengine.MayHaveActed(err)
	}
	call := callOf(l.Remote())
	if doubtful && l.Step.Unknown == string(effects.Probe) {
		a, err := p.asked(ctx, h, l, call)
		if err != nil || a.Happened {
			return runengine.Done{Output: a.Output, Patch: a.State, Whole: true}, err
		}
		doubtful = false
	}
	if l.Step.Safety == "journaled" {
		signer, err := p.signers.Signer(ctx, p.engine)
		if err != nil {
			return runengine.Done{}, runengine.MayHaveActed(err)
		}
		call.Task, call.Epoch = signer.Task(l.Run.Workspace, l.JournalID(), l.Step.Epoch, h.Name), l.Step.Epoch
	}
	a, err := p.called(ctx, h, l, call)
	if now, failed := l.Now(context.WithoutCancel(ctx), p.engine); failed == nil { // it may have journaled meanwhile
		l.Step.Begun = now.Step.Begun
	}
	if err != nil && doubtful { // what it says now is no word on an earlier attempt
		err = runengine.MayHaveActed(err)
	}
	return runengine.Done{Output: a.Output, Patch: a.State, Whole: true}, err
}

// asked asks a URL whether it has acted. Whatever is no answer to that leaves it open.
func (p *stepper) asked(ctx context.Context, h remotehandler.Handler, l *runengine.ClaimedStep, call wire.HandlerCall) (lifecycleengine.RemoteAnswer, error) {
	call.Kind = "probe"
	a, err := p.called(ctx, h, l, call)
	if err == nil && !a.Reported {
		err = errors.New("it did not say whether it has acted (happened)")
	}
	if err != nil {
		err = runengine.MayHaveActed(fault.New(fault.Unavailable, "the handler %q was asked whether it has acted: %s", h.Name, err))
	}
	return a, err
}

// called calls a URL, and says of every end what is known.
func (p *stepper) called(ctx context.Context, h remotehandler.Handler, l *runengine.ClaimedStep, call wire.HandlerCall) (lifecycleengine.RemoteAnswer, error) {
	body := ctx
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(l.Step.Timeout, lease.Timeout))
	defer cancel()
	a, err := p.send(ctx, h, call)
	switch {
	case err != nil && body.Err() != nil: // this node stops, or the step is not wanted any more
		return a, runengine.MayHaveActed(body.Err())
	case errors.Is(err, lifecycleengine.ErrNoResponse):
		return a, runengine.MayHaveActed(err)
	case fault.CodeOf(err) == fault.ActionInvalid: // it refuses the step, and would again
		return a, holdfast.NonRetryable(err)
	case err != nil:
		return a, err
	}
	if err := keepable(a); err != nil { // it has acted, whatever it answers
		return a, runengine.MayHaveActed(err)
	}
	return a, nil
}

// keepable refuses an answer that cannot be kept.
func keepable(a lifecycleengine.RemoteAnswer) error {
	var err error
	if len(a.Output) > 0 {
		err = strictjson.Check(a.Output)
	}
	if len(a.State) > 0 && err == nil {
		err = strictjson.Object(a.State)
	}
	if err != nil {
		err = holdfast.NonRetryable(fmt.Errorf("what it answered cannot be used: %w", err))
	}
	return err
}
