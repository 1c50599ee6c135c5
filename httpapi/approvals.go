package httpapi

import (
	"context"
	"net/http"
	"slices"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi/internal/table"
	"github.com/holdfast-go/holdfast/internal/remote"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/wire"
)

func (a *API) approvalRoutes() {
	add(a, route{Method: http.MethodGet, Path: "approvals", ID: "listApprovals", Tag: "approvals", Summary: "List the workspace's approvals.", Roles: readers, Filter: "ApprovalFilter",
		More: searches}, listApprovals)
	add(a, route{Method: http.MethodGet, Path: "approvals/{id}", ID: "getApproval", Tag: "approvals", Summary: "Show an approval.", Roles: readers}, getApproval)
	add(a, route{Method: http.MethodPost, Path: "approvals/{id}/decide", ID: "decideApproval", Tag: "approvals", Summary: "Decide an approval. Only the first decision counts.",
		Roles: operators, Idempotency: table.InTx, Frees: true,
		More: "Later decisions are refused."}, decideApproval)
}

func approvalOf(a runengine.Approval) wire.Approval {
	w := wire.Approval{ID: a.ID, RunID: a.Run, Step: a.Step, Visit: a.Visit, Prompt: a.Prompt, Requesters: a.Requesters, Status: a.Status, By: nonEmpty(a.Actor), Label: nonEmpty(a.Label),
		Content: remote.OrNull(a.Content), CreatedAt: timeOrNil(a.CreatedAt), ExpiresAt: timeOrNil(a.ExpiresAt), DecidedAt: timeOrNil(a.DecidedAt)}
	if w.Requesters == nil {
		w.Requesters = []string{}
	}
	return w
}

type listApprovalsIn struct {
	paged
	Status string `query:"status" doc:"List only approvals with this status, such as pending."`
	RunID  string `query:"runId" doc:"List only approvals of this run."`
}

func listApprovals(c *call, in *listApprovalsIn) (wire.List[wire.Approval], error) {
	return search(c, in.paged, func(ctx context.Context, after string, limit int) ([]store.Found[runengine.Approval], error) {
		return runengine.Approvals(ctx, c.doer(), in.Status, in.RunID, after, limit)
	}, approvalOf, func(a runengine.Approval) string { return a.ID })
}

type approvalIn struct {
	ID string `path:"id"`
}

func getApproval(c *call, in *approvalIn) (wire.Approval, error) {
	a, err := runengine.GetApproval(c.ctx(), c.doer(), in.ID)
	return approvalOf(a), err
}

type decideIn struct {
	ID   string `path:"id"`
	Body wire.Decide
}

// decideApproval decides an approval. The key must be allowed to act for one of its requesters. The
// actor is the API key; on a server without keys, it is the name that the request gives.
func decideApproval(c *call, in *decideIn) (wire.Approval, error) {
	b := in.Body
	d := runengine.Decision{Decision: b.Decision, Actor: c.actor(), Label: b.By, Content: b.Content, May: func(requesters []string) error {
		if len(requesters) == 0 || slices.ContainsFunc(requesters, c.key.Speaks) {
			return nil
		}
		return fault.New(fault.Forbidden, "this approval requires one of the requesters %q, but the API key may not act for any of them: use another key", requesters).With("requesters", requesters)
	}}
	if c.api.noKeys && b.By != "" {
		d.Actor, d.Label = b.By, ""
	}
	a, err := runengine.Decide(c.ctx(), c.doer(), in.ID, d)
	return approvalOf(a), err
}
