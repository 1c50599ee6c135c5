package httpapi

import (
	"context"
	"regexp"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/httpapi/internal/table"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/quota"
	"github.com/holdfast-go/holdfast/internal/store"
)

// SearchScan is small in tests, so that searches run several statements.
const SearchScan = 3

// SearchedRows is how many rows a page of a search reads in tests.
const SearchedRows = maxRowSearches * SearchScan

func init() { store.SearchScan, searchTime = SearchScan, time.Hour }

// SearchFor sets how long a page of a search may take, and returns what it was.
func SearchFor(d time.Duration) (was time.Duration) {
	was, searchTime = searchTime, d
	return was
}

// On returns an API of an engine that is open already.
func On(hf *holdfast.Engine, o Options) *API {
	a := New(o)
	if err := a.Register(context.Background(), hf); err != nil {
		panic(err)
	}
	return a
}

// Route is a route as tests see it.
type Route struct {
	Method, Path, ID string
	Group            string
	Policy           bool // it declares its roles
	Keyed            bool // it accepts an Idempotency-Key
	InCommand        bool // with one, it is one command
	May              func(keys.Role) bool
	Adds             []quota.Kind
}

// MeasureAgain makes the next scrape measure the backlog.
func (a *API) MeasureAgain() {
	a.backlog.mu.Lock()
	defer a.backlog.mu.Unlock()
	a.backlog.at = time.Time{}
}

// MetricNames returns the names of all metrics of Holdfast.
func (a *API) MetricNames() (all []string) {
	descs := make(chan *prometheus.Desc)
	go func() { a.metrics.Registry.Describe(descs); close(descs) }()
	for d := range descs {
		if m := regexp.MustCompile(`fqName: "(holdfast_\w+)"`).FindStringSubmatch(d.String()); m != nil {
			all = append(all, m[1])
		}
	}
	return all
}

// Routes returns the route table.
func (a *API) Routes() []Route {
	all := make([]Route, len(a.table))
	for i, r := range a.table {
		all[i] = Route{r.Method, r.Path, r.ID, r.Tag, r.Roles != nil, r.Idempotency != table.Never, r.Idempotency == table.InCommand, r.May, r.Adds}
	}
	return all
}

// Roles returns the roles of a route, besides admin.
func (a *API) Roles(id string) []keys.Role {
	i := slices.IndexFunc(a.table, func(r *route) bool { return r.ID == id })
	return a.table[i].Roles
}

// CursorOf forges a cursor.
func CursorOf(list, after string) string {
	return cursorOf(list, after)
}

// EmptyRing empties the cache of keys and sessions, as time does.
func (a *API) EmptyRing() { a.ring = keys.NewRing(a.engine) }

// ForgetTime makes the API ask the database for the time again, which a test has moved.
func (a *API) ForgetTime() {
	a.tokens.mu.Lock()
	defer a.tokens.mu.Unlock()
	a.tokens.at = time.Time{}
}
