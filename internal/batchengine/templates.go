package batchengine

import "time"

// Templates are the settings of an engine's batches, by handler. They are complete
// when the engine is open.
type Templates struct {
	Artifacts bool          // the engine has an artifact store
	Retention time.Duration // of batches that have none of their own; 0 is forever
	kinds     map[string]New
}

type templatesKey struct{}

// TemplatesOf returns the templates of an engine.
func TemplatesOf(e interface {
	Shared(key any, make func() any) any
}) *Templates {
	return e.Shared(templatesKey{}, func() any { return &Templates{kinds: make(map[string]New)} }).(*Templates)
}

// Add adds the template of a program's handler. It returns false if the handler has
// one already.
func (t *Templates) Add(handler string, n New) bool {
	if _, exists := t.kinds[handler]; exists {
		return false
	}
	t.kinds[handler] = n
	return true
}

// Of returns the template for a handler, and whether the program defined it.
func (t *Templates) Of(handler string) (n New, ours bool) {
	n, ours = t.kinds[handler]
	n.Handler, n.Artifacts = handler, t.Artifacts
	return n, ours
}
