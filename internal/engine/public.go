package engine

import (
	"errors"

	"github.com/holdfast-go/holdfast/internal/store"
)

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

// Checked makes a part that embeds it one that is checked before any part is registered.
type Checked struct{ check func() error }

// CheckedBy returns a Checked that calls f.
func CheckedBy(f func() error) Checked { return Checked{f} }

func (c Checked) checkPart() error { return c.check() }

// CheckParts checks every part that embeds a [Checked], and reports all errors together.
func CheckParts[T any](parts []T) error {
	var all []error
	for _, p := range parts {
		if c, ok := any(p).(interface{ checkPart() error }); ok {
			all = append(all, c.checkPart())
		}
	}
	return errors.Join(all...)
}
