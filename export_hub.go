package holdfast

import "github.com/holdfast-go/holdfast/internal/wake"

// HubOf returns where an engine's commits wake waiters. It is for the packages
// of this module that wait.
func HubOf(e *Engine) *wake.Hub { return e.hub }
