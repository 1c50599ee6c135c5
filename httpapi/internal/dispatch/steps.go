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

// stepper calls URLs for steps of runs, in all workspaces. The same name may be a different URL
// with a different safety in another workspace, so the handler is read in the workspace of each
// step before the step is taken.
type stepper struct {
	*urlDispatcher
	worker   *runengine.Worker // renews the leases and records the results
	capacity *lease.Capacity
	finder   runengine.Finder
	bodies   sync.WaitGroup
}

// stepsAgain wakes the stepper when there is capacity for a step that had none.
const stepsAgain = "steps/http"

func newStepper(s *urlDispatcher) *stepper {
	e := s.engine
	p := &stepper{urlDispatcher: s, capacity: lease.NewCapacity(calledAtOnce, e.SingleWorkspace, func() { e.Hub().WakeHere(stepsAgain) }).ByHandler()}
	p.finder.Order, p.finder.Capacity = &p.capacity.Order, p.capacity
	p.worker = &runengine.Worker{Engine: e, Executor: runengine.LocalOf(e).Executor, Hub: e.Hub(), Log: e.Log(), Name: e.Node(), Kind: "http",
		Handlers: func() map[string]runengine.Handled { return nil }, Body: p.step}
	return p
}

// run takes steps until ctx ends, and then waits for the calls in flight.
func (p *stepper) run(ctx context.Context) {
	defer p.bodies.Wait()
	if p.box == nil { // it cannot sign calls: other nodes run the steps
		return
	}
	poll := wake.Poller{Hub: p.engine.Hub(), Topics: []string{runengine.Made, urlsLearned, stepsAgain}, Log: p.engine.Log(), Poll: p.poll,
		WorkKinds: p.workKinds}
	poll.Run(ctx)
}

func (p *stepper) workKinds() []wake.WorkKind { return wake.WorkKinds(wake.Step, p.urls()...) }

// stepOnce executes one due step of a workspace before it returns.
func (p *stepper) stepOnce(ctx context.Context, at store.Partition) (found bool, err error) {
	return p.pollShard(ctx, at, p.urls(), 1, func(s lease.Share, l runengine.ClaimedStep) {
		defer p.capacity.Free(s, 1)
		p.worker.Serve(ctx, l)
	})
}

// poll takes as many steps as there is capacity for.
func (p *stepper) poll(ctx context.Context) (found bool, err error) {
	names := p.urls()
	if len(names) == 0 {
		return false, nil
	}
	shards, err := p.engine.Shards(ctx)
	for _, shard := range shards {
		some, failed := p.pollShard(ctx, store.Partition{Shard: shard}, names, calledAtOnce, func(s lease.Share, l runengine.ClaimedStep) {
			p.bodies.Go(func() {
				defer p.capacity.Free(s, 1)
				p.worker.Serve(ctx, l)
			})
		})
		found, err = found || some, errors.Join(err, failed)
	}
	return found, err
}

// pollShard takes about limit due steps, as far as there is capacity, and calls serve for each.
func (p *stepper) pollShard(ctx context.Context, at store.Partition, names []string, limit int, serve func(lease.Share, runengine.ClaimedStep)) (found bool, err error) {
	if err := p.capacity.Wait(ctx); err != nil {
		return false, err
	}
	ready, found, err := p.finder.Find(ctx, p.engine, at, names, "http", limit)
	if err != nil {
		return false, err
	}
	// Taken steps are served even if the node stops meanwhile: otherwise they would count as
	// crashed.
	in, cancel := context.WithTimeout(context.WithoutCancel(ctx), lease.DefaultDuration)
	defer cancel()
	for i := range ready {
		s := lease.Share{Workspace: ready[i].Run.Workspace, Handler: ready[i].Step.Handler}
		if p.capacity.Take(s, 1) == 0 {
			if p.capacity.Left() == 0 { // it polls again when there is capacity
				return true, err
			}
			continue
		}
		l, ok, failed := p.take(in, &ready[i])
		err = errors.Join(err, failed) // a step that cannot be taken must not delay the others
		if !ok {
			p.capacity.Free(s, 1)
			continue
		}
		found = true
		serve(s, l)
	}
	return found, err
}

// take takes a step with the handler that its workspace has declared.
func (p *stepper) take(ctx context.Context, l *runengine.ClaimedStep) (runengine.ClaimedStep, bool, error) {
	ctx = store.InWorkspace(ctx, l.Run.Workspace)
	h, err := remotehandler.Get(ctx, p.engine, l.Step.Handler)
	if fault.CodeOf(err) == fault.NotFound || err == nil && h.Kind != "http" { // changed since the step was found
		return *l, false, nil
	}
	if err != nil {
		return *l, false, err
	}
	return p.worker.Executor.Take(ctx, p.engine, l, runengine.Handled{Safety: h.Safety, Unknown: h.OnUnknown, Timeout: h.Timeout}, p.worker.Taker())
}

// step calls a URL for a step of a run. If an earlier attempt may have acted and the handler
// supports it, a probe comes first.
func (p *stepper) step(ctx context.Context, l *runengine.ClaimedStep) (runengine.Done, error) {
	h, err := remotehandler.Get(ctx, p.engine, l.Step.Handler)
	if err == nil && h.Kind != "http" { // changed since the step was taken
		err = fault.New(fault.Unavailable, "handler %q is no longer an http handler", h.Name)
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
		a, err := p.probe(ctx, h, l, call)
		if err != nil || a.Happened {
			return runengine.Done{Output: a.Output, Patches: [][]byte{a.State}, Whole: true}, err
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
	a, err := p.callURL(ctx, h, l, call)
	if now, failed := l.Now(context.WithoutCancel(ctx), p.engine); failed == nil { // the handler may have journaled effects meanwhile
		l.Step.Begun = now.Step.Begun
	}
	if err != nil && doubtful { // this response does not reveal whether an earlier attempt has acted
		err = runengine.MayHaveActed(err)
	}
	return runengine.Done{Output: a.Output, Patches: [][]byte{a.State}, Whole: true}, err
}

// probe asks a URL whether it has acted. Without a clear answer it remains open.
func (p *stepper) probe(ctx context.Context, h remotehandler.Handler, l *runengine.ClaimedStep, call wire.HandlerCall) (lifecycleengine.RemoteAnswer, error) {
	call.Kind = "probe"
	a, err := p.callURL(ctx, h, l, call)
	if err == nil && !a.Reported {
		err = errors.New("the response has no \"happened\" field")
	}
	if err != nil {
		err = runengine.MayHaveActed(fault.New(fault.Unavailable, "probe of handler %q failed: %s", h.Name, err))
	}
	return a, err
}

// callURL calls a URL and classifies every result.
func (p *stepper) callURL(ctx context.Context, h remotehandler.Handler, l *runengine.ClaimedStep, call wire.HandlerCall) (lifecycleengine.RemoteAnswer, error) {
	body := ctx
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(l.Step.Timeout, lease.Timeout))
	defer cancel()
	a, err := p.send(ctx, h, call)
	switch {
	case err != nil && body.Err() != nil: // this node is stopping, or the step was cancelled
		return a, runengine.MayHaveActed(body.Err())
	case errors.Is(err, lifecycleengine.ErrNoResponse):
		return a, runengine.MayHaveActed(err)
	case fault.CodeOf(err) == fault.ActionInvalid: // the handler refuses the step, and would refuse it again
		return a, holdfast.NonRetryable(err)
	case err != nil:
		return a, err
	}
	if err := checkAnswer(a); err != nil { // it has acted, whatever the response is
		return a, runengine.MayHaveActed(err)
	}
	return a, nil
}

// checkAnswer refuses a response that cannot be stored.
func checkAnswer(a lifecycleengine.RemoteAnswer) error {
	var err error
	if len(a.Output) > 0 {
		err = strictjson.Check(a.Output)
	}
	if len(a.State) > 0 && err == nil {
		err = strictjson.Object(a.State)
	}
	if err != nil {
		err = holdfast.NonRetryable(fmt.Errorf("the handler's response is invalid: %w", err))
	}
	return err
}
