// Package table is the table of an API's routes. Everything that is known of a route stands in it: the OpenAPI
// document, the client and the tests of every route are made from it.
package table

import (
	"context"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Base is where the API begins.
const Base = "/api/v1/"

// Route is one thing that can be asked for: who may ask, what it takes and gives, and how a repetition is
// recognised. C is a request in the hands of its handler.
type Route[C any] struct {
	Method, Path string // "lifecycles/{name}/entities"
	// ID names the operation in the OpenAPI document, and the client's function.
	ID, Tag, Summary string
	More             string      // what the doc of the client's function says beyond the summary
	Filter           string      // the client's type of what chooses the items of a list; "" takes one by one
	Roles            []keys.Role // besides admin, who may do everything
	Status           int         // of success
	Also             int         // another one of success, 0 for none
	Idempotency      Idempotency
	Stream           bool    // it may answer with a stream of events
	SVG              bool    // it may answer with a picture
	Conditional      bool    // what it shows or changes has an entity tag, which a caller may name
	Merges           bool    // its body is a merge patch
	Before           func(C) // looks up, before a transaction begins, what cannot be looked up in it
	// Update runs the transaction of a request with a key; nil: as it is.
	Update func(C, func(context.Context, *store.Tx) error) error
	In     *Input
	Out    reflect.Type
	Serve  func(C) (any, error)

	parts []string
}

// Idempotency is how a request that has a key is kept from being done twice.
type Idempotency uint8

const (
	// Never is for what changes nothing.
	Never Idempotency = iota
	// InTx is for what is one transaction: the answer is stored in it.
	InTx
	// UnderLease is for what is more than one: the key is held while it is worked
	// on, and a repetition after a crash is the same as a second call.
	UnderLease
	// AsOperation is for what begins an operation: the key points to it.
	AsOperation
	// AsHandOut is for what hands out leases: the key and they are one transaction, and it
	// is kept as long as they are.
	AsHandOut
)

// May says whether a role may ask for the route. A route that names nobody is for
// nobody: that is a mistake.
func (r *Route[C]) May(role keys.Role) bool {
	return r.Roles != nil && (role == keys.Admin || slices.Contains(r.Roles, role))
}

// Table is all that can be asked for.
type Table[C any] []*Route[C]

// Add adds a route.
func (t *Table[C]) Add(r Route[C]) {
	r.parts = strings.Split(r.Path, "/")
	if r.Status == 0 {
		r.Status = http.StatusOK
	}
	*t = append(*t, &r)
}

// Find returns the route of a request, and what its path says.
func (t Table[C]) Find(r *http.Request) (*Route[C], map[string]string, error) {
	rest, ok := strings.CutPrefix(r.URL.EscapedPath(), Base)
	if !ok {
		return nil, nil, NothingHere()
	}
	parts := strings.Split(rest, "/")
	for i, p := range parts {
		var err error
		if parts[i], err = url.PathUnescape(p); err != nil || p == "" || p == "." || p == ".." {
			return nil, nil, NothingHere()
		}
		if strings.ContainsRune(parts[i], 0) {
			return nil, nil, fault.New(fault.Validation, "the path has a NUL in it")
		}
	}
	var allowed []string
	for _, x := range t {
		values, ok := x.match(parts)
		if !ok {
			continue
		}
		if x.Method == r.Method || x.Method == http.MethodGet && r.Method == http.MethodHead {
			return x, values, nil
		}
		allowed = append(allowed, x.Method)
		if x.Method == http.MethodGet {
			allowed = append(allowed, http.MethodHead)
		}
	}
	if len(allowed) > 0 {
		slices.Sort(allowed)
		list := strings.Join(slices.Compact(allowed), ", ")
		return nil, nil, fault.New(fault.MethodNotAllowed, "this path takes %s", list).With("allow", list)
	}
	return nil, nil, NothingHere()
}

// NothingHere refuses a path that leads nowhere.
func NothingHere() *fault.Error { return fault.New(fault.NotFound, "there is nothing at this path") }

func (r *Route[C]) match(parts []string) (values map[string]string, ok bool) {
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
