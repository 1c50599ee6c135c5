package client

import (
	"context"
	"encoding/json"
	"iter"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/wire"
)

// operation is the entry of a route in the OpenAPI document.
type operation struct {
	method, path string
	ID           string `json:"operationId"`
	Parameters   []struct {
		Name, In string
	} `json:"parameters"`
	Body *json.RawMessage `json:"requestBody"`
}

// operations reads the OpenAPI document of a server.
func operations(t *testing.T) map[string]operation {
	t.Helper()
	w := httptest.NewRecorder()
	api := httpapi.New(httpapi.Options{NoKeys: true})
	holdfasttest.Open(t, api)
	api.ServeHTTP(w, httptest.NewRequest("GET", "http://127.0.0.1/api/v1/openapi.json", nil))
	var doc struct {
		Paths map[string]map[string]operation `json:"paths"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	all := make(map[string]operation)
	for path, methods := range doc.Paths {
		for method, op := range methods {
			if _, twice := all[op.ID]; twice || op.ID == "" {
				t.Errorf("%s %s has id %q, which is empty or used twice", method, path, op.ID)
			}
			op.method, op.path = strings.ToUpper(method), path
			all[op.ID] = op
		}
	}
	return all
}

// each consumes an iterator, to make its request.
func each[T any](all iter.Seq2[T, error]) error {
	for _, err := range all {
		return err
	}
	return nil
}

func second[T any](_ T, err error) error { return err }

// calls returns all operations, each called with all of its arguments.
func calls(ctx context.Context, c *Client) map[string]func() error {
	n, yes, page := int64(3), true, Page{Limit: 7, Cursor: "c"}
	times := TimeRange{time.Unix(1, 0), time.Unix(2, 0), time.Unix(3, 0), time.Unix(4, 0)}
	key := Key("k")
	return map[string]func() error{
		"appendEvents":   func() error { return second(c.AppendEvents(ctx, "p", wire.Append{}, key)) },
		"readStream":     func() error { return second(c.ReadStreamPage(ctx, "p", StreamRange{&n, true}, page)) },
		"listStreams":    func() error { return second(c.ListStreamsPage(ctx, StreamFilter{"p"}, page)) },
		"getStream":      func() error { return second(c.GetStream(ctx, "p")) },
		"truncateStream": func() error { return second(c.TruncateStream(ctx, "p", wire.TruncateStream{}, key)) },
		"searchEvents": func() error {
			return second(c.SearchEventsPage(ctx, EventFilter{"s", "n", "c", "a", time.Unix(1, 0), time.Unix(2, 0), true}, page))
		},
		"listScopeKinds": func() error { return second(c.ListScopeKindsPage(ctx, page)) },
		"listScopes":     func() error { return second(c.ListScopesPage(ctx, "p", ScopeFilter{"p"}, page)) },
		"putScope":       func() error { return second(c.PutScope(ctx, "p", "p", []byte(`{}`), key)) },
		"closeStream":    func() error { return second(c.CloseStream(ctx, "p", wire.CloseStream{}, key)) },
		"listBatches": func() error {
			return second(c.ListBatchesPage(ctx, BatchFilter{"RUNNING", "h", "w", true, times}, page))
		},
		"createBatch":      func() error { return second(c.CreateBatch(ctx, wire.NewBatch{}, key)) },
		"getBatch":         func() error { return second(c.GetBatch(ctx, "p")) },
		"listItems":        func() error { return second(c.ListItemsPage(ctx, "p", ItemFilter{"running"}, page)) },
		"addItems":         func() error { return second(c.AddItems(ctx, "p", wire.AddItems{}, key)) },
		"sealBatch":        func() error { return second(c.SealBatch(ctx, "p", key)) },
		"cancelBatch":      func() error { return second(c.CancelBatch(ctx, "p", key)) },
		"acceptItems":      func() error { return second(c.AcceptItems(ctx, "p", nil, key)) },
		"readBatchHistory": func() error { return second(c.ReadBatchHistoryPage(ctx, "p", page)) },
		"putDefinition":    func() error { return second(c.PutDefinition(ctx, []byte(`{}`), DryRun(), key)) },
		"listDefinitions":  func() error { return second(c.ListDefinitionsPage(ctx, page)) },
		"getDefinition":    func() error { return second(c.GetDefinition(ctx, "p")) },
		"startRun":         func() error { return second(c.StartRun(ctx, wire.StartRun{}, key)) },
		"listRuns": func() error {
			return second(c.ListRunsPage(ctx, RunFilter{"RUNNING", "d", "k", "s", "h", times}, page))
		},
		"getRun":         func() error { return second(c.GetRun(ctx, "p")) },
		"listSteps":      func() error { return second(c.ListStepsPage(ctx, "p", page)) },
		"readRunHistory": func() error { return second(c.ReadRunHistoryPage(ctx, "p", page)) },
		"cancelRun":      func() error { return second(c.CancelRun(ctx, "p", wire.Command{}, key)) },
		"pauseRun":       func() error { return second(c.PauseRun(ctx, "p", wire.Command{}, key)) },
		"resumeRun":      func() error { return second(c.ResumeRun(ctx, "p", wire.Command{}, key)) },
		"retryRun":       func() error { return second(c.RetryRun(ctx, "p", wire.Command{}, key)) },
		"signalRun":      func() error { return second(c.SignalRun(ctx, "p", wire.Signal{}, key)) },
		"listApprovals":  func() error { return second(c.ListApprovalsPage(ctx, ApprovalFilter{"pending", "r"}, page)) },
		"getApproval":    func() error { return second(c.GetApproval(ctx, "p")) },
		"decideApproval": func() error { return second(c.DecideApproval(ctx, "p", wire.Decide{}, key)) },
		"listWallets":    func() error { return second(c.ListWalletsPage(ctx, page)) },
		"putWallet":      func() error { return second(c.PutWallet(ctx, "p", wire.PutWallet{}, key)) },
		"getWallet":      func() error { return second(c.GetWallet(ctx, "p")) },
		"creditWallet":   func() error { return second(c.CreditWallet(ctx, "p", wire.Credit{}, key)) },
		"readLedger":     func() error { return second(c.ReadLedgerPage(ctx, "p", LedgerRange{true}, page)) },
		"auditWallet":    func() error { return second(c.AuditWallet(ctx, "p")) },
		"getScope":       func() error { return second(c.GetScope(ctx, "p", "p", At(1))) },
		"patchScope":     func() error { return second(c.PatchScope(ctx, "p", "p", []byte(`{}`), key)) },
		"incScope":       func() error { return second(c.IncScope(ctx, "p", "p", wire.IncScope{}, key)) },
		"pushScope":      func() error { return second(c.PushScope(ctx, "p", "p", wire.PushScope{}, key)) },
		"setScopeRecord": func() error { return second(c.SetScopeRecord(ctx, "p", "p", "p", "p", nil, key)) },
		"deleteScope":    func() error { return second(c.DeleteScope(ctx, "p", "p", key)) },
		"deleteScopeRecord": func() error {
			return second(c.DeleteScopeRecord(ctx, "p", "p", "p", "p", key))
		},
		"readActivity":         func() error { return second(c.ReadActivityPage(ctx, page)) },
		"getDefinitionDiagram": func() error { return second(c.GetDefinitionDiagram(ctx, "p", "layout")) },
		"getLifecycleDiagram":  func() error { return second(c.GetLifecycleDiagram(ctx, "p", "mermaid")) },
		"listWorkspaces":       func() error { return second(c.ListWorkspacesPage(ctx, page)) },
		"createWorkspace":      func() error { return second(c.CreateWorkspace(ctx, wire.NewWorkspace{Name: "w"}, key)) },
		"readFeed":             func() error { return second(c.ReadFeedPage(ctx, page)) },
		"listReactions":        func() error { return second(c.ListReactionsPage(ctx, page)) },
		"putReaction":          func() error { return second(c.PutReaction(ctx, "p", wire.PutReaction{}, key)) },
		"getReaction":          func() error { return second(c.GetReaction(ctx, "p")) },
		"deleteReaction":       func() error { return c.DeleteReaction(ctx, "p", key) },
		"listPositions":        func() error { return second(c.ListPositionsPage(ctx, "p", PositionFilter{"s", &yes}, page)) },
		"claimLeases":          func() error { return second(c.ClaimLeases(ctx, "p", wire.ClaimLeases{}, key)) },
		"ackLeases":            func() error { return second(c.AckLeases(ctx, "p", wire.Acks{}, key)) },
		"failLease":            func() error { return second(c.FailLease(ctx, "p", wire.FailLease{}, key)) },
		"snoozeLease":          func() error { return second(c.SnoozeLease(ctx, "p", wire.SnoozeLease{}, key)) },
		"renewLease":           func() error { return second(c.RenewLease(ctx, "p", wire.RenewLease{}, key)) },
		"unblockReactions":     func() error { return second(c.UnblockReactions(ctx, "p", wire.Repair{}, key)) },
		"resetReactions":       func() error { return second(c.ResetReactions(ctx, "p", wire.Repair{}, key)) },
		"skipReactions":        func() error { return second(c.SkipReactions(ctx, "p", wire.Repair{}, key)) },
		"listLifecycles":       func() error { return second(c.ListLifecyclesPage(ctx, page)) },
		"getLifecycle":         func() error { return second(c.GetLifecycle(ctx, "p")) },
		"createEntity":         func() error { return second(c.CreateEntity(ctx, "p", wire.NewEntity{}, key)) },
		"listEntities":         func() error { return second(c.ListEntitiesPage(ctx, "p", EntityFilter{"s", times}, page)) },
		"getEntity":            func() error { return second(c.GetEntity(ctx, "p", "p", At(1))) },
		"readEntityHistory":    func() error { return second(c.ReadEntityHistoryPage(ctx, "p", "p", page)) },
		"listRefusals":         func() error { return second(c.ListRefusalsPage(ctx, "p", "p", page)) },
		"readEntityTimeline":   func() error { return second(c.ReadEntityTimelinePage(ctx, "p", "p", page)) },
		"readTimeline":         func() error { return second(c.ReadTimelinePage(ctx, "s", page)) },
		"listRaces":            func() error { return second(c.ListRacesPage(ctx, page)) },
		"fireStep":             func() error { return second(c.FireStep(ctx, "p", "p", "p", wire.Fire{}, key, Wait(time.Second))) },
		"claimStep":            func() error { return second(c.ClaimStep(ctx, "p", "p", wire.NewClaim{}, key)) },
		"listClaims":           func() error { return second(c.ListClaimsPage(ctx, ClaimFilter{"held"}, page)) },
		"renewClaim":           func() error { return second(c.RenewClaim(ctx, "p", wire.Renew{}, key)) },
		"settleClaim":          func() error { return second(c.SettleClaim(ctx, "p", wire.Settle{}, key)) },
		"releaseClaim":         func() error { return second(c.ReleaseClaim(ctx, "p", wire.Release{}, key)) },
		"journalEffect":        func() error { return second(c.JournalEffect(ctx, "p", wire.EffectCall{}, key)) },
		"listOperations":       func() error { return second(c.ListOperationsPage(ctx, OperationFilter{"due", "h"}, page)) },
		"acknowledgeContradictions": func() error {
			return second(c.AcknowledgeContradictions(ctx, "p", wire.Acknowledge{Contradictions: []string{"c"}}, key))
		},
		"withdrawOperation": func() error { return second(c.WithdrawOperation(ctx, "p", wire.Withdraw{}, key)) },
		"getOperation":      func() error { return second(c.GetOperation(ctx, "p")) },
		"releaseOperation":  func() error { return second(c.ReleaseOperation(ctx, "p", wire.ReleaseOperation{}, key)) },
		"resolveOperation":  func() error { return second(c.ResolveOperation(ctx, "p", wire.Resolve{}, key)) },
		"createKey":         func() error { return second(c.CreateKey(ctx, wire.NewKey{}, key)) },
		"listKeys":          func() error { return second(c.ListKeysPage(ctx, page)) },
		"getKey":            func() error { return second(c.GetKey(ctx, "p")) },
		"rotateKey":         func() error { return second(c.RotateKey(ctx, "p", wire.RotateKey{}, key)) },
		"revokeKey":         func() error { return second(c.RevokeKey(ctx, "p", key)) },
		"createSession":     func() error { return second(c.CreateSession(ctx)) },
		"getSession":        func() error { return second(c.GetSession(ctx)) },
		"deleteSession":     func() error { return c.DeleteSession(ctx) },
		"createWebhook":     func() error { return second(c.CreateWebhook(ctx, wire.NewWebhook{}, key)) },
		"listWebhooks":      func() error { return second(c.ListWebhooksPage(ctx, page)) },
		"getWebhook":        func() error { return second(c.GetWebhook(ctx, "p")) },
		"rotateWebhook":     func() error { return second(c.RotateWebhook(ctx, "p", wire.RotateWebhook{}, key)) },
		"deleteWebhook":     func() error { return c.DeleteWebhook(ctx, "p", key) },
		"putLifecycle":      func() error { return second(c.PutLifecycle(ctx, "p", []byte(`{}`), DryRun(), key)) },
		"listHandlers":      func() error { return second(c.ListHandlersPage(ctx, page)) },
		"putHandler":        func() error { return second(c.PutHandler(ctx, "p", wire.PutHandler{}, key)) },
		"getHandler":        func() error { return second(c.GetHandler(ctx, "p")) },
		"deleteHandler":     func() error { return c.DeleteHandler(ctx, "p", key) },
		"listSecrets":       func() error { return second(c.ListSecretsPage(ctx, page)) },
		"putSecret":         func() error { return second(c.PutSecret(ctx, "p", wire.PutSecret{}, key)) },
		"getSecret":         func() error { return second(c.GetSecret(ctx, "p")) },
		"deleteSecret":      func() error { return c.DeleteSecret(ctx, "p", key) },
		"listInbox":         func() error { return second(c.ListInboxPage(ctx, InboxFilter{Kind: "failedRun"}, page)) },
		"countInbox":        func() error { return second(c.CountInbox(ctx, InboxFilter{Kind: "failedRun"})) },
		"listRequests":      func() error { return second(c.ListRequestsPage(ctx, RequestFilter{"o"}, page)) },
		"getRequest":        func() error { return second(c.GetRequest(ctx, "p")) },
		"listAudit": func() error {
			return second(c.ListAuditPage(ctx, AuditFilter{"a", "b", "c", time.UnixMilli(1), time.UnixMilli(2)}, page))
		},
		"startBulk":       func() error { return second(c.StartBulk(ctx, wire.NewBulk{}, key)) },
		"listBulks":       func() error { return second(c.ListBulksPage(ctx, page)) },
		"getBulk":         func() error { return second(c.GetBulk(ctx, "p")) },
		"listBulkMembers": func() error { return second(c.ListBulkMembersPage(ctx, "p", BulkMemberFilter{"done"}, page)) },
		"cancelBulk":      func() error { return second(c.CancelBulk(ctx, "p", key)) },
		"runMaintenance":  func() error { return second(c.RunMaintenance(ctx, key)) },
		"search":          func() error { return second(c.Search(ctx, "i1", "entity")) },
		"getOverview":     func() error { return second(c.GetOverview(ctx)) },
		"getLive":         func() error { return second(c.GetLive(ctx, "inbox", "c")) },
		"countEntities":   func() error { return second(c.CountEntities(ctx, "p")) },
		"listNodes":       func() error { return second(c.ListNodesPage(ctx, page)) },
		"listQuotas":      func() error { return second(c.ListQuotasPage(ctx, page)) },
		"listRates":       func() error { return second(c.ListRatesPage(ctx, RateFilter{Minutes: new(int64(10))}, page)) },
		"claimTasks":      func() error { return second(c.ClaimTasks(ctx, wire.ClaimTasks{}, key)) },
		"completeTask":    func() error { return second(c.CompleteTask(ctx, "p", wire.CompleteTask{}, key)) },
		"failTask":        func() error { return second(c.FailTask(ctx, "p", wire.FailTask{}, key)) },
		"snoozeTask":      func() error { return second(c.SnoozeTask(ctx, "p", wire.SnoozeTask{}, key)) },
		"renewTask":       func() error { return second(c.RenewTask(ctx, "p", wire.Renew{}, key)) },
		"journalTaskEffect": func() error {
			return second(c.JournalTaskEffect(ctx, "p", wire.EffectCall{}, key))
		},
	}
}

var variable = regexp.MustCompile(`\{\w+\}`)

// TestEveryRouteHasItsMethod verifies that every route of the server has a client method of the
// same name that sends what the route takes. A route without a method fails here.
func TestEveryRouteHasItsMethod(t *testing.T) {
	var sent *http.Request
	c := dial(t, "http://holdfast.invalid", Options{MaxAttempts: 1, HTTP: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		if sent != nil {
			t.Errorf("got a second request: %s %s", r.Method, r.URL)
		}
		sent = r
		return answer(200, "application/json", `{"items":[],"next":null}`), nil
	})}})
	known, all := operations(t), calls(t.Context(), c)
	for _, id := range slices.Sorted(maps.Keys(known)) {
		op := known[id]
		if _, ok := reflect.TypeOf(c).MethodByName(strings.ToUpper(id[:1]) + id[1:]); !ok {
			t.Errorf("%s %s: the client has no method for %s", op.method, op.path, id)
			continue
		}
		call := all[id]
		if call == nil {
			t.Errorf("%s is not called by this test", id)
			continue
		}
		sent = nil
		if err := call(); err != nil || sent == nil {
			t.Errorf("%s: %v", id, err)
			continue
		}
		op.check(t, sent)
	}
	for id := range all {
		if _, ok := known[id]; !ok {
			t.Errorf("%s is called by this test, but is not a route", id)
		}
	}
}

// check compares a request with the OpenAPI document.
func (op operation) check(t *testing.T, r *http.Request) {
	t.Helper()
	if want := "/api/v1" + variable.ReplaceAllString(op.path, "p"); r.Method != op.method || r.URL.Path != want {
		t.Errorf("%s sent %s %s, want %s %s", op.ID, r.Method, r.URL.Path, op.method, want)
	}
	var want []string
	keyed := false
	for _, p := range op.Parameters {
		if p.In == "query" && (op.ID != "listAudit" || p.Name != "format") { // the client reads pages
			want = append(want, p.Name)
		}
		keyed = keyed || p.Name == "Idempotency-Key"
	}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(r.URL.Query())); !slices.Equal(got, want) {
		t.Errorf("%s sent parameters %q, want %q", op.ID, got, want)
	}
	if (r.Header.Get("Idempotency-Key") != "") != keyed || (r.ContentLength > 0) != (op.Body != nil) {
		t.Errorf("%s sent %d bytes and headers %v", op.ID, r.ContentLength, r.Header)
	}
}

// TestIteratorsAskForPages verifies that iterators send the same requests as their page methods.
func TestIteratorsAskForPages(t *testing.T) {
	var path string
	c := dial(t, "http://holdfast.invalid", Options{MaxAttempts: 1, HTTP: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		path = strings.TrimPrefix(r.URL.RequestURI(), "/api/v1/")
		return answer(404, wire.ProblemType, `{"code":"NOT_FOUND"}`), nil
	})}})
	ctx := t.Context()
	for want, err := range map[string]func() error{
		"streams/p/events":                     func() error { return each(c.ReadStream(ctx, "p", StreamRange{})) },
		"events?cursor=x":                      func() error { return each(c.ReadFeed(ctx, "x")) },
		"reactions":                            func() error { return each(c.ListReactions(ctx)) },
		"reactions/%2A/streams?stream=a":       func() error { return each(c.ListPositions(ctx, "*", PositionFilter{Pattern: "a"})) },
		"lifecycles":                           func() error { return each(c.ListLifecycles(ctx)) },
		"lifecycles/p/entities?status=s":       func() error { return each(c.ListEntities(ctx, "p", EntityFilter{Status: "s"})) },
		"lifecycles/p/entities/%2E%2E/history": func() error { return each(c.ReadEntityHistory(ctx, "p", "..")) },
		"claims?state=due":                     func() error { return each(c.ListClaims(ctx, ClaimFilter{"due"})) },
		"operations":                           func() error { return each(c.ListOperations(ctx, OperationFilter{})) },
		"keys":                                 func() error { return each(c.ListKeys(ctx)) },
		"webhooks":                             func() error { return each(c.ListWebhooks(ctx)) },
		"workflow-definitions":                 func() error { return each(c.ListDefinitions(ctx)) },
		"workflow-runs?status=FAILED":          func() error { return each(c.ListRuns(ctx, RunFilter{Status: "FAILED"})) },
		"workflow-runs/p/steps":                func() error { return each(c.ListSteps(ctx, "p")) },
		"workflow-runs/p/events":               func() error { return each(c.ReadRunHistory(ctx, "p")) },
		"approvals?status=pending":             func() error { return each(c.ListApprovals(ctx, ApprovalFilter{Status: "pending"})) },
	} {
		if got := err(); fault.CodeOf(got) != fault.NotFound || path != want {
			t.Errorf("requested %s and got %v, want %s", path, got, want)
		}
	}
}
