package httpapi

import (
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/bulk"
	"github.com/holdfast-go/holdfast/internal/claimtoken"
)

// An API key can be restricted to route groups (the tags of the routes), to lifecycles, to handlers, and to networks. A request needs the
// permission of the role and of each restriction. What is not listed here is refused, so that a new route is not permitted by accident: it
// belongs to its group alone, and to no lifecycle.

// ownRoutes are the routes about the caller itself, which only networks restrict.
var ownRoutes = map[string]bool{"createSession": true, "getSession": true, "deleteSession": true}

// visible is the route group of what shows objects of all groups. The routes in alsoVisible have another group, and need both.
const visible = "visibility"

var alsoVisible = map[string]bool{"readActivity": true, "readTimeline": true, "listRaces": true}

// unrestrictedRoutes would give a restricted key more than it has: another key, or the responses to other callers.
var unrestrictedRoutes = map[string]bool{"createKey": true, "listRequests": true, "getRequest": true}

// lifecycleRoutes are the routes that a key restricted to lifecycles may use, besides ownRoutes, with the function that finds the
// lifecycle of a request. To publish a lifecycle is not among them, because its config can name the table of another one.
var lifecycleRoutes = map[string]func(*call) (string, error){
	"getLifecycle": lifecycleInPath, "getLifecycleDiagram": lifecycleInPath, "countEntities": lifecycleInPath,
	"listEntities": lifecycleInPath, "createEntity": lifecycleInPath, "getEntity": lifecycleInPath, "readEntityHistory": lifecycleInPath,
	"readEntityTimeline": lifecycleInPath, "listRefusals": lifecycleInPath, "fireStep": lifecycleInPath, "claimStep": lifecycleInPath,
	"renewClaim": lifecycleOfClaim, "settleClaim": lifecycleOfClaim, "releaseClaim": lifecycleOfClaim, "journalEffect": lifecycleOfClaim,
	"getOperation": lifecycleOfOperation, "resolveOperation": lifecycleOfOperation, "releaseOperation": lifecycleOfOperation,
	"withdrawOperation": lifecycleOfOperation, "acknowledgeContradictions": lifecycleOfOperation,
}

func lifecycleInPath(c *call) (string, error) { return c.values["name"], nil }

func lifecycleOfClaim(c *call) (string, error) {
	t, err := claimtoken.Find(c.ctx(), c.api.engine, c.values["token"])
	return t.Lifecycle, err
}

// lifecycleOfOperation returns "" for the operation of a run.
func lifecycleOfOperation(c *call) (string, error) {
	w, err := getOperation(c, &operationIn{ID: c.values["id"]})
	if err != nil || w.Kind != "action" {
		return "", err
	}
	name, _, _ := strings.Cut(w.Subject, "/")
	return name, nil
}

// checkRestrictions refuses a request that a restriction of the key does not permit. The role permits it.
func (c *call) checkRestrictions() error {
	r, id := c.key.Restrictions, c.route.ID
	switch {
	case !c.key.Restricted() || ownRoutes[id]:
		return nil
	case unrestrictedRoutes[id], id == "rotateKey" && c.values["id"] != c.key.ID:
		return fault.New(fault.Forbidden, "an API key with restrictions may not make this request, because it would get more rights by it: use a key without restrictions")
	case !r.MayUse(c.route.Tag):
		return c.outside(c.route.Tag)
	case alsoVisible[id] && !r.MayUse(visible):
		return c.outside(visible)
	}
	if strings.HasPrefix(c.stream(), "$") && !r.MayUse(visible) { // a history
		return c.outside(visible)
	}
	if len(r.Lifecycles) == 0 {
		return nil
	}
	find := lifecycleRoutes[id]
	if find == nil {
		return fault.New(fault.Forbidden, "the API key is restricted to the lifecycles %q and may not make this request, which is not about one lifecycle: use another key", r.Lifecycles)
	}
	name, err := find(c)
	if err == nil && !slices.Contains(r.Lifecycles, name) {
		err = fault.New(fault.Forbidden, "the API key is restricted to the lifecycles %q and may not use another one: use another key", r.Lifecycles)
	}
	return err
}

// outside is the error for a route group that the key may not use.
func (c *call) outside(group string) error {
	return fault.New(fault.Forbidden, "the API key is restricted to the route groups %q, and this request needs the group %s: use another key", c.key.Restrictions.RouteGroups, group)
}

// streamInQuery are the routes with the stream of the request in the query.
var streamInQuery = map[string]bool{"searchEvents": true, "readTimeline": true}

// stream returns the stream that a request is about, or "".
func (c *call) stream() string {
	if streamInQuery[c.route.ID] {
		return c.r.URL.Query().Get("stream")
	}
	return c.values["stream"]
}

// bulkGroup returns the route group of the objects of a bulk action: runs for run.retry.
func bulkGroup(action string) string {
	kind, _, _ := strings.Cut(action, ".")
	return kind + "s"
}

// mayListBulks refuses a list of bulks to a key that may not act on all kinds of objects.
func (c *call) mayListBulks() error {
	for _, action := range bulk.Actions() {
		if err := c.mayActInBulk(action); err != nil {
			return err
		}
	}
	return nil
}

// mayActInBulk refuses a bulk action on objects that the key may not act on.
func (c *call) mayActInBulk(action string) error {
	if group := bulkGroup(action); !c.key.Restrictions.MayUse(group) {
		return c.outside(group)
	}
	return nil
}

// mayAppendWithSettle refuses events in streams to a key that may not append them otherwise.
func (c *call) mayAppendWithSettle() error {
	r := c.key.Restrictions
	switch {
	case !r.MayUse("streams"):
		return c.outside("streams")
	case len(r.Lifecycles) > 0:
		return fault.New(fault.Forbidden, "the API key is restricted to the lifecycles %q and may not append events to streams: settle without events, or use another key", r.Lifecycles).With("pointer", "/events")
	}
	return nil
}
