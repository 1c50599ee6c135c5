package run

import (
	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/runengine"
)

// Maintain is for the packages of this module, and of no use outside it: it has an engine do
// what runs need of it, while it runs. What a program has brought before is left as it is.
func Maintain(e *holdfast.Engine) {
	k := maintenanceOf(engine.Of(e))
	k.addDefault(runengine.TransitionHandler, &handler{Handled: runengine.Handled{Safety: "idempotent"}, body: k.transition})
	k.start()
}

// addDefault makes a handler known, unless there is one.
func (k *maintenance) addDefault(name string, h *handler) {
	k.mu.Lock()
	there := k.handlers[name] != nil
	k.mu.Unlock()
	if !there {
		_ = k.add(name, h) // somebody was first
	}
}

// replace makes a handler known, whoever did that before.
func (k *maintenance) replace(name string, h *handler) {
	k.mu.Lock()
	delete(k.handlers, name)
	k.mu.Unlock()
	_ = k.add(name, h) // there is none
}

// Published is for the packages of this module, and of no use outside it: it has an engine serve
// runs that come through the API. What a program has brought before is left as it is.
func Published(c Caller) holdfast.Part { return calling(c, "run.Door", (*maintenance).addDefault) }
