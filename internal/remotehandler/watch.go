package remotehandler

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/store"
)

const (
	// watchEvery is how often a node asks whether something was declared that
	// nobody told it of.
	watchEvery = 5 * time.Second
	// LearnEvery is how often those who serve what is declared read all of it,
	// whatever they were told.
	LearnEvery = time.Minute
)

type watchKey struct{}

// Watch has a running engine wake those who wait for [Topic] when something was
// declared on another node: it is one question for all of them.
func Watch(e Engine) {
	e.Shared(watchKey{}, func() any {
		e.Background(func(ctx context.Context) { watch(ctx, e) })
		return true
	})
}

func watch(ctx context.Context, e Engine) {
	known := int64(-1)
	for clock.Wait(ctx, watchEvery) == nil {
		now, err := store.Declared(ctx, e)
		if err != nil && ctx.Err() == nil {
			e.Log().Warn("asking whether something was declared failed", "error", err)
		}
		if err == nil && now != known {
			known = now
			e.Hub().WakeHere(Topic)
		}
	}
}
