// Code generated from the table of routes in package httpapi. DO NOT EDIT.

package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"

	"github.com/holdfast-go/holdfast/wire"
)

// AppendEvents appends events, all or none, at an expected version.
func (c *Client) AppendEvents(ctx context.Context, stream string, in wire.Append, o ...Option) (wire.Appended, error) {
	return do[wire.Appended](ctx, c, newRequest(http.MethodPost, in, "streams", stream, "events"), o)
}

// ReadStream reads a stream, forward or backward.
func (c *Client) ReadStream(ctx context.Context, stream string, in StreamRange) iter.Seq2[wire.Event, error] {
	return pages(func(p Page) (wire.List[wire.Event], error) { return c.ReadStreamPage(ctx, stream, in, p) })
}

// ReadStreamPage reads a page of a stream, forward or backward.
func (c *Client) ReadStreamPage(ctx context.Context, stream string, in StreamRange, p Page, o ...Option) (wire.List[wire.Event], error) {
	return do[wire.List[wire.Event]](ctx, c, list(p, "streams", stream, "events").set("from", in.From).set("backward", in.Backward), o)
}

// CloseStream closes the books of a stream, at an expected version. The same close again has
// the same answer.
func (c *Client) CloseStream(ctx context.Context, stream string, in wire.CloseStream, o ...Option) (wire.ClosedStream, error) {
	return do[wire.ClosedStream](ctx, c, newRequest(http.MethodPost, in, "streams", stream, "close"), o)
}

// ReadEventsPage reads a page of the feed over all streams. A cursor may also be the position
// of an event.
func (c *Client) ReadEventsPage(ctx context.Context, p Page, o ...Option) (wire.List[wire.Event], error) {
	return do[wire.List[wire.Event]](ctx, c, list(p, "events"), o)
}

// ReadFeed reads what is told of the workspace. It is histories and events, from the oldest to
// the newest that there is.
func (c *Client) ReadFeed(ctx context.Context) iter.Seq2[wire.Event, error] {
	return pages(func(p Page) (wire.List[wire.Event], error) { return c.ReadFeedPage(ctx, p) })
}

// ReadFeedPage reads a page of what is told of the workspace. It is histories and events, from
// the oldest to the newest that there is.
func (c *Client) ReadFeedPage(ctx context.Context, p Page, o ...Option) (wire.List[wire.Event], error) {
	return do[wire.List[wire.Event]](ctx, c, list(p, "feed"), o)
}

// ListReactions lists the reactions of the workspace, and the after-effects of its lifecycles.
func (c *Client) ListReactions(ctx context.Context) iter.Seq2[wire.Reaction, error] {
	return pages(func(p Page) (wire.List[wire.Reaction], error) { return c.ListReactionsPage(ctx, p) })
}

// ListReactionsPage lists a page of the reactions of the workspace, and the after-effects of
// its lifecycles.
func (c *Client) ListReactionsPage(ctx context.Context, p Page, o ...Option) (wire.List[wire.Reaction], error) {
	return do[wire.List[wire.Reaction]](ctx, c, list(p, "reactions"), o)
}

// PutReaction registers a reaction, or changes one.
func (c *Client) PutReaction(ctx context.Context, name string, in wire.PutReaction, o ...Option) (wire.Reaction, error) {
	return do[wire.Reaction](ctx, c, newRequest(http.MethodPut, in, "reactions", name), o)
}

// GetReaction returns a reaction.
func (c *Client) GetReaction(ctx context.Context, name string, o ...Option) (wire.Reaction, error) {
	return do[wire.Reaction](ctx, c, newRequest(http.MethodGet, nil, "reactions", name), o)
}

// DeleteReaction removes a reaction.
func (c *Client) DeleteReaction(ctx context.Context, name string, o ...Option) error {
	_, err := c.answer(ctx, newRequest(http.MethodDelete, nil, "reactions", name).with(o))
	return err
}

// ListPositions tells where a reaction (* for all) stands on its streams.
func (c *Client) ListPositions(ctx context.Context, reaction string, f PositionFilter) iter.Seq2[wire.Position, error] {
	return pages(func(p Page) (wire.List[wire.Position], error) { return c.ListPositionsPage(ctx, reaction, f, p) })
}

// ListPositionsPage tells a page of where a reaction (* for all) stands on its streams.
func (c *Client) ListPositionsPage(ctx context.Context, reaction string, f PositionFilter, p Page, o ...Option) (wire.List[wire.Position], error) {
	return do[wire.List[wire.Position]](ctx, c, list(p, "reactions", reaction, "streams").set("stream", f.Stream).set("blocked", f.Blocked), o)
}

// ClaimLeases claims streams of a reaction by hand. Without a [Key] it has one of its own, so
// that it is sent again where its answer was lost, and is given the same again.
func (c *Client) ClaimLeases(ctx context.Context, reaction string, in wire.TakeLeases, o ...Option) (wire.Leases, error) {
	return do[wire.Leases](ctx, c, newRequest(http.MethodPost, in, "reactions", reaction, "claim"), ownKey(o))
}

// AckLeases acknowledges what was handled. Each lease is named by its token. One that was
// lost, and a version that a lease did not show, are told in the results, and are no error.
func (c *Client) AckLeases(ctx context.Context, reaction string, in wire.Acks, o ...Option) (wire.Acked, error) {
	return do[wire.Acked](ctx, c, newRequest(http.MethodPost, in, "reactions", reaction, "ack"), o)
}

// FailLease says that an event could not be handled. The lease is named by its token.
func (c *Client) FailLease(ctx context.Context, reaction string, in wire.FailLease, o ...Option) (wire.FailedLease, error) {
	return do[wire.FailedLease](ctx, c, newRequest(http.MethodPost, in, "reactions", reaction, "fail"), o)
}

// RenewLease extends a lease. The lease is named by its token.
func (c *Client) RenewLease(ctx context.Context, reaction string, in wire.RenewLease, o ...Option) (wire.Renewed, error) {
	return do[wire.Renewed](ctx, c, newRequest(http.MethodPost, in, "reactions", reaction, "renew"), o)
}

// UnblockReactions repairs a reaction (* for all): unblock. Its streams go on from where they
// were blocked.
func (c *Client) UnblockReactions(ctx context.Context, reaction string, in wire.Repair, o ...Option) (wire.Repaired, error) {
	return do[wire.Repaired](ctx, c, newRequest(http.MethodPost, in, "reactions", reaction, "unblock"), o)
}

// ResetReactions repairs a reaction (* for all): reset. Its streams begin anew; for all, those
// of after-effects and webhooks do not.
func (c *Client) ResetReactions(ctx context.Context, reaction string, in wire.Repair, o ...Option) (wire.Repaired, error) {
	return do[wire.Repaired](ctx, c, newRequest(http.MethodPost, in, "reactions", reaction, "reset"), o)
}

// SkipReactions repairs a reaction (* for all): skip. Its streams pass over the event that
// they are blocked at.
func (c *Client) SkipReactions(ctx context.Context, reaction string, in wire.Repair, o ...Option) (wire.Repaired, error) {
	return do[wire.Repaired](ctx, c, newRequest(http.MethodPost, in, "reactions", reaction, "skip"), o)
}

// ListLifecycles lists the lifecycles of the workspace.
func (c *Client) ListLifecycles(ctx context.Context) iter.Seq2[wire.Lifecycle, error] {
	return pages(func(p Page) (wire.List[wire.Lifecycle], error) { return c.ListLifecyclesPage(ctx, p) })
}

// ListLifecyclesPage lists a page of the lifecycles of the workspace.
func (c *Client) ListLifecyclesPage(ctx context.Context, p Page, o ...Option) (wire.List[wire.Lifecycle], error) {
	return do[wire.List[wire.Lifecycle]](ctx, c, list(p, "lifecycles"), o)
}

// GetLifecycle returns the config of a lifecycle.
func (c *Client) GetLifecycle(ctx context.Context, name string, o ...Option) (wire.Lifecycle, error) {
	return do[wire.Lifecycle](ctx, c, newRequest(http.MethodGet, nil, "lifecycles", name), o)
}

// DrawLifecycle draws a lifecycle. The format is svg ("") or mermaid.
func (c *Client) DrawLifecycle(ctx context.Context, name, format string, o ...Option) (wire.Diagram, error) {
	return do[wire.Diagram](ctx, c, newRequest(http.MethodGet, nil, "lifecycles", name, "diagram").set("format", format), o)
}

// CreateEntity makes an entity. Without an id and without a key, each call makes another.
func (c *Client) CreateEntity(ctx context.Context, lifecycle string, in wire.NewEntity, o ...Option) (wire.Entity, error) {
	return do[wire.Entity](ctx, c, newRequest(http.MethodPost, in, "lifecycles", lifecycle, "entities"), o)
}

// ListEntities lists the entities of a lifecycle.
func (c *Client) ListEntities(ctx context.Context, lifecycle string, f EntityFilter) iter.Seq2[wire.Entity, error] {
	return pages(func(p Page) (wire.List[wire.Entity], error) { return c.ListEntitiesPage(ctx, lifecycle, f, p) })
}

// ListEntitiesPage lists a page of the entities of a lifecycle.
func (c *Client) ListEntitiesPage(ctx context.Context, lifecycle string, f EntityFilter, p Page, o ...Option) (wire.List[wire.Entity], error) {
	return do[wire.List[wire.Entity]](ctx, c, list(p, "lifecycles", lifecycle, "entities").set("status", f.Status), o)
}

// GetEntity returns an entity.
func (c *Client) GetEntity(ctx context.Context, lifecycle, id string, o ...Option) (wire.Entity, error) {
	return do[wire.Entity](ctx, c, newRequest(http.MethodGet, nil, "lifecycles", lifecycle, "entities", id), o)
}

// GetHistory tells what happened to an entity. The first event comes first.
func (c *Client) GetHistory(ctx context.Context, lifecycle, id string) iter.Seq2[wire.Event, error] {
	return pages(func(p Page) (wire.List[wire.Event], error) { return c.GetHistoryPage(ctx, lifecycle, id, p) })
}

// GetHistoryPage tells a page of what happened to an entity. The first event comes first.
func (c *Client) GetHistoryPage(ctx context.Context, lifecycle, id string, p Page, o ...Option) (wire.List[wire.Event], error) {
	return do[wire.List[wire.Event]](ctx, c, list(p, "lifecycles", lifecycle, "entities", id, "history"), o)
}

// GetAttempts tells who was refused on an entity, the last first. It is one page.
func (c *Client) GetAttempts(ctx context.Context, lifecycle, id string, o ...Option) (wire.List[wire.Attempt], error) {
	return do[wire.List[wire.Attempt]](ctx, c, newRequest(http.MethodGet, nil, "lifecycles", lifecycle, "entities", id, "attempts"), o)
}

// FireStep fires a step. Its outcome may be pending or uncertain: then it goes on without the
// caller, and the same call under the same [Key] tells later what became of it.
func (c *Client) FireStep(ctx context.Context, lifecycle, id, step string, in wire.Fire, o ...Option) (wire.Fired, error) {
	return do[wire.Fired](ctx, c, newRequest(http.MethodPost, in, "lifecycles", lifecycle, "entities", id, "steps", step), o)
}

// ClaimStep takes the claim of a step, for a body elsewhere. The body runs at the caller's,
// and not on the server.
func (c *Client) ClaimStep(ctx context.Context, lifecycle, id string, in wire.NewClaim, o ...Option) (wire.Claimed, error) {
	return do[wire.Claimed](ctx, c, newRequest(http.MethodPost, in, "lifecycles", lifecycle, "entities", id, "claims"), o)
}

// ListClaims lists who works on what.
func (c *Client) ListClaims(ctx context.Context, f OperationFilter) iter.Seq2[wire.HeldClaim, error] {
	return pages(func(p Page) (wire.List[wire.HeldClaim], error) { return c.ListClaimsPage(ctx, f, p) })
}

// ListClaimsPage lists a page of who works on what.
func (c *Client) ListClaimsPage(ctx context.Context, f OperationFilter, p Page, o ...Option) (wire.List[wire.HeldClaim], error) {
	return do[wire.List[wire.HeldClaim]](ctx, c, list(p, "claims").set("state", f.State), o)
}

// RenewClaim extends a claim.
func (c *Client) RenewClaim(ctx context.Context, token string, in wire.Renew, o ...Option) (wire.Renewed, error) {
	return do[wire.Renewed](ctx, c, newRequest(http.MethodPost, in, "claims", token, "renew"), o)
}

// SettleClaim ends a claim with what came of it. Settled again with the same outcome, it
// answers the same.
func (c *Client) SettleClaim(ctx context.Context, token string, in wire.Settle, o ...Option) (wire.Settled, error) {
	return do[wire.Settled](ctx, c, newRequest(http.MethodPost, in, "claims", token, "settle"), o)
}

// ReleaseClaim gives a claim back.
func (c *Client) ReleaseClaim(ctx context.Context, token string, in wire.Release, o ...Option) (wire.Settled, error) {
	return do[wire.Settled](ctx, c, newRequest(http.MethodPost, in, "claims", token, "release"), o)
}

// JournalEffect journals an effect under a claim. It begins the effect, or says what became of
// it.
func (c *Client) JournalEffect(ctx context.Context, token string, in wire.EffectCall, o ...Option) (wire.EffectState, error) {
	return do[wire.EffectState](ctx, c, newRequest(http.MethodPost, in, "claims", token, "effects"), o)
}

// ListOperations lists operations that are not at their end, or have contradictions.
func (c *Client) ListOperations(ctx context.Context, f OperationFilter) iter.Seq2[wire.Operation, error] {
	return pages(func(p Page) (wire.List[wire.Operation], error) { return c.ListOperationsPage(ctx, f, p) })
}

// ListOperationsPage lists a page of operations that are not at their end, or have
// contradictions.
func (c *Client) ListOperationsPage(ctx context.Context, f OperationFilter, p Page, o ...Option) (wire.List[wire.Operation], error) {
	return do[wire.List[wire.Operation]](ctx, c, list(p, "operations").set("state", f.State), o)
}

// ResolveOperation says what happened, where that is not known.
func (c *Client) ResolveOperation(ctx context.Context, id string, in wire.Resolve, o ...Option) (wire.Resolved, error) {
	return do[wire.Resolved](ctx, c, newRequest(http.MethodPost, in, "operations", id, "resolve"), o)
}

// WithdrawOperation withdraws an operation that nobody holds. If an effect of it may have
// happened, it is uncertain then, and is to be resolved.
func (c *Client) WithdrawOperation(ctx context.Context, id string, in wire.Withdraw, o ...Option) (wire.Resolved, error) {
	return do[wire.Resolved](ctx, c, newRequest(http.MethodPost, in, "operations", id, "withdraw"), o)
}

// AcknowledgeContradictions acknowledges contradictions of an operation. A person has seen
// them; those that are left are returned.
func (c *Client) AcknowledgeContradictions(ctx context.Context, id string, in wire.Acknowledge, o ...Option) (wire.Acknowledged, error) {
	return do[wire.Acknowledged](ctx, c, newRequest(http.MethodPost, in, "operations", id, "acknowledge"), o)
}

// CreateKey makes an API key. It is shown once. Under a [Key] that was used before, its secret
// is empty.
func (c *Client) CreateKey(ctx context.Context, in wire.NewKey, o ...Option) (wire.CreatedKey, error) {
	return do[wire.CreatedKey](ctx, c, newRequest(http.MethodPost, in, "keys"), o)
}

// ListKeys lists the API keys of the workspace.
func (c *Client) ListKeys(ctx context.Context) iter.Seq2[wire.Key, error] {
	return pages(func(p Page) (wire.List[wire.Key], error) { return c.ListKeysPage(ctx, p) })
}

// ListKeysPage lists a page of the API keys of the workspace.
func (c *Client) ListKeysPage(ctx context.Context, p Page, o ...Option) (wire.List[wire.Key], error) {
	return do[wire.List[wire.Key]](ctx, c, list(p, "keys"), o)
}

// GetKey returns an API key, without its secret.
func (c *Client) GetKey(ctx context.Context, id string, o ...Option) (wire.Key, error) {
	return do[wire.Key](ctx, c, newRequest(http.MethodGet, nil, "keys", id), o)
}

// RotateKey replaces a key by another with the same rights. Its secret is shown once.
func (c *Client) RotateKey(ctx context.Context, id string, in wire.RotateKey, o ...Option) (wire.CreatedKey, error) {
	return do[wire.CreatedKey](ctx, c, newRequest(http.MethodPost, in, "keys", id, "rotate"), o)
}

// RevokeKey revokes an API key, on all nodes within 5 seconds.
func (c *Client) RevokeKey(ctx context.Context, id string, o ...Option) (wire.Key, error) {
	return do[wire.Key](ctx, c, newRequest(http.MethodDelete, nil, "keys", id), o)
}

// CreateWebhook has events sent to a URL. The secret is shown once. Under a [Key] that was
// used before, it is empty.
func (c *Client) CreateWebhook(ctx context.Context, in wire.NewWebhook, o ...Option) (wire.CreatedWebhook, error) {
	return do[wire.CreatedWebhook](ctx, c, newRequest(http.MethodPost, in, "webhooks"), o)
}

// ListWebhooks lists the webhooks of the workspace.
func (c *Client) ListWebhooks(ctx context.Context) iter.Seq2[wire.Webhook, error] {
	return pages(func(p Page) (wire.List[wire.Webhook], error) { return c.ListWebhooksPage(ctx, p) })
}

// ListWebhooksPage lists a page of the webhooks of the workspace.
func (c *Client) ListWebhooksPage(ctx context.Context, p Page, o ...Option) (wire.List[wire.Webhook], error) {
	return do[wire.List[wire.Webhook]](ctx, c, list(p, "webhooks"), o)
}

// GetWebhook returns a webhook, without its secret.
func (c *Client) GetWebhook(ctx context.Context, id string, o ...Option) (wire.Webhook, error) {
	return do[wire.Webhook](ctx, c, newRequest(http.MethodGet, nil, "webhooks", id), o)
}

// RotateWebhook gives a webhook another secret. It is shown once.
func (c *Client) RotateWebhook(ctx context.Context, id string, in wire.RotateWebhook, o ...Option) (wire.CreatedWebhook, error) {
	return do[wire.CreatedWebhook](ctx, c, newRequest(http.MethodPost, in, "webhooks", id, "rotate"), o)
}

// DeleteWebhook removes a webhook.
func (c *Client) DeleteWebhook(ctx context.Context, id string, o ...Option) error {
	_, err := c.answer(ctx, newRequest(http.MethodDelete, nil, "webhooks", id).with(o))
	return err
}

// ListHandlers lists the handlers of the workspace.
func (c *Client) ListHandlers(ctx context.Context) iter.Seq2[wire.Handler, error] {
	return pages(func(p Page) (wire.List[wire.Handler], error) { return c.ListHandlersPage(ctx, p) })
}

// ListHandlersPage lists a page of the handlers of the workspace.
func (c *Client) ListHandlersPage(ctx context.Context, p Page, o ...Option) (wire.List[wire.Handler], error) {
	return do[wire.List[wire.Handler]](ctx, c, list(p, "handlers"), o)
}

// PutHandler declares a handler. The secret of a new one over HTTP is shown once.
func (c *Client) PutHandler(ctx context.Context, name string, in wire.PutHandler, o ...Option) (wire.Handler, error) {
	return do[wire.Handler](ctx, c, newRequest(http.MethodPut, in, "handlers", name), o)
}

// GetHandler returns a handler. It comes without its secret.
func (c *Client) GetHandler(ctx context.Context, name string, o ...Option) (wire.Handler, error) {
	return do[wire.Handler](ctx, c, newRequest(http.MethodGet, nil, "handlers", name), o)
}

// DeleteHandler takes a handler away.
func (c *Client) DeleteHandler(ctx context.Context, name string, o ...Option) error {
	_, err := c.answer(ctx, newRequest(http.MethodDelete, nil, "handlers", name).with(o))
	return err
}

// PutLifecycle puts a config into force, or judges it (dryRun). The config is JSON.
func (c *Client) PutLifecycle(ctx context.Context, name string, config json.RawMessage, dryRun bool, o ...Option) (wire.PutLifecycle, error) {
	return do[wire.PutLifecycle](ctx, c, newRequest(http.MethodPut, config, "lifecycles", name).set("dryRun", dryRun), o)
}

// ClaimTasks takes what there is to do for handlers, or waits for something to come. A task
// counts as received once it is renewed, journals an effect or is ended. Without a [Key] it
// has one of its own, so that it is sent again where its answer was lost, and is given the
// same again.
func (c *Client) ClaimTasks(ctx context.Context, in wire.ClaimTasks, o ...Option) (wire.Tasks, error) {
	return do[wire.Tasks](ctx, c, newRequest(http.MethodPost, in, "tasks", "claim"), ownKey(o))
}

// CompleteTask ends a task that is done. Completed again under the same epoch, it answers the
// same.
func (c *Client) CompleteTask(ctx context.Context, id string, in wire.CompleteTask, o ...Option) (wire.EndedTask, error) {
	return do[wire.EndedTask](ctx, c, newRequest(http.MethodPost, in, "tasks", id, "complete"), o)
}

// FailTask ends a task that is not done.
func (c *Client) FailTask(ctx context.Context, id string, in wire.FailTask, o ...Option) (wire.EndedTask, error) {
	return do[wire.EndedTask](ctx, c, newRequest(http.MethodPost, in, "tasks", id, "fail"), o)
}

// RenewTask extends the hold of a task.
func (c *Client) RenewTask(ctx context.Context, id string, in wire.Renew, o ...Option) (wire.Renewed, error) {
	return do[wire.Renewed](ctx, c, newRequest(http.MethodPost, in, "tasks", id, "renew"), o)
}

// JournalTaskEffect journals an effect of a task. It begins the effect, or says what became of
// it.
func (c *Client) JournalTaskEffect(ctx context.Context, id string, in wire.EffectCall, o ...Option) (wire.EffectState, error) {
	return do[wire.EffectState](ctx, c, newRequest(http.MethodPost, in, "tasks", id, "effects"), o)
}

// ListWorkspaces lists the workspaces: the key's own or, without keys, all.
func (c *Client) ListWorkspaces(ctx context.Context) iter.Seq2[wire.Workspace, error] {
	return pages(func(p Page) (wire.List[wire.Workspace], error) { return c.ListWorkspacesPage(ctx, p) })
}

// ListWorkspacesPage lists a page of the workspaces: the key's own or, without keys, all.
func (c *Client) ListWorkspacesPage(ctx context.Context, p Page, o ...Option) (wire.List[wire.Workspace], error) {
	return do[wire.List[wire.Workspace]](ctx, c, list(p, "workspaces"), o)
}

// CreateWorkspace makes a workspace, where no keys are asked for; otherwise its first key
// makes it.
func (c *Client) CreateWorkspace(ctx context.Context, in wire.NewWorkspace, o ...Option) (wire.Workspace, error) {
	return do[wire.Workspace](ctx, c, newRequest(http.MethodPost, in, "workspaces"), o)
}

// ListWallets lists the wallets of the workspace.
func (c *Client) ListWallets(ctx context.Context) iter.Seq2[wire.Wallet, error] {
	return pages(func(p Page) (wire.List[wire.Wallet], error) { return c.ListWalletsPage(ctx, p) })
}

// ListWalletsPage lists a page of the wallets of the workspace.
func (c *Client) ListWalletsPage(ctx context.Context, p Page, o ...Option) (wire.List[wire.Wallet], error) {
	return do[wire.List[wire.Wallet]](ctx, c, list(p, "wallets"), o)
}

// PutWallet makes a wallet, or changes it. What can change is whether its balance may be below
// zero.
func (c *Client) PutWallet(ctx context.Context, id string, in wire.PutWallet, o ...Option) (wire.Wallet, error) {
	return do[wire.Wallet](ctx, c, newRequest(http.MethodPut, in, "wallets", id), o)
}

// GetWallet returns a wallet.
func (c *Client) GetWallet(ctx context.Context, id string, o ...Option) (wire.Wallet, error) {
	return do[wire.Wallet](ctx, c, newRequest(http.MethodGet, nil, "wallets", id), o)
}

// CreditWallet adds points to a wallet, once for a reference.
func (c *Client) CreditWallet(ctx context.Context, id string, in wire.Credit, o ...Option) (wire.Wallet, error) {
	return do[wire.Wallet](ctx, c, newRequest(http.MethodPost, in, "wallets", id, "credit"), o)
}

// ReadLedger reads the ledger of a wallet.
func (c *Client) ReadLedger(ctx context.Context, id string) iter.Seq2[wire.LedgerEntry, error] {
	return pages(func(p Page) (wire.List[wire.LedgerEntry], error) { return c.ReadLedgerPage(ctx, id, p) })
}

// ReadLedgerPage reads a page of the ledger of a wallet.
func (c *Client) ReadLedgerPage(ctx context.Context, id string, p Page, o ...Option) (wire.List[wire.LedgerEntry], error) {
	return do[wire.List[wire.LedgerEntry]](ctx, c, list(p, "wallets", id, "ledger"), o)
}

// AuditWallet adds up the ledger of a wallet (* for all).
func (c *Client) AuditWallet(ctx context.Context, id string, o ...Option) (wire.Audit, error) {
	return do[wire.Audit](ctx, c, newRequest(http.MethodGet, nil, "wallets", id, "audit"), o)
}

// GetScope returns a scope.
func (c *Client) GetScope(ctx context.Context, kind, id string, o ...Option) (wire.Scope, error) {
	return do[wire.Scope](ctx, c, newRequest(http.MethodGet, nil, "scopes", kind, id), o)
}

// PatchScope merges a document into a scope's state (RFC 7396), or makes the scope.
func (c *Client) PatchScope(ctx context.Context, kind, id string, merge json.RawMessage, o ...Option) (wire.ChangedScope, error) {
	return do[wire.ChangedScope](ctx, c, newRequest(http.MethodPatch, merge, "scopes", kind, id), o)
}

// DeleteScope deletes a scope. One that is not there changes nothing.
func (c *Client) DeleteScope(ctx context.Context, kind, id string, o ...Option) (wire.ChangedScope, error) {
	return do[wire.ChangedScope](ctx, c, newRequest(http.MethodDelete, nil, "scopes", kind, id), o)
}

// IncScope adds to the whole number in a field. A field that is missing is 0.
func (c *Client) IncScope(ctx context.Context, kind, id string, in wire.IncScope, o ...Option) (wire.ChangedScope, error) {
	return do[wire.ChangedScope](ctx, c, newRequest(http.MethodPost, in, "scopes", kind, id, "inc"), o)
}

// PushScope adds an item to the list in a field. A field that is missing is an empty list.
func (c *Client) PushScope(ctx context.Context, kind, id string, in wire.PushScope, o ...Option) (wire.ChangedScope, error) {
	return do[wire.ChangedScope](ctx, c, newRequest(http.MethodPost, in, "scopes", kind, id, "push"), o)
}

// SetScopeRecord puts a record into the object in a field, under a key. A record that is nil
// is null.
func (c *Client) SetScopeRecord(ctx context.Context, kind, id, field, key string, record json.RawMessage, o ...Option) (wire.ChangedScope, error) {
	return do[wire.ChangedScope](ctx, c, newRequest(http.MethodPut, record, "scopes", kind, id, "records", field, key), o)
}

// DeleteScopeRecord takes a record out of the object in a field. One that is not there changes
// nothing.
func (c *Client) DeleteScopeRecord(ctx context.Context, kind, id, field, key string, o ...Option) (wire.ChangedScope, error) {
	return do[wire.ChangedScope](ctx, c, newRequest(http.MethodDelete, nil, "scopes", kind, id, "records", field, key), o)
}

// ListBatches lists the batches of the workspace. The status "" is all.
func (c *Client) ListBatches(ctx context.Context, status string) iter.Seq2[wire.Batch, error] {
	return pages(func(p Page) (wire.List[wire.Batch], error) { return c.ListBatchesPage(ctx, status, p) })
}

// ListBatchesPage lists a page of the batches of the workspace. The status "" is all.
func (c *Client) ListBatchesPage(ctx context.Context, status string, p Page, o ...Option) (wire.List[wire.Batch], error) {
	return do[wire.List[wire.Batch]](ctx, c, list(p, "batches").set("status", status), o)
}

// CreateBatch makes a batch of items that are paid from a wallet.
func (c *Client) CreateBatch(ctx context.Context, in wire.NewBatch, o ...Option) (wire.Batch, error) {
	return do[wire.Batch](ctx, c, newRequest(http.MethodPost, in, "batches"), o)
}

// GetBatch returns a batch.
func (c *Client) GetBatch(ctx context.Context, id string, o ...Option) (wire.Batch, error) {
	return do[wire.Batch](ctx, c, newRequest(http.MethodGet, nil, "batches", id), o)
}

// ListItems lists the items of a batch. The state "" is all.
func (c *Client) ListItems(ctx context.Context, id, state string) iter.Seq2[wire.BatchItem, error] {
	return pages(func(p Page) (wire.List[wire.BatchItem], error) { return c.ListItemsPage(ctx, id, state, p) })
}

// ListItemsPage lists a page of the items of a batch. The state "" is all.
func (c *Client) ListItemsPage(ctx context.Context, id, state string, p Page, o ...Option) (wire.List[wire.BatchItem], error) {
	return do[wire.List[wire.BatchItem]](ctx, c, list(p, "batches", id, "items").set("state", state), o)
}

// AddItems adds items to a batch that is open. A page that is sent again adds nothing.
func (c *Client) AddItems(ctx context.Context, id string, in wire.AddItems, o ...Option) (wire.AddedItems, error) {
	return do[wire.AddedItems](ctx, c, newRequest(http.MethodPost, in, "batches", id, "items"), o)
}

// SealBatch says that a batch has all its items.
func (c *Client) SealBatch(ctx context.Context, id string, o ...Option) (wire.Batch, error) {
	return do[wire.Batch](ctx, c, newRequest(http.MethodPost, nil, "batches", id, "seal"), o)
}

// CancelBatch cancels a batch: what was charged for what nobody accepted is refunded. The
// result is CANCELLED, or ACCEPTED while it is torn down.
func (c *Client) CancelBatch(ctx context.Context, id string, o ...Option) (wire.CancelledBatch, error) {
	return do[wire.CancelledBatch](ctx, c, newRequest(http.MethodPost, nil, "batches", id, "cancel"), o)
}

// FinalizeBatch accepts items that have succeeded. They are those named, or all.
func (c *Client) FinalizeBatch(ctx context.Context, id string, in wire.Finalize, o ...Option) (wire.Finalized, error) {
	return do[wire.Finalized](ctx, c, newRequest(http.MethodPost, in, "batches", id, "finalize"), o)
}

// ReadBatchEvents reads what happened to a batch.
func (c *Client) ReadBatchEvents(ctx context.Context, id string) iter.Seq2[wire.Event, error] {
	return pages(func(p Page) (wire.List[wire.Event], error) { return c.ReadBatchEventsPage(ctx, id, p) })
}

// ReadBatchEventsPage reads a page of what happened to a batch.
func (c *Client) ReadBatchEventsPage(ctx context.Context, id string, p Page, o ...Option) (wire.List[wire.Event], error) {
	return do[wire.List[wire.Event]](ctx, c, list(p, "batches", id, "events"), o)
}

// DefineWorkflow keeps a definition, or judges it (dryRun). The definition is JSON. The same
// again changes nothing; another under its name and version is refused.
func (c *Client) DefineWorkflow(ctx context.Context, definition json.RawMessage, dryRun bool, o ...Option) (wire.DefinedWorkflow, error) {
	return do[wire.DefinedWorkflow](ctx, c, newRequest(http.MethodPost, definition, "workflow-definitions").set("dryRun", dryRun), o)
}

// ListDefinitions lists the definitions of the workspace.
func (c *Client) ListDefinitions(ctx context.Context) iter.Seq2[wire.Definition, error] {
	return pages(func(p Page) (wire.List[wire.Definition], error) { return c.ListDefinitionsPage(ctx, p) })
}

// ListDefinitionsPage lists a page of the definitions of the workspace.
func (c *Client) ListDefinitionsPage(ctx context.Context, p Page, o ...Option) (wire.List[wire.Definition], error) {
	return do[wire.List[wire.Definition]](ctx, c, list(p, "workflow-definitions"), o)
}

// GetDefinition returns a definition. Its id is name@version.
func (c *Client) GetDefinition(ctx context.Context, id string, o ...Option) (wire.Definition, error) {
	return do[wire.Definition](ctx, c, newRequest(http.MethodGet, nil, "workflow-definitions", id), o)
}

// StartRun starts a run, or finds the one that was started under the key. The key is its
// idempotencyKey.
func (c *Client) StartRun(ctx context.Context, in wire.StartRun, o ...Option) (wire.StartedRun, error) {
	return do[wire.StartedRun](ctx, c, newRequest(http.MethodPost, in, "workflow-runs"), o)
}

// ListRuns lists the runs of the workspace, the newest first.
func (c *Client) ListRuns(ctx context.Context, f RunFilter) iter.Seq2[wire.Run, error] {
	return pages(func(p Page) (wire.List[wire.Run], error) { return c.ListRunsPage(ctx, f, p) })
}

// ListRunsPage lists a page of the runs of the workspace, the newest first.
func (c *Client) ListRunsPage(ctx context.Context, f RunFilter, p Page, o ...Option) (wire.List[wire.Run], error) {
	return do[wire.List[wire.Run]](ctx, c, list(p, "workflow-runs").set("status", f.Status).set("definitionId", f.Definition), o)
}

// GetRun returns a run.
func (c *Client) GetRun(ctx context.Context, id string, o ...Option) (wire.Run, error) {
	return do[wire.Run](ctx, c, newRequest(http.MethodGet, nil, "workflow-runs", id), o)
}

// ListSteps lists the visits of a run's steps, in their order.
func (c *Client) ListSteps(ctx context.Context, id string) iter.Seq2[wire.RunStep, error] {
	return pages(func(p Page) (wire.List[wire.RunStep], error) { return c.ListStepsPage(ctx, id, p) })
}

// ListStepsPage lists a page of the visits of a run's steps, in their order.
func (c *Client) ListStepsPage(ctx context.Context, id string, p Page, o ...Option) (wire.List[wire.RunStep], error) {
	return do[wire.List[wire.RunStep]](ctx, c, list(p, "workflow-runs", id, "steps"), o)
}

// ReadRunEvents reads what happened to a run.
func (c *Client) ReadRunEvents(ctx context.Context, id string) iter.Seq2[wire.Event, error] {
	return pages(func(p Page) (wire.List[wire.Event], error) { return c.ReadRunEventsPage(ctx, id, p) })
}

// ReadRunEventsPage reads a page of what happened to a run.
func (c *Client) ReadRunEventsPage(ctx context.Context, id string, p Page, o ...Option) (wire.List[wire.Event], error) {
	return do[wire.List[wire.Event]](ctx, c, list(p, "workflow-runs", id, "events"), o)
}

// CancelRun cancels a run: at once, or when who works on a step of it has ended. Until then
// its cancelRequested is set.
func (c *Client) CancelRun(ctx context.Context, id string, in wire.Command, o ...Option) (wire.Run, error) {
	return do[wire.Run](ctx, c, newRequest(http.MethodPost, in, "workflow-runs", id, "cancel"), o)
}

// PauseRun has a run begin no further step.
func (c *Client) PauseRun(ctx context.Context, id string, in wire.Command, o ...Option) (wire.Run, error) {
	return do[wire.Run](ctx, c, newRequest(http.MethodPost, in, "workflow-runs", id, "pause"), o)
}

// ResumeRun has a run go on that was paused.
func (c *Client) ResumeRun(ctx context.Context, id string, in wire.Command, o ...Option) (wire.Run, error) {
	return do[wire.Run](ctx, c, newRequest(http.MethodPost, in, "workflow-runs", id, "resume"), o)
}

// RetryRun has a run go on that has failed, at the step at which it did.
func (c *Client) RetryRun(ctx context.Context, id string, in wire.Command, o ...Option) (wire.Run, error) {
	return do[wire.Run](ctx, c, newRequest(http.MethodPost, in, "workflow-runs", id, "retry"), o)
}

// SignalRun tells a run something. It is kept until the run looks. Under the same id it is
// told once.
func (c *Client) SignalRun(ctx context.Context, id string, in wire.Signal, o ...Option) (wire.Signalled, error) {
	return do[wire.Signalled](ctx, c, newRequest(http.MethodPost, in, "workflow-runs", id, "signals"), o)
}

// ListApprovals lists what is to be decided, or was.
func (c *Client) ListApprovals(ctx context.Context, f ApprovalFilter) iter.Seq2[wire.Approval, error] {
	return pages(func(p Page) (wire.List[wire.Approval], error) { return c.ListApprovalsPage(ctx, f, p) })
}

// ListApprovalsPage lists a page of what is to be decided, or was.
func (c *Client) ListApprovalsPage(ctx context.Context, f ApprovalFilter, p Page, o ...Option) (wire.List[wire.Approval], error) {
	return do[wire.List[wire.Approval]](ctx, c, list(p, "approvals").set("status", f.Status).set("runId", f.Run), o)
}

// GetApproval returns an approval.
func (c *Client) GetApproval(ctx context.Context, id string, o ...Option) (wire.Approval, error) {
	return do[wire.Approval](ctx, c, newRequest(http.MethodGet, nil, "approvals", id), o)
}

// DecideApproval decides an approval. The first decision counts. Any other is refused.
func (c *Client) DecideApproval(ctx context.Context, id string, in wire.Decide, o ...Option) (wire.Approval, error) {
	return do[wire.Approval](ctx, c, newRequest(http.MethodPost, in, "approvals", id, "decide"), o)
}
