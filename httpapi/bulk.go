package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi/internal/shapes"
	"github.com/holdfast-go/holdfast/httpapi/internal/table"
	"github.com/holdfast-go/holdfast/internal/bulk"
	"github.com/holdfast-go/holdfast/internal/quota"
	"github.com/holdfast-go/holdfast/wire"
)

func (a *API) bulkRoutes() {
	add(a, route{Method: http.MethodPost, Path: "bulk", ID: "startBulk", Tag: "bulk", Summary: "Start a bulk: one action on many runs, positions of reactions or operations, in the background.",
		Roles: operators, Status: http.StatusAccepted, Also: http.StatusOK, Idempotency: table.InTx, Adds: []quota.Kind{quota.Work, quota.Storage},
		More: "Each member is acted on at most once, and is checked as by the same action on one object; those that are refused are listed. With dryRun, nothing is written."}, startBulk)
	add(a, route{Method: http.MethodGet, Path: "bulk", ID: "listBulks", Tag: "bulk", Summary: "List the workspace's bulks, newest first.", Roles: readers}, listBulks)
	add(a, route{Method: http.MethodGet, Path: "bulk/{id}", ID: "getBulk", Tag: "bulk", Summary: "Show a bulk and its progress.", Roles: readers}, getBulk)
	add(a, route{Method: http.MethodGet, Path: "bulk/{id}/members", ID: "listBulkMembers", Tag: "bulk", Summary: "List a bulk's members and the result of the action on each.", Roles: readers, Filter: "BulkMemberFilter"}, listBulkMembers)
	add(a, route{Method: http.MethodPost, Path: "bulk/{id}/cancel", ID: "cancelBulk", Tag: "bulk", Summary: "Cancel a bulk: no further member is acted on.", Roles: operators, Also: http.StatusAccepted, Idempotency: table.InTx, Frees: true,
		More: "What was done is not undone."}, cancelBulk)
}

type startBulkIn struct{ Body wire.NewBulk }

// units counts the runs that become open again. All other actions end work, or let work that is open go on.
func (in *startBulkIn) units(c *call) (int64, error) {
	b := in.Body
	if b.DryRun || b.Action != "run.retry" {
		return 0, nil
	}
	if b.Filter == nil {
		return int64(len(b.IDs)), nil
	}
	members, _, err := bulk.Preview(c.ctx(), c.api.engine, bulk.Order{Action: b.Action, Filter: filterOf(b.Filter)})
	return int64(len(members)), err
}

func startBulk(c *call, in *startBulkIn) (wire.StartedBulk, error) {
	b := in.Body
	switch {
	case b.Filter == nil && len(b.IDs) == 0:
		return wire.StartedBulk{}, fault.New(fault.Validation, "set ids, or a filter: {} selects all objects that permit the action").With("pointer", "/filter")
	case b.Filter != nil && b.IDs != nil:
		return wire.StartedBulk{}, fault.New(fault.Validation, "set either ids or filter, not both").With("pointer", "/ids")
	}
	if err := c.mayActInBulk(b.Action); err != nil {
		return wire.StartedBulk{}, err
	}
	o := bulk.Order{Action: b.Action, IDs: b.IDs, Filter: filterOf(b.Filter), Happened: b.Happened, Outcome: b.Outcome, Reason: b.Reason, Actor: c.actor(), Request: requestID(c.ctx())}
	if b.DryRun {
		c.status = http.StatusOK
		p, err := previewOf(c, o)
		return wire.StartedBulk{Preview: p}, err
	}
	made, err := bulk.Create(c.ctx(), c.doer(), o)
	if err != nil {
		return wire.StartedBulk{}, err
	}
	c.w.Header().Set("Location", table.Base+"bulk/"+url.PathEscape(made.ID))
	w := bulkOf(made)
	return wire.StartedBulk{Bulk: &w}, nil
}

// previewSize is the number of members that a dry run lists.
const previewSize = 100

func previewOf(c *call, o bulk.Order) (*wire.BulkPreview, error) {
	members, refused, err := bulk.Preview(c.ctx(), c.doer(), o)
	if err != nil {
		return nil, err
	}
	p := &wire.BulkPreview{Total: int64(len(members)), Members: []wire.BulkMember{}, RefusedTotal: int64(len(refused)), Refused: []wire.BulkMember{}}
	for _, m := range members[:min(len(members), previewSize)] {
		p.Members = append(p.Members, wire.BulkMember{ID: m.ID, State: m.State})
	}
	for _, r := range refused[:min(len(refused), previewSize)] {
		p.Refused = append(p.Refused, wire.BulkMember{ID: r.ID, State: r.State, Code: string(r.Err.Code), Message: r.Err.Message})
	}
	return p, nil
}

func filterOf(f *wire.BulkFilter) *bulk.Filter {
	if f == nil {
		return nil
	}
	return &bulk.Filter{Status: f.Status, DefinitionID: f.DefinitionID, Reaction: f.Reaction, Stream: f.Stream, Source: f.Source, Blocked: f.Blocked, Lifecycle: f.Lifecycle,
		Since: timeOf(f.Since), Until: timeOf(f.Until)}
}

func timeOf(t *wire.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

func bulkOf(b bulk.Bulk) wire.Bulk {
	w := wire.Bulk{ID: b.ID, Action: b.Action, Status: b.Status, Actor: b.Actor, RequestID: b.Request, Happened: b.Happened, Outcome: b.Outcome, Reason: b.Reason, Total: b.Total,
		Pending: b.Pending, Running: b.Running, Done: b.Done, Refused: b.Refused, Cancelled: b.Cancelled, CancelRequested: b.CancelRequested,
		CreatedAt: shapes.At(b.CreatedAt), UpdatedAt: shapes.At(b.UpdatedAt)}
	if f := b.Filter; f != nil {
		w.Filter = &wire.BulkFilter{Status: f.Status, DefinitionID: f.DefinitionID, Reaction: f.Reaction, Stream: f.Stream, Source: f.Source, Blocked: f.Blocked, Lifecycle: f.Lifecycle,
			Since: timeOrNil(f.Since), Until: timeOrNil(f.Until)}
	}
	return w
}

func listBulks(c *call, in *paged) (wire.List[wire.Bulk], error) {
	if err := c.mayListBulks(); err != nil {
		return wire.List[wire.Bulk]{}, err
	}
	return list(c, *in, func(ctx context.Context, after string, limit int) ([]bulk.Bulk, error) {
		return bulk.List(ctx, c.doer(), after, limit)
	}, bulkOf, func(b bulk.Bulk) string { return b.ID })
}

type bulkIn struct {
	ID string `path:"id"`
}

func getBulk(c *call, in *bulkIn) (wire.Bulk, error) {
	b, err := c.bulk(in.ID)
	return bulkOf(b), err
}

// bulk returns a bulk, if the key may act on its objects.
func (c *call) bulk(id string) (bulk.Bulk, error) {
	b, err := bulk.Get(c.ctx(), c.doer(), id)
	if err == nil {
		err = c.mayActInBulk(b.Action)
	}
	if err != nil {
		return bulk.Bulk{}, err
	}
	return b, nil
}

type bulkMembersIn struct {
	ID string `path:"id"`
	paged
	Status string `query:"status" doc:"List only members with this status: pending, waiting, running, done, refused or cancelled."`
}

func listBulkMembers(c *call, in *bulkMembersIn) (wire.List[wire.BulkMember], error) {
	if _, err := c.bulk(in.ID); err != nil {
		return wire.List[wire.BulkMember]{}, err
	}
	return list(c, in.paged, func(ctx context.Context, after string, limit int) ([]bulk.Result, error) {
		n, err := numberOf(after)
		if err != nil {
			return nil, err
		}
		return bulk.Members(ctx, c.doer(), in.ID, n, in.Status, limit)
	}, func(m bulk.Result) wire.BulkMember {
		return wire.BulkMember{ID: m.ID, State: m.State, Status: m.Status, Code: string(m.Code), Message: m.Message}
	}, func(m bulk.Result) string { return strconv.FormatInt(m.N, 10) })
}

// cancelBulk cancels a bulk. While members are being acted on, it only records the request.
func cancelBulk(c *call, in *bulkIn) (wire.Bulk, error) {
	if _, err := c.bulk(in.ID); err != nil {
		return wire.Bulk{}, err
	}
	b, err := bulk.Cancel(c.ctx(), c.doer(), in.ID, c.actor())
	if err == nil && b.Status != "CANCELLED" {
		c.status = http.StatusAccepted
	}
	return bulkOf(b), err
}
