package httpapi

import (
	"slices"

	"github.com/holdfast-go/holdfast/httpapi/internal/table"
	"github.com/holdfast-go/holdfast/internal/keys"
)

// Route is a route as tests see it.
type Route struct {
	Method, Path, ID string
	Policy           bool // it names who may ask
	Keyed            bool // it takes an Idempotency-Key
	May              func(keys.Role) bool
}

// Routes returns the table of routes.
func (a *API) Routes() []Route {
	all := make([]Route, len(a.table))
	for i, r := range a.table {
		all[i] = Route{r.Method, r.Path, r.ID, r.Roles != nil, r.Idempotency != table.Never, r.May}
	}
	return all
}

// Roles returns the roles that a route names, besides admin.
func (a *API) Roles(id string) []keys.Role {
	i := slices.IndexFunc(a.table, func(r *route) bool { return r.ID == id })
	return a.table[i].Roles
}

// CursorOf makes a cursor, as one who has read the source can.
func CursorOf(list, after string) string { return cursorOf(list, after) }
