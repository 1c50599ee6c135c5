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
type Checked struct{ prepare, check func(*Engine) error }

// CheckedBy returns a Checked that calls f.
func CheckedBy(f func(*Engine) error) Checked { return Checked{check: f} }

// PreparedBy returns a Checked that calls f before other parts are checked.
func PreparedBy(f func(*Engine) error) Checked { return Checked{prepare: f} }

func (c Checked) checkedPart() Checked { return c }

// CheckParts checks every part that embeds a [Checked], and reports all errors together.
func CheckParts[T any](e *Engine, parts []T) error {
	var prepared, checked []error
	for _, p := range parts {
		if c, ok := any(p).(interface{ checkedPart() Checked }); ok && c.checkedPart().prepare != nil {
			prepared = append(prepared, c.checkedPart().prepare(e))
		}
	}
	for _, p := range parts {
		if c, ok := any(p).(interface{ checkedPart() Checked }); ok && c.checkedPart().check != nil {
			checked = append(checked, c.checkedPart().check(e))
		}
	}
	return errors.Join(append(prepared, checked...)...)
}
