// Package remotehandler knows the handlers that are not functions of a program: URLs that
// are called, and workers that ask for tasks. A handler is declared in a workspace, under the name that configs use.
package remotehandler

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// Handler is a handler as it is declared.
type Handler struct {
	Name   string `arg:"name"`
	Kind   string `arg:"kind"` // http or worker
	URL    string `arg:"url"`
	Safety string `arg:"safety"` // idempotent, transactional, journaled, opaque; "" is undeclared
	// OnUnknown is what is done about an effect of which nothing is known: hold,
	// retry or probe.
	OnUnknown string        `arg:"unknown"`
	Timeout   time.Duration `arg:"timeout"` // 0 is the default
	Secret    string        `arg:"secret"`  // sealed
	CreatedAt time.Time
	UpdatedAt time.Time
}

type listArgs struct {
	name   string `arg:"name"`
	behind string `arg:"after"`
	limit  int    `arg:"limit"`
}

var (
	putVerb = store.VerbOf[Handler](store.Decl{Name: "handlers.put", Idempotent: true},
		func(h Handler) []string { return []string{"handler/" + h.Name} },
		store.ScanValue[int64]).Wakes(func(Handler) []string { return []string{Topic} })
	deleteVerb = store.NewVerb(store.Decl{Name: "handlers.delete", Idempotent: true},
		func(name string) []string { return []string{"handler/" + name} },
		store.TextArg("name"),
		store.ScanApplied)
	listVerb = store.VerbOf[listArgs](store.Decl{Name: "handlers.list", Lane: store.Read}, nil,
		func(all *[]Handler, row store.Row) error {
			var h Handler
			var timeout int64
			err := row.Scan(&h.Name, &h.Kind, &h.URL, &h.Safety, &h.OnUnknown, &timeout, &h.Secret, &h.CreatedAt, &h.UpdatedAt)
			h.Timeout = time.Duration(timeout) * time.Millisecond
			*all = append(*all, h)
			return err
		})
)

// Longest is how long a handler may take at the most.
const Longest = 24 * time.Hour

// Check refuses a handler that is none. Its URL is judged by who calls it.
func (h Handler) Check() error {
	if err := strictjson.Text("handler", h.Name, events.MaxName); err != nil {
		return err
	}
	switch {
	case h.Kind != "http" && h.Kind != "worker":
		return fault.New(fault.Validation, "kind is http or worker").With("pointer", "/kind")
	case h.Kind == "worker" && h.URL != "":
		return fault.New(fault.Validation, "a worker has no URL: it asks for its tasks").With("pointer", "/url")
	case h.Timeout < 0 || h.Timeout > Longest:
		return fault.New(fault.Validation, "timeoutMs is 0 to a day").With("pointer", "/timeoutMs")
	}
	switch h.Safety {
	case "", "idempotent", "transactional", "journaled", "opaque":
	default:
		return fault.New(fault.Validation, "safety is idempotent, transactional, journaled or opaque").With("pointer", "/safety")
	}
	switch h.OnUnknown {
	case "hold", "retry", "probe":
		return nil
	}
	return fault.New(fault.Validation, "onUnknown is hold, retry or probe").With("pointer", "/onUnknown")
}

// Put declares a handler, or declares it anew, in the context's workspace, and says
// whether there was none. The registry's revision is raised with it, so that every
// node reads it before it next writes.
func Put(ctx context.Context, tx *store.Tx, h Handler) (created bool, err error) {
	if err := h.Check(); err != nil {
		return false, err
	}
	if _, err := store.Raise(ctx, tx); err != nil {
		return false, err
	}
	n, err := putVerb.Do(ctx, tx, h)
	return n == 1, err
}

// Delete takes a handler away, and says whether there was one.
func Delete(ctx context.Context, tx *store.Tx, name string) (bool, error) {
	if _, err := store.Raise(ctx, tx); err != nil {
		return false, err
	}
	return deleteVerb.Do(ctx, tx, name)
}

// Get returns a handler, or [fault.NotFound].
func Get(ctx context.Context, d store.Doer, name string) (Handler, error) {
	all, err := listVerb.Do(ctx, d, listArgs{name: name, limit: 1})
	return store.First(all, err, func() error { return fault.New(fault.NotFound, "there is no handler %q", name) })
}

// List returns handlers in the order of their names, behind one of them.
func List(ctx context.Context, d store.Doer, behind string, limit int) ([]Handler, error) {
	return listVerb.Do(ctx, d, listArgs{behind: behind, limit: limit})
}
