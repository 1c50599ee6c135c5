package httpapi

import (
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/keys"
)

// base is where the API begins.
const base = "/api/v1/"

// route is one thing that can be asked for. Everything that is known of it stands
// here: who may ask, what it takes and gives, and how a repetition is recognised. The
// OpenAPI document and the tests of every route are made from it.
type route struct {
	method, path string // "lifecycles/{name}/entities"
	// id names the operation in the OpenAPI document, and the client's function.
	id, tag, summary string
	more             string      // what the doc of the client's function says beyond the summary
	filter           string      // the client's type of what chooses the items of a list; "" takes one by one
	roles            []keys.Role // besides admin, who may do everything
	status           int         // of success
	also             int         // another one of success, 0 for none
	once             once
	stream           bool        // it may answer with a stream of events
	drawn            bool        // it may answer with a picture
	conditional      bool        // what it shows or changes has an entity tag, which a caller may name
	merges           bool        // its body is a merge patch
	before           func(*call) // looks up, before a transaction begins, what cannot be looked up in it
	update           update      // runs the transaction of a request with a key; nil: as it is
	in               *input
	out              reflect.Type
	serve            func(*call) (any, error)

	parts []string
}

// once is how a request that has a key is kept from being done twice.
type once uint8

const (
	// never is for what changes nothing.
	never once = iota
	// inTx is for what is one transaction: the answer is stored in it.
	inTx
	// underHold is for what is more than one: the key is held while it is worked
	// on, and a repetition after a crash is the same as a second call.
	underHold
	// asOperation is for what begins an operation: the key points to it.
	asOperation
	// asHandOut is for what hands out leases: the key and they are one transaction, and it
	// is kept as long as they are. See [call.handOut].
	asHandOut
)

// known are those who may do some things.
var (
	readers   = []keys.Role{keys.Read, keys.Operate, keys.Worker}
	operators = []keys.Role{keys.Operate}
	workers   = []keys.Role{keys.Worker, keys.Operate}
	admins    = []keys.Role{}
)

// may says whether a role may ask for the route. A route that names nobody is for
// nobody: that is a mistake.
func (r *route) may(role keys.Role) bool {
	return r.roles != nil && (role == keys.Admin || slices.Contains(r.roles, role))
}

// add adds a route. What a handler takes is a struct: fields with a tag path or
// query, and Body.
func add[I, O any](a *API, r route, f func(*call, *I) (O, error)) {
	r.in, r.out = inputOf(reflect.TypeFor[I]()), reflect.TypeFor[O]()
	r.parts = strings.Split(r.path, "/")
	if r.status == 0 {
		r.status = http.StatusOK
	}
	r.serve = func(c *call) (any, error) {
		in := new(I)
		if err := c.bind(reflect.ValueOf(in).Elem(), r.in); err != nil {
			return nil, err
		}
		out, err := f(c, in)
		if nothing, ok := any(out).(*struct{}); ok && nothing == nil {
			return nil, err // and not a nil of a type, which would be shown as null
		}
		return out, err
	}
	a.table = append(a.table, &r)
}

// find returns the route of a request, and what its path says.
func (a *API) find(r *http.Request) (*route, map[string]string, error) {
	rest, ok := strings.CutPrefix(r.URL.EscapedPath(), base)
	if !ok {
		return nil, nil, nothingHere()
	}
	parts := strings.Split(rest, "/")
	for i, p := range parts {
		var err error
		if parts[i], err = url.PathUnescape(p); err != nil || p == "" || p == "." || p == ".." {
			return nil, nil, nothingHere()
		}
		if strings.ContainsRune(parts[i], 0) {
			return nil, nil, fault.New(fault.Validation, "the path has a NUL in it")
		}
	}
	var allowed []string
	for _, x := range a.table {
		values, ok := x.match(parts)
		if !ok {
			continue
		}
		if x.method == r.Method || x.method == http.MethodGet && r.Method == http.MethodHead {
			return x, values, nil
		}
		allowed = append(allowed, x.method)
		if x.method == http.MethodGet {
			allowed = append(allowed, http.MethodHead)
		}
	}
	if len(allowed) > 0 {
		slices.Sort(allowed)
		list := strings.Join(slices.Compact(allowed), ", ")
		return nil, nil, fault.New(fault.MethodNotAllowed, "this path takes %s", list).With("allow", list)
	}
	return nil, nil, nothingHere()
}

func nothingHere() *fault.Error { return fault.New(fault.NotFound, "there is nothing at this path") }

func (r *route) match(parts []string) (values map[string]string, ok bool) {
	if len(parts) != len(r.parts) {
		return nil, false
	}
	for i, p := range r.parts {
		if name, variable := strings.CutPrefix(p, "{"); variable {
			if values == nil {
				values = make(map[string]string, 2)
			}
			values[strings.TrimSuffix(name, "}")] = parts[i]
		} else if p != parts[i] {
			return nil, false
		}
	}
	return values, true
}
