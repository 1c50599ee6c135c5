package lifecycle

import (
	"context"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/lifecycleengine"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Inner is the lifecycle behind a public one.
func Inner[E any](l *Lifecycle[E]) *lifecycleengine.Lifecycle { return l.inner }

// Inner is the claim behind a public one.
func (c *Claim[E]) Inner() *lifecycleengine.Claim { return c.inner }

// Beginning is an option that the HTTP API has.
func Beginning(f func(context.Context, *store.Tx, string) error) FireOption {
	return fireOption(func(o *lifecycleengine.FireOptions) { o.Begin = f })
}

// Published makes an engine serve published lifecycles, as the HTTP API does.
type Published func(context.Context, lifecycleengine.RemoteCall) (lifecycleengine.RemoteAnswer, error)

// Register is called by holdfast.Open.
func (d Published) Register(ctx context.Context, e *holdfast.Engine) error {
	return lifecycleengine.ServePublished(ctx, engine.Of(e), lifecycleengine.Caller(d), nil)
}
