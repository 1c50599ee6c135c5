package lifecycleengine

import (
	"context"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/remote"
)

// part is a function that a test's engine is started with.
type part func(context.Context, *engine.Engine) error

func (p part) Register(ctx context.Context, e *holdfast.Engine) error { return p(ctx, engine.Of(e)) }

// serving returns a part that serves published lifecycles.
func serving(r Caller) holdfast.Part {
	return part(func(ctx context.Context, e *engine.Engine) error { return ServePublished(ctx, e, r, nil) })
}

// handling returns a lifecycle with one handler, covered by the standard janitor.
func handling(config, kind, name string, f func(context.Context, *Act) error, d Declared) *Lifecycle {
	l, err := Parse([]byte(config))
	if err != nil {
		panic(err)
	}
	l.Handle(kind, name, f, d)
	l.Covered()
	return l
}

// workers returns the remote side of an engine's lifecycles.
func workers(e *holdfast.Engine) Remote { return Remote{Engine: engine.Of(e)} }

// takeTasks takes tasks for a worker.
func takeTasks(ctx context.Context, e *holdfast.Engine, c remote.Claim, limit int) ([]remote.Task, error) {
	o, err := workers(e).Offer(ctx, c)
	if err != nil {
		return nil, err
	}
	return o.Take(ctx, engine.Of(e), limit)
}

// leaseOf returns the lease under which a task was handed out.
func leaseOf(t remote.Task) remote.Lease { return remote.Lease{ID: t.ID, Epoch: t.Epoch} }
