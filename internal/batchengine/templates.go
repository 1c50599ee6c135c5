package batchengine

// Templates are what the batches of an engine are made with, by the handlers of their items. They are complete when the
// engine is open.
type Templates struct {
	Artifacts bool // the engine has a store for them
	kinds     map[string]New
}

type templatesKey struct{}

// TemplatesOf returns those of an engine.
func TemplatesOf(e interface {
	Shared(key any, make func() any) any
}) *Templates {
	return e.Shared(templatesKey{}, func() any { return &Templates{kinds: make(map[string]New)} }).(*Templates)
}

// Add adds a kind of the program's own, unless there is one of that name.
func (t *Templates) Add(handler string, n New) bool {
	if _, there := t.kinds[handler]; there {
		return false
	}
	t.kinds[handler] = n
	return true
}

// Of returns what a batch is made with whose items a handler does, and whether that is a kind of the program's own.
func (t *Templates) Of(handler string) (n New, ours bool) {
	n, ours = t.kinds[handler]
	n.Handler, n.Artifacts = handler, t.Artifacts
	return n, ours
}
