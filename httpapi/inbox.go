package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi/internal/table"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/inbox"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/wire"
)

func (a *API) inboxRoutes() {
	add(a, route{Method: http.MethodGet, Path: "inbox", ID: "listInbox", Tag: "visibility", Summary: "List what needs a person or is stuck, oldest first.", Roles: readers, Filter: "InboxFilter",
		More: "Each entry has a reason and an action that can be called as given. At most 1,000 entries of each kind are listed; inbox/counts says whether there are more."}, listInbox)
	add(a, route{Method: http.MethodGet, Path: "inbox/counts", ID: "countInbox", Tag: "visibility", Summary: "Count the entries of the inbox by kind.", Roles: readers, Filter: "InboxFilter",
		More: "Counts are exact up to 1,000."}, countInbox)
	add(a, route{Method: http.MethodPost, Path: "maintenance", ID: "runMaintenance", Tag: "visibility", Summary: "Run the background work of the node that receives the request.", Roles: operators, Idempotency: table.UnderLease, Frees: true,
		More: "The node releases expired leases, deletes what retention permits, and continues runs whose timers are due."}, runMaintenance)
}

type inboxIn struct {
	Kind string `query:"kind" doc:"Only these kinds, separated by commas."`
	paged
}

func listInbox(c *call, in *inboxIn) (wire.List[wire.InboxItem], error) {
	var none wire.List[wire.InboxItem]
	p, err := c.page(in.paged)
	if err != nil {
		return none, err
	}
	kinds, err := kindsOf(in.Kind)
	if err != nil {
		return none, err
	}
	behind, err := placeOf(p.after)
	if err != nil {
		return none, err
	}
	found, _, err := inbox.List(c.ctx(), c.doer(), kinds...)
	if err != nil {
		return none, err
	}
	if behind != nil {
		found = found[firstAfter(found, *behind):]
	}
	next := ""
	if len(found) > p.limit {
		found = found[:p.limit]
		next = cursorText(found[p.limit-1])
	}
	all := make([]wire.InboxItem, len(found))
	for i := range found {
		if all[i], err = c.inboxItem(&found[i]); err != nil {
			return none, err
		}
	}
	return listed(c, all, next), nil
}

type countInboxIn struct {
	Kind string `query:"kind" doc:"Only these kinds, separated by commas."`
}

func countInbox(c *call, in *countInboxIn) (wire.InboxCounts, error) {
	kinds, err := kindsOf(in.Kind)
	if err != nil {
		return wire.InboxCounts{}, err
	}
	_, counts, err := inbox.List(c.ctx(), c.doer(), kinds...)
	return wire.InboxCounts{Counts: countsOf(counts)}, err
}

func countsOf(counts []inbox.Count) []wire.InboxCount {
	return convert(counts, func(n inbox.Count) wire.InboxCount {
		return wire.InboxCount{Kind: string(n.Kind), Count: n.Count, Capped: n.Capped}
	})
}

// kindsOf parses a list of kinds.
func kindsOf(text string) (kinds []inbox.Kind, err error) {
	if text == "" {
		return nil, nil
	}
	for name := range strings.SplitSeq(text, ",") {
		if !slices.Contains(inbox.Kinds, inbox.Kind(name)) {
			return nil, fault.New(fault.Validation, "kind must be one or more of %v, separated by commas, got %q", inbox.Kinds, name).With("field", "kind")
		}
		kinds = append(kinds, inbox.Kind(name))
	}
	return kinds, nil
}

// cursorText is the content of the cursor behind an entry.
func cursorText(e inbox.Entry) string {
	return strconv.FormatInt(e.Since.UnixMicro(), 10) + " " + string(e.Kind) + " " + e.Place
}

// placeOf parses the content of a cursor.
func placeOf(after string) (*inbox.Entry, error) {
	if after == "" {
		return nil, nil
	}
	parts := strings.SplitN(after, " ", 3)
	if len(parts) != 3 {
		return nil, noCursor()
	}
	since, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil {
		return nil, noCursor()
	}
	return &inbox.Entry{Since: time.UnixMicro(since), Kind: inbox.Kind(parts[1]), Place: parts[2]}, nil
}

// firstAfter returns the index of the first entry behind another.
func firstAfter(all []inbox.Entry, e inbox.Entry) int {
	i, found := slices.BinarySearchFunc(all, e, inbox.Entry.Compare)
	if found {
		i++
	}
	return i
}

func (c *call) inboxItem(e *inbox.Entry) (wire.InboxItem, error) {
	item := wire.InboxItem{Kind: string(e.Kind), ID: e.Place, Subject: e.Subject, Reason: e.Reason, Since: timeOrNil(e.Since), Owner: e.Owner, Deadline: timeOrNil(e.Deadline), Others: []wire.InboxAction{}}
	actions, err := c.actionsFor(e)
	if err != nil {
		return item, err
	}
	item.Action = actions[0]
	item.Others = append(item.Others, actions[1:]...)
	return item, nil
}

// actionsFor returns what can be done about an entry, the usual action first.
func (c *call) actionsFor(e *inbox.Entry) ([]wire.InboxAction, error) {
	f := e.Facts // what they are depends on the kind: ids of the objects that the paths below name
	maintain := post("Run the background work of this server now", nil, "maintenance")
	switch e.Kind {
	case inbox.UncertainOperation:
		return c.resolutions(e.Place, e.Place, false, f[4] == "manual")
	case inbox.UncertainStep:
		visit, _ := strconv.ParseInt(f[2], 10, 64) // always a number
		step := runengine.ClaimedStep{Run: runengine.Run{ID: f[0]}, Step: runengine.Step{Name: f[1], Visit: visit}}
		return c.resolutions(step.OperationID(), step.Operation(), true, false)
	case inbox.BlockedStream, inbox.RefusedWebhook:
		only := wire.Repair{Streams: []string{f[1]}}
		return []wire.InboxAction{
			post("Unblock the stream, so that the same event is tried again", only, "reactions", f[0], "unblock"),
			post("Skip the event, and continue with the next", only, "reactions", f[0], "skip")}, nil
	case inbox.FailedRun:
		return []wire.InboxAction{post("Retry the run at the step that failed", nil, "workflow-runs", f[0], "retry")}, nil
	case inbox.PendingApproval:
		visit, _ := strconv.ParseInt(f[2], 10, 64) // always a number
		id := runengine.ApprovalID(f[0], f[1], visit)
		return []wire.InboxAction{
			post("Approve", wire.Decide{Decision: "approved"}, "approvals", id, "decide"),
			post("Reject", wire.Decide{Decision: "rejected"}, "approvals", id, "decide")}, nil
	case inbox.OverdueSignal:
		return []wire.InboxAction{maintain, post("Cancel the run", nil, "workflow-runs", f[0], "cancel")}, nil
	case inbox.PausedBatch:
		cancel := post("Cancel the batch", nil, "batches", f[0], "cancel")
		if e.Missing() == 0 { // it can be paid for, and nobody has resumed it yet
			return []wire.InboxAction{maintain, cancel}, nil
		}
		return []wire.InboxAction{
			post(fmt.Sprintf("Credit %d points to wallet %s", e.Missing(), f[1]), wire.Credit{Points: e.Missing(), Reference: "inbox/" + f[0] + "/" + f[4]}, "wallets", f[1], "credit"),
			cancel}, nil
	case inbox.FailingTeardown:
		return []wire.InboxAction{{Label: "Remove the cause of the error; the cleanup is tried again within a minute"}}, nil
	case inbox.UnservedWork, inbox.UnservedVersion:
		return unservedActions(e), nil
	case inbox.OldSnapshot:
		return []wire.InboxAction{{Label: "End the transaction in the program that holds it, or with pg_terminate_backend and its pid"}}, nil
	default:
		return []wire.InboxAction{maintain}, nil
	}
}

// unservedActions returns what can be done about work that nobody serves.
func unservedActions(e *inbox.Entry) []wire.InboxAction {
	start := wire.InboxAction{Label: "Start a node or worker that serves " + e.Subject}
	switch id := e.Facts[2]; e.Facts[0] {
	case "operation":
		return []wire.InboxAction{start, post("Withdraw the oldest operation", nil, "operations", id, "withdraw")}
	case "step":
		return []wire.InboxAction{start, post("Cancel the run that waits longest", nil, "workflow-runs", id, "cancel")}
	case "batch":
		return []wire.InboxAction{start, post("Cancel the batch that waits longest", nil, "batches", id, "cancel")}
	}
	return []wire.InboxAction{start}
}

// resolutions returns the ways to resolve an uncertain operation, of a step of a run or of an entity. Which one is right depends
// on what happened, which only the other system knows.
func (c *call) resolutions(id, operation string, step, manual bool) ([]wire.InboxAction, error) {
	at, err := c.doer().Partition(c.ctx(), store.Read)
	if err != nil {
		return nil, err
	}
	journal, err := effects.List(store.Whole(c.ctx()), c.doer(), at, operation)
	if err != nil {
		return nil, err
	}
	known := func(happened bool) (all []wire.KnownEffect) {
		for _, x := range journal {
			if x.State == effects.Begun {
				all = append(all, wire.KnownEffect{Name: x.Name, Ordinal: x.Ordinal, Happened: &happened})
			}
		}
		return all
	}
	resolve := func(label string, happened bool, outcome string) wire.InboxAction {
		return post(label, wire.Resolve{Effects: known(happened), Outcome: outcome}, "operations", id, "resolve")
	}
	failed := resolve("It did not happen: end the operation with failure", false, "failure")
	if manual { // nobody would resume it
		return []wire.InboxAction{failed, resolve("It happened: end the operation with success", true, "success")}, nil
	}
	not := "It did not happen: try it again"
	if !step && !slices.ContainsFunc(journal, func(x effects.Entry) bool { return x.State == effects.Done }) { // see lifecycle.Resolve
		not = "It did not happen: end the operation"
	}
	return []wire.InboxAction{resolve(not, false, ""), resolve("It happened: continue", true, ""), failed}, nil
}

// post returns a POST request as an action. The parts of the path are escaped.
func post(label string, body any, path ...string) wire.InboxAction {
	for i, part := range path {
		path[i] = url.PathEscape(part)
	}
	a := wire.InboxAction{Label: label, Method: http.MethodPost, Route: table.Base + strings.Join(path, "/"), Body: json.RawMessage(`{}`)}
	if body != nil {
		a.Body, _ = json.Marshal(body) // plain values always marshal
	}
	return a
}

// runMaintenance runs the background work of this node once. All of it is safe to run at any time, on any number of nodes.
func runMaintenance(c *call, _ *struct{}) (wire.Maintained, error) {
	e := c.api.engine
	e.Maintain(c.ctx())
	if w := runengine.LocalOf(e).Worker; w != nil {
		if err := w.TickDue(c.ctx()); err != nil {
			return wire.Maintained{}, err
		}
	}
	return wire.Maintained{Node: e.Node()}, nil
}
