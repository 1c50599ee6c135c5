package remotehandler

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/store"
)

const (
	// watchEvery is the interval at which a node checks for declarations that it
	// got no notification of.
	watchEvery = 5 * time.Second
	// LearnEvery is the interval at which all declarations are read again, with or
	// without a notification.
	LearnEvery = time.Minute
)

type watchKey struct{}

// Watch makes a running engine wake [store.DeclaredTopic] when another node changed
// a declaration. One query serves all waiters.
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
			e.Log().Warn("failed to check for changed declarations", "error", err)
		}
		if err == nil && now != known {
			known = now
			e.Hub().WakeHere(store.DeclaredTopic)
		}
	}
}
