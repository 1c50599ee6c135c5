// Package table is the route table of the API. It is the single source of the OpenAPI document, the
// generated client and the tests that cover every route.
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
	"github.com/holdfast-go/holdfast/internal/quota"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Base is the path prefix of the API.
const Base = "/api/v1/"

// Route is one route: its roles, its input and output, and how repetitions of a request are
// recognized. C is the type of a request being served.
type Route[C any] struct {
	Method, Path string // "lifecycles/{name}/entities"
	// ID is the operation id in the OpenAPI document and the name of the client's method.
	ID, Tag, Summary string
	More             string      // added after the summary, in the OpenAPI document and in the doc of the client's method
	Filter           string      // the client's filter type of a list; "" passes parameters separately
	Roles            []keys.Role // in addition to admin, which is always allowed
	Status           int         // status of success
	Also             int         // another status of success, 0 for none
	Idempotency      Idempotency
	Blind            bool // its body has a secret: the fingerprint that is stored with an idempotency key reveals nothing about it
	Stream           bool // it can respond with server-sent events
	SVG              bool // it can respond with an SVG image
	Conditional      bool // its resource has an ETag, for If-Match and If-None-Match
	Merges           bool // its body is a merge patch
	// Adds are the quotas of the workspace that a request uses up. A request that ends work or frees room has none, so that no quota can keep
	// a workspace from getting below it.
	Adds []quota.Kind
	// Frees reports that a request may end work or delete definitions: it makes room.
	Frees bool
	// Before runs before the transaction of a request with an idempotency key. It is for reads
	// that use their own connection, such as those of the lifecycles in a definition; nil does nothing.
	Before func(C)
	// Update runs the transaction of a request with an idempotency key; nil uses Engine.Update.
	Update func(C, func(context.Context, *store.Tx) error) error
	In     *Input
	Out    reflect.Type
	Serve  func(C) (any, error)
	// Units returns how much a request adds to a quota other than storage; nil means 1. One that adds nothing needs no storage either. Repeats
	// reports whether a request adds nothing, because it repeats or replaces something; nil means that it always adds.
	Units   func(C) (int64, error)
	Repeats func(C) (bool, error)

	parts []string
}

// Idempotency is how a request with an idempotency key is kept from taking effect twice.
type Idempotency uint8

const (
	// Never is for requests that change nothing, and for those that start and end a session.
	Never Idempotency = iota
	// InTx is for requests that are one transaction: the response is stored in it.
	InTx
	// InCommand is for requests whose only write is one command that can be grouped, after which the
	// handler only computes the response: the response is stored in the transaction of the command,
	// which other requests share. A repetition and a refused request are served as by InTx.
	InCommand
	// UnderLease is for requests of several transactions: the key is leased while the request runs.
	// After a crash, a repetition runs the request again, as if it were sent without a key.
	UnderLease
	// AsOperation is for requests that begin an operation: the key points to it.
	AsOperation
	// AsHandOut is for requests that hand out leases: key and leases are written in one
	// transaction, and the response is stored as long as the leases last.
	AsHandOut
)

// May reports whether a role may use the route. Empty Roles allow only admin; nil Roles are a
// mistake in the table, and the route refuses everyone.
func (r *Route[C]) May(role keys.Role) bool {
	return r.Roles != nil && (role == keys.Admin || slices.Contains(r.Roles, role))
}

// Table lists all routes.
type Table[C any] []*Route[C]

// Add adds a route.
func (t *Table[C]) Add(r Route[C]) {
	r.parts = strings.Split(r.Path, "/")
	if r.Status == 0 {
		r.Status = http.StatusOK
	}
	*t = append(*t, &r)
}

// Find returns the route of a request and its path parameters.
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
			return nil, nil, fault.New(fault.Validation, "the path must not contain NUL")
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
		return nil, nil, fault.New(fault.MethodNotAllowed, "this path supports only %s", list).With("allow", list)
	}
	return nil, nil, NothingHere()
}

// NothingHere returns the error for an unknown path.
func NothingHere() *fault.Error {
	return fault.New(fault.NotFound, "this path does not exist: GET /api/v1/openapi.json lists all paths")
}

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
