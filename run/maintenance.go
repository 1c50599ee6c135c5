package run

import (
	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/runengine"
)

// Maintain starts everything that runs need from a running engine. It is for the packages of this
// module, and of no use outside it. Handlers that the program registered before stay in place.
func Maintain(e *holdfast.Engine) {
	k := maintenanceOf(engine.Of(e))
	k.addDefault(runengine.TransitionHandler, &handler{Handled: runengine.Handled{Safety: "idempotent"}, body: k.transition})
	k.start()
}

// addDefault registers a handler, unless the name has one already.
func (k *maintenance) addDefault(name string, h *handler) {
	k.mu.Lock()
	there := k.handlers[name] != nil
	k.mu.Unlock()
	if !there {
		_ = k.add(name, h) // a concurrent call registered one first
	}
}

// replace registers a handler in place of an earlier one.
func (k *maintenance) replace(name string, h *handler) {
	k.mu.Lock()
	delete(k.handlers, name)
	k.mu.Unlock()
	_ = k.add(name, h) // cannot conflict: the old one was removed
}

// Published lets an engine serve runs that are started through the API. It is for the packages of
// this module, and of no use outside it. Handlers that the program registered before stay in
// place.
func Published(c Caller) holdfast.Part { return calling(c, "run.Published", (*maintenance).addDefault) }
