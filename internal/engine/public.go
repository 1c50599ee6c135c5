package engine

import "github.com/holdfast-go/holdfast/internal/store"

// Public is the interface behind *holdfast.Engine. A type that embeds a [Handle] implements it.
type Public interface{ engine() *Engine }

// Of returns the engine behind a public engine.
func Of(e Public) *Engine { return e.engine() }

type doer = store.DoerHandle

// Handle makes a type that embeds it a [Public] and a [store.PublicDoer].
type Handle struct {
	doer
	is *Engine
}

// HandleOf returns a handle of an engine.
func HandleOf(e *Engine) Handle { return Handle{e.doer, e} }

func (h Handle) engine() *Engine { return h.is }
