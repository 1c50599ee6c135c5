package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"

	"github.com/holdfast-go/holdfast/wire"
)

// DefineWorkflow keeps a definition, as JSON; with dryRun it is only judged. The same again
// changes nothing; another under its name and version is refused.
func (c *Client) DefineWorkflow(ctx context.Context, definition json.RawMessage, dryRun bool, o ...Option) (wire.DefinedWorkflow, error) {
	r := newRequest(http.MethodPost, definition, "workflow-definitions")
	if dryRun {
		r = r.set("dryRun", "true")
	}
	return do[wire.DefinedWorkflow](ctx, c, r, o)
}

// ListDefinitions lists the definitions of the workspace.
func (c *Client) ListDefinitions(ctx context.Context) iter.Seq2[wire.Definition, error] {
	return pages(func(p Page) (wire.List[wire.Definition], error) { return c.ListDefinitionsPage(ctx, p) })
}

// ListDefinitionsPage lists a page of the definitions of the workspace.
func (c *Client) ListDefinitionsPage(ctx context.Context, p Page, o ...Option) (wire.List[wire.Definition], error) {
	return listed[wire.Definition](ctx, c, list(p, "workflow-definitions"), o)
}

// GetDefinition returns a definition. Its id is name@version.
func (c *Client) GetDefinition(ctx context.Context, id string, o ...Option) (wire.Definition, error) {
	return do[wire.Definition](ctx, c, newRequest(http.MethodGet, nil, "workflow-definitions", id), o)
}

// StartRun starts a run, or returns the one that was started under its idempotencyKey.
func (c *Client) StartRun(ctx context.Context, in wire.StartRun, o ...Option) (wire.StartedRun, error) {
	return do[wire.StartedRun](ctx, c, newRequest(http.MethodPost, in, "workflow-runs"), o)
}

// RunFilter chooses runs.
type RunFilter struct{ Status, Definition string }

// ListRuns lists the runs of the workspace, the newest first.
func (c *Client) ListRuns(ctx context.Context, f RunFilter) iter.Seq2[wire.Run, error] {
	return pages(func(p Page) (wire.List[wire.Run], error) { return c.ListRunsPage(ctx, f, p) })
}

// ListRunsPage lists a page of the runs of the workspace.
func (c *Client) ListRunsPage(ctx context.Context, f RunFilter, p Page, o ...Option) (wire.List[wire.Run], error) {
	return listed[wire.Run](ctx, c, list(p, "workflow-runs").set("status", f.Status).set("definitionId", f.Definition), o)
}

// GetRun returns a run.
func (c *Client) GetRun(ctx context.Context, id string, o ...Option) (wire.Run, error) {
	return do[wire.Run](ctx, c, newRequest(http.MethodGet, nil, "workflow-runs", id), o)
}

// ListSteps lists the visits of a run's steps, in their order.
func (c *Client) ListSteps(ctx context.Context, id string) iter.Seq2[wire.RunStep, error] {
	return pages(func(p Page) (wire.List[wire.RunStep], error) { return c.ListStepsPage(ctx, id, p) })
}

// ListStepsPage lists a page of the visits of a run's steps.
func (c *Client) ListStepsPage(ctx context.Context, id string, p Page, o ...Option) (wire.List[wire.RunStep], error) {
	return listed[wire.RunStep](ctx, c, list(p, "workflow-runs", id, "steps"), o)
}

// CancelRun cancels a run. While somebody works on a step of it, that is only noted: its
// cancelRequested is set, and it is over when that has ended.
func (c *Client) CancelRun(ctx context.Context, id string, in wire.Command, o ...Option) (wire.Run, error) {
	return c.command(ctx, id, "cancel", in, o)
}

// PauseRun has a run begin no further step.
func (c *Client) PauseRun(ctx context.Context, id string, in wire.Command, o ...Option) (wire.Run, error) {
	return c.command(ctx, id, "pause", in, o)
}

// ResumeRun has a run go on that was paused.
func (c *Client) ResumeRun(ctx context.Context, id string, in wire.Command, o ...Option) (wire.Run, error) {
	return c.command(ctx, id, "resume", in, o)
}

// RetryRun has a run go on that has failed, at the step at which it did.
func (c *Client) RetryRun(ctx context.Context, id string, in wire.Command, o ...Option) (wire.Run, error) {
	return c.command(ctx, id, "retry", in, o)
}

func (c *Client) command(ctx context.Context, id, name string, in wire.Command, o []Option) (wire.Run, error) {
	return do[wire.Run](ctx, c, newRequest(http.MethodPost, in, "workflow-runs", id, name), o)
}

// SignalRun tells a run something. Under the same id it is told once.
func (c *Client) SignalRun(ctx context.Context, id string, in wire.Signal, o ...Option) (wire.Signalled, error) {
	return do[wire.Signalled](ctx, c, newRequest(http.MethodPost, in, "workflow-runs", id, "signals"), o)
}

// ReadRunEvents reads what happened to a run.
func (c *Client) ReadRunEvents(ctx context.Context, id string) iter.Seq2[wire.Event, error] {
	return pages(func(p Page) (wire.List[wire.Event], error) { return c.ReadRunEventsPage(ctx, id, p) })
}

// ReadRunEventsPage reads a page of what happened to a run.
func (c *Client) ReadRunEventsPage(ctx context.Context, id string, p Page, o ...Option) (wire.List[wire.Event], error) {
	return listed[wire.Event](ctx, c, list(p, "workflow-runs", id, "events"), o)
}

// FollowRun gives what happened to a run, and what happens, until it is over: "completed",
// "cancelled" or "failed" is the last. Of a run that was retried, "failed" comes before
// that, too. A connection that breaks is made anew.
func (c *Client) FollowRun(ctx context.Context, id string) iter.Seq2[wire.Event, error] {
	return func(yield func(wire.Event, error) bool) {
		last := ""
		f := &following[wire.Event]{c: c, path: []string{"workflow-runs", id, "events"}, b: c.backoff()}
		f.yield = func(e wire.Event, err error) bool {
			last = e.Name
			return yield(e, err) && e.Name != "completed" && e.Name != "cancelled"
		}
		f.over = func(ctx context.Context) bool {
			if last != "failed" {
				return false
			}
			r, err := c.GetRun(ctx, id)
			return err == nil && r.Status == "FAILED"
		}
		if err := f.run(ctx); err != nil {
			yield(wire.Event{}, err)
		}
	}
}

// ApprovalFilter chooses approvals.
type ApprovalFilter struct{ Status, Run string }

// ListApprovals lists what is to be decided, or was.
func (c *Client) ListApprovals(ctx context.Context, f ApprovalFilter) iter.Seq2[wire.Approval, error] {
	return pages(func(p Page) (wire.List[wire.Approval], error) { return c.ListApprovalsPage(ctx, f, p) })
}

// ListApprovalsPage lists a page of what is to be decided, or was.
func (c *Client) ListApprovalsPage(ctx context.Context, f ApprovalFilter, p Page, o ...Option) (wire.List[wire.Approval], error) {
	return listed[wire.Approval](ctx, c, list(p, "approvals").set("status", f.Status).set("runId", f.Run), o)
}

// GetApproval returns an approval.
func (c *Client) GetApproval(ctx context.Context, id string, o ...Option) (wire.Approval, error) {
	return do[wire.Approval](ctx, c, newRequest(http.MethodGet, nil, "approvals", id), o)
}

// DecideApproval decides an approval. The first decision counts; any other is refused.
func (c *Client) DecideApproval(ctx context.Context, id string, in wire.Decide, o ...Option) (wire.Approval, error) {
	return do[wire.Approval](ctx, c, newRequest(http.MethodPost, in, "approvals", id, "decide"), o)
}
