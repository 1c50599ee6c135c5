package lifecycle

import (
	"context"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/engine"
)

// Sweep is one round of the janitor, in this goroutine.
func Sweep(ctx context.Context, e *holdfast.Engine) error {
	b := boardOf(engine.Of(e))
	if b.door != nil {
		if err := b.door.look(ctx); err != nil {
			return err
		}
	}
	_, err := b.expire(ctx, false)
	if err == nil {
		_, err = b.adopt(ctx)
	}
	return err
}
