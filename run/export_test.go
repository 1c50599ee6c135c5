package run

import (
	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/runengine"
)

// WorkerOf is the worker of an engine, for tests that step it by hand.
func WorkerOf(e *holdfast.Engine) *runengine.Worker { return maintenanceOf(engine.Of(e)).Worker }
