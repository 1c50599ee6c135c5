package run

import (
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/runengine"
)

// WorkerOf is the worker of an engine, for tests that step it by hand.
func WorkerOf(e *holdfast.Engine) *runengine.Worker { return serviceOf(engine.Of(e)).Worker }

// RecordDelay is a part that sets how long the end of a step recorded behind waits for others. The worker then also
// continues with the next step of a run if it is stepped by hand.
func RecordDelay(d time.Duration) holdfast.Part {
	return part(func(e *holdfast.Engine) error {
		w := serviceOf(engine.Of(e)).Worker
		w.RecordDelay, w.TakesNext = d, true
		return nil
	})
}
