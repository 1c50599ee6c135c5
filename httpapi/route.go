package httpapi

import (
	"reflect"

	"github.com/holdfast-go/holdfast/httpapi/internal/table"
	"github.com/holdfast-go/holdfast/internal/keys"
)

// route is one route of the API.
type route = table.Route[*call]

// These are the roles that may use a route, in addition to admin.
var (
	readers   = []keys.Role{keys.Read, keys.Operate, keys.Worker}
	operators = []keys.Role{keys.Operate}
	workers   = []keys.Role{keys.Worker, keys.Operate}
	admins    = []keys.Role{}
)

// add adds a route. The input of a handler is a struct whose fields have a path or query tag, or
// are named Body.
func add[I, O any](a *API, r route, f func(*call, *I) (O, error)) {
	r.In, r.Out = table.InputOf(reflect.TypeFor[I]()), reflect.TypeFor[O]()
	bind := func(c *call) (*I, error) {
		in := new(I)
		return in, r.In.Bind(reflect.ValueOf(in).Elem(), table.Request{Request: c.r, Values: c.values, Body: c.body, YAML: c.yaml})
	}
	if _, ok := any(new(I)).(counted); ok {
		r.Units = func(c *call) (int64, error) {
			in, err := bind(c)
			if err != nil {
				return 0, err
			}
			return any(in).(counted).units(c)
		}
	}
	if _, ok := any(new(I)).(repeater); ok {
		r.Repeats = func(c *call) (bool, error) {
			in, err := bind(c)
			if err != nil {
				return false, err
			}
			return any(in).(repeater).repeats(c)
		}
	}
	r.Serve = func(c *call) (any, error) {
		in, err := bind(c)
		if err != nil {
			return nil, err
		}
		out, err := f(c, in)
		if nothing, ok := any(out).(*struct{}); ok && nothing == nil {
			return nil, err // a typed nil would be written as null
		}
		return out, err
	}
	a.table.Add(r)
}
