package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi/internal/shapes"
	"github.com/holdfast-go/holdfast/httpapi/internal/table"
	"github.com/holdfast-go/holdfast/internal/idempotency"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/wire"
)

func (a *API) requestRoutes() {
	add(a, route{Method: http.MethodGet, Path: "requests", ID: "listRequests", Tag: "visibility", Summary: "List the requests with an idempotency key whose response is the outcome of an operation.", Roles: admins, Filter: "RequestFilter"}, listRequests)
	add(a, route{Method: http.MethodGet, Path: "requests/{key}", ID: "getRequest", Tag: "visibility", Summary: "Show the requests that were made with an idempotency key, and the responses that their callers got.", Roles: admins,
		More: "Equal keys on different routes are different requests."}, getRequest)
}

// leaseRoutes are the routes whose responses prove that the caller holds a lease.
var leaseRoutes = map[string]bool{"claimLeases": true}

func (c *call) storedRequest(q idempotency.Request) wire.StoredRequest {
	w := wire.StoredRequest{ID: q.Key, Route: q.Space(), State: "operation", Status: q.Status, Operation: q.Operation, At: shapes.At(q.CreatedAt)}
	var names []string // of the subject: the lifecycle and the entity
	if json.Unmarshal([]byte(q.Subject), &names) == nil {
		w.Subject = strings.Join(names, "/")
	}
	switch q.State {
	case idempotency.Held:
		w.State = "inFlight"
	case idempotency.Done:
		w.State = "answered"
	}
	for _, r := range c.api.table {
		if r.ID == w.Route && (r.Tag == "claims" || r.Tag == "tasks" || leaseRoutes[r.ID]) {
			w.Withheld = len(q.Answer) > 0
		}
	}
	var saved storedAnswer
	if !w.Withheld && json.Unmarshal(q.Answer, &saved) == nil {
		w.Response = saved.Body
	}
	return w
}

type listRequestsIn struct {
	Operation string `query:"operation" doc:"The id of the operation."`
	paged
}

func listRequests(c *call, in *listRequestsIn) (wire.List[wire.StoredRequest], error) {
	if in.Operation == "" {
		return wire.List[wire.StoredRequest]{}, fault.New(fault.Validation, "operation is required: set it to the id of an operation").With("pointer", "/operation")
	}
	id := in.Operation
	if operation, ok := runengine.OperationOf(id); ok {
		id = operation
	}
	return list(c, in.paged, func(ctx context.Context, after string, limit int) ([]idempotency.Request, error) {
		return idempotency.ListByOperation(ctx, c.doer(), id, after, limit)
	}, c.storedRequest, func(q idempotency.Request) string { return q.Key })
}

type getRequestIn struct {
	Key string `path:"key"`
}

func getRequest(c *call, in *getRequestIn) (wire.StoredRequests, error) {
	out := wire.StoredRequests{Requests: []wire.StoredRequest{}}
	for _, r := range c.api.table {
		if r.Idempotency == table.Never {
			continue
		}
		q, err := idempotency.Get(c.ctx(), c.doer(), idempotency.Stored(r.ID, "", in.Key))
		if err != nil {
			return out, err
		}
		if q.State != "" {
			out.Requests = append(out.Requests, c.storedRequest(q))
		}
	}
	if len(out.Requests) == 0 {
		return out, fault.New(fault.NotFound, "no stored request has the idempotency key %.80q: it was never used, was refused, or has expired", in.Key)
	}
	return out, nil
}
