// Code generated from the route table in package httpapi. DO NOT EDIT.

package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"

	"github.com/holdfast-go/holdfast/wire"
)

// ListStreams lists the workspace's streams, without the histories.
func (c *Client) ListStreams(ctx context.Context, f StreamFilter) iter.Seq2[wire.Stream, error] {
	return pages(func(p Page) (wire.List[wire.Stream], error) { return c.ListStreamsPage(ctx, f, p) })
}

// ListStreamsPage lists a page of the workspace's streams, without the histories.
func (c *Client) ListStreamsPage(ctx context.Context, f StreamFilter, p Page, o ...Option) (wire.List[wire.Stream], error) {
	return do[wire.List[wire.Stream]](ctx, c, list(p, "streams").set("prefix", f.Prefix), o)
}

// GetStream returns a stream and counts of its events.
func (c *Client) GetStream(ctx context.Context, stream string, o ...Option) (wire.StreamStatistics, error) {
	return do[wire.StreamStatistics](ctx, c, newRequest(http.MethodGet, nil, "streams", stream), o)
}

// AppendEvents appends events to a stream, all or none, at an expected version.
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

// CloseStream closes a stream at an expected version. Repeating the same close returns the
// same result.
func (c *Client) CloseStream(ctx context.Context, stream string, in wire.CloseStream, o ...Option) (wire.ClosedStream, error) {
	return do[wire.ClosedStream](ctx, c, newRequest(http.MethodPost, in, "streams", stream, "close"), o)
}

// TruncateStream deletes the events of a stream below a version. Repeating it changes nothing.
func (c *Client) TruncateStream(ctx context.Context, stream string, in wire.TruncateStream, o ...Option) (wire.Stream, error) {
	return do[wire.Stream](ctx, c, newRequest(http.MethodPost, in, "streams", stream, "truncate"), o)
}

// SearchEvents searches a stream, or the feed of all streams but histories, for events. A page
// can be short or empty and still have a next page.
func (c *Client) SearchEvents(ctx context.Context, f EventFilter) iter.Seq2[wire.Event, error] {
	return pages(func(p Page) (wire.List[wire.Event], error) { return c.SearchEventsPage(ctx, f, p) })
}

// SearchEventsPage searches a page of a stream, or the feed of all streams but histories, for
// events. A page can be short or empty and still have a next page.
func (c *Client) SearchEventsPage(ctx context.Context, f EventFilter, p Page, o ...Option) (wire.List[wire.Event], error) {
	return do[wire.List[wire.Event]](ctx, c, list(p, "events", "search").set("stream", f.Stream).set("name", f.Name).set("correlation", f.Correlation).set("actor", f.Actor).set("since", f.Since).set("until", f.Until).set("backward", f.Backward), o)
}

// ReadFeedPage reads a page of the feed of all streams but histories. A cursor can also be an
// event's position.
func (c *Client) ReadFeedPage(ctx context.Context, p Page, o ...Option) (wire.List[wire.Event], error) {
	return do[wire.List[wire.Event]](ctx, c, list(p, "events"), o)
}

// ReadActivity reads all activity of the workspace, which is its feed and its histories.
// Despite the path, this is not the feed, which is at events. A page lists events of
// histories, except those of API keys, before events of the feed, each oldest first.
func (c *Client) ReadActivity(ctx context.Context) iter.Seq2[wire.Event, error] {
	return pages(func(p Page) (wire.List[wire.Event], error) { return c.ReadActivityPage(ctx, p) })
}

// ReadActivityPage reads a page of all activity of the workspace, which is its feed and its
// histories. Despite the path, this is not the feed, which is at events. A page lists events
// of histories, except those of API keys, before events of the feed, each oldest first.
func (c *Client) ReadActivityPage(ctx context.Context, p Page, o ...Option) (wire.List[wire.Event], error) {
	return do[wire.List[wire.Event]](ctx, c, list(p, "feed"), o)
}

// ListReactions lists the workspace's reactions and its lifecycles' after-effects.
func (c *Client) ListReactions(ctx context.Context) iter.Seq2[wire.Reaction, error] {
	return pages(func(p Page) (wire.List[wire.Reaction], error) { return c.ListReactionsPage(ctx, p) })
}

// ListReactionsPage lists a page of the workspace's reactions and its lifecycles'
// after-effects.
func (c *Client) ListReactionsPage(ctx context.Context, p Page, o ...Option) (wire.List[wire.Reaction], error) {
	return do[wire.List[wire.Reaction]](ctx, c, list(p, "reactions"), o)
}

// PutReaction registers a reaction, or changes its definition.
func (c *Client) PutReaction(ctx context.Context, name string, in wire.PutReaction, o ...Option) (wire.Reaction, error) {
	return do[wire.Reaction](ctx, c, newRequest(http.MethodPut, in, "reactions", name), o)
}

// GetReaction returns a reaction.
func (c *Client) GetReaction(ctx context.Context, name string, o ...Option) (wire.Reaction, error) {
	return do[wire.Reaction](ctx, c, newRequest(http.MethodGet, nil, "reactions", name), o)
}

// DeleteReaction deletes a reaction.
func (c *Client) DeleteReaction(ctx context.Context, name string, o ...Option) error {
	_, err := c.answer(ctx, newRequest(http.MethodDelete, nil, "reactions", name).with(o))
	return err
}

// ListPositions lists a reaction's positions in its streams (* for all reactions).
func (c *Client) ListPositions(ctx context.Context, reaction string, f PositionFilter) iter.Seq2[wire.Position, error] {
	return pages(func(p Page) (wire.List[wire.Position], error) { return c.ListPositionsPage(ctx, reaction, f, p) })
}

// ListPositionsPage lists a page of a reaction's positions in its streams (* for all
// reactions).
func (c *Client) ListPositionsPage(ctx context.Context, reaction string, f PositionFilter, p Page, o ...Option) (wire.List[wire.Position], error) {
	return do[wire.List[wire.Position]](ctx, c, list(p, "reactions", reaction, "streams").set("stream", f.Pattern).set("blocked", f.Blocked), o)
}

// ClaimLeases claims a reaction's streams manually. Without a [Key] the client generates one,
// so that it can retry the call and get the same leases after a lost response.
func (c *Client) ClaimLeases(ctx context.Context, reaction string, in wire.ClaimLeases, o ...Option) (wire.Leases, error) {
	return do[wire.Leases](ctx, c, newRequest(http.MethodPost, in, "reactions", reaction, "claim"), ownKey(o))
}

// AckLeases acknowledges handled events. Each lease is identified by its token. A lost lease
// or a version that was not delivered is reported in the results, not as an error.
func (c *Client) AckLeases(ctx context.Context, reaction string, in wire.Acks, o ...Option) (wire.Acked, error) {
	return do[wire.Acked](ctx, c, newRequest(http.MethodPost, in, "reactions", reaction, "ack"), o)
}

// FailLease reports that an event could not be handled. The lease is identified by its token.
func (c *Client) FailLease(ctx context.Context, reaction string, in wire.FailLease, o ...Option) (wire.FailedLease, error) {
	return do[wire.FailedLease](ctx, c, newRequest(http.MethodPost, in, "reactions", reaction, "fail"), o)
}

// SnoozeLease gives a stream back until a later time. This does not count as a failure. The
// lease is identified by its token.
func (c *Client) SnoozeLease(ctx context.Context, reaction string, in wire.SnoozeLease, o ...Option) (wire.SnoozedLease, error) {
	return do[wire.SnoozedLease](ctx, c, newRequest(http.MethodPost, in, "reactions", reaction, "snooze"), o)
}

// RenewLease renews a lease. The lease is identified by its token.
func (c *Client) RenewLease(ctx context.Context, reaction string, in wire.RenewLease, o ...Option) (wire.Renewed, error) {
	return do[wire.Renewed](ctx, c, newRequest(http.MethodPost, in, "reactions", reaction, "renew"), o)
}

// UnblockReactions unblocks a reaction on its streams (* for all reactions). Each stream
// continues with the event that blocked it.
func (c *Client) UnblockReactions(ctx context.Context, reaction string, in wire.Repair, o ...Option) (wire.Repaired, error) {
	return do[wire.Repaired](ctx, c, newRequest(http.MethodPost, in, "reactions", reaction, "unblock"), o)
}

// ResetReactions resets a reaction's positions (* for all reactions). The reaction handles all
// of their events again. With *, the positions of after-effects and webhooks are not reset.
func (c *Client) ResetReactions(ctx context.Context, reaction string, in wire.Repair, o ...Option) (wire.Repaired, error) {
	return do[wire.Repaired](ctx, c, newRequest(http.MethodPost, in, "reactions", reaction, "reset"), o)
}

// SkipReactions skips the events that block a reaction's streams (* for all reactions). Each
// stream continues with its next event.
func (c *Client) SkipReactions(ctx context.Context, reaction string, in wire.Repair, o ...Option) (wire.Repaired, error) {
	return do[wire.Repaired](ctx, c, newRequest(http.MethodPost, in, "reactions", reaction, "skip"), o)
}

// ListLifecycles lists the workspace's lifecycles.
func (c *Client) ListLifecycles(ctx context.Context) iter.Seq2[wire.Lifecycle, error] {
	return pages(func(p Page) (wire.List[wire.Lifecycle], error) { return c.ListLifecyclesPage(ctx, p) })
}

// ListLifecyclesPage lists a page of the workspace's lifecycles.
func (c *Client) ListLifecyclesPage(ctx context.Context, p Page, o ...Option) (wire.List[wire.Lifecycle], error) {
	return do[wire.List[wire.Lifecycle]](ctx, c, list(p, "lifecycles"), o)
}

// GetLifecycle returns a lifecycle's config, origin, janitor and lint warnings.
func (c *Client) GetLifecycle(ctx context.Context, name string, o ...Option) (wire.LifecycleDetails, error) {
	return do[wire.LifecycleDetails](ctx, c, newRequest(http.MethodGet, nil, "lifecycles", name), o)
}

// GetLifecycleDiagram returns a lifecycle's diagram. The format is svg (default, ""), mermaid,
// or layout for coordinates.
func (c *Client) GetLifecycleDiagram(ctx context.Context, lifecycle, format string, o ...Option) (wire.Diagram, error) {
	return do[wire.Diagram](ctx, c, newRequest(http.MethodGet, nil, "lifecycles", lifecycle, "diagram").set("format", format), o)
}

// CreateEntity creates an entity. Without an id and without a [Key], each call creates a new
// entity.
func (c *Client) CreateEntity(ctx context.Context, lifecycle string, in wire.NewEntity, o ...Option) (wire.Entity, error) {
	return do[wire.Entity](ctx, c, newRequest(http.MethodPost, in, "lifecycles", lifecycle, "entities"), o)
}

// ListEntities lists a lifecycle's entities, ordered by id. With a filter, a page may have few
// items, or none, and still a next one.
func (c *Client) ListEntities(ctx context.Context, lifecycle string, f EntityFilter) iter.Seq2[wire.Entity, error] {
	return pages(func(p Page) (wire.List[wire.Entity], error) { return c.ListEntitiesPage(ctx, lifecycle, f, p) })
}

// ListEntitiesPage lists a page of a lifecycle's entities, ordered by id. With a filter, a
// page may have few items, or none, and still a next one.
func (c *Client) ListEntitiesPage(ctx context.Context, lifecycle string, f EntityFilter, p Page, o ...Option) (wire.List[wire.Entity], error) {
	return do[wire.List[wire.Entity]](ctx, c, list(p, "lifecycles", lifecycle, "entities").set("status", f.Status).set("since", f.Since).set("until", f.Until).set("updatedSince", f.UpdatedSince).set("updatedUntil", f.UpdatedUntil), o)
}

// GetEntity returns an entity.
func (c *Client) GetEntity(ctx context.Context, lifecycle, id string, o ...Option) (wire.Entity, error) {
	return do[wire.Entity](ctx, c, newRequest(http.MethodGet, nil, "lifecycles", lifecycle, "entities", id), o)
}

// ReadEntityHistory reads an entity's history. Events are in order, oldest first.
func (c *Client) ReadEntityHistory(ctx context.Context, lifecycle, id string) iter.Seq2[wire.Event, error] {
	return pages(func(p Page) (wire.List[wire.Event], error) { return c.ReadEntityHistoryPage(ctx, lifecycle, id, p) })
}

// ReadEntityHistoryPage reads a page of an entity's history. Events are in order, oldest
// first.
func (c *Client) ReadEntityHistoryPage(ctx context.Context, lifecycle, id string, p Page, o ...Option) (wire.List[wire.Event], error) {
	return do[wire.List[wire.Event]](ctx, c, list(p, "lifecycles", lifecycle, "entities", id, "history"), o)
}

// ListRefusals lists the refused writes to an entity, newest first.
func (c *Client) ListRefusals(ctx context.Context, lifecycle, id string) iter.Seq2[wire.Attempt, error] {
	return pages(func(p Page) (wire.List[wire.Attempt], error) { return c.ListRefusalsPage(ctx, lifecycle, id, p) })
}

// ListRefusalsPage lists a page of the refused writes to an entity, newest first.
func (c *Client) ListRefusalsPage(ctx context.Context, lifecycle, id string, p Page, o ...Option) (wire.List[wire.Attempt], error) {
	return do[wire.List[wire.Attempt]](ctx, c, list(p, "lifecycles", lifecycle, "entities", id, "attempts"), o)
}

// ReadEntityTimeline reads an entity's events, refusals, effects and answers, newest first.
// Their order is that of the database: a refusal comes after the event whose version it found.
func (c *Client) ReadEntityTimeline(ctx context.Context, lifecycle, id string) iter.Seq2[wire.TimelineEntry, error] {
	return pages(func(p Page) (wire.List[wire.TimelineEntry], error) {
		return c.ReadEntityTimelinePage(ctx, lifecycle, id, p)
	})
}

// ReadEntityTimelinePage reads a page of an entity's events, refusals, effects and answers,
// newest first. Their order is that of the database: a refusal comes after the event whose
// version it found.
func (c *Client) ReadEntityTimelinePage(ctx context.Context, lifecycle, id string, p Page, o ...Option) (wire.List[wire.TimelineEntry], error) {
	return do[wire.List[wire.TimelineEntry]](ctx, c, list(p, "lifecycles", lifecycle, "entities", id, "timeline"), o)
}

// FireStep fires a step of an entity. The outcome may be pending or uncertain: the step then
// continues in the background, and the same call with the same [Key] later returns its
// outcome.
func (c *Client) FireStep(ctx context.Context, lifecycle, id, step string, in wire.Fire, o ...Option) (wire.Fired, error) {
	return do[wire.Fired](ctx, c, newRequest(http.MethodPost, in, "lifecycles", lifecycle, "entities", id, "steps", step), o)
}

// ClaimStep claims a step manually. The caller runs the step's body itself.
func (c *Client) ClaimStep(ctx context.Context, lifecycle, id string, in wire.NewClaim, o ...Option) (wire.Claimed, error) {
	return do[wire.Claimed](ctx, c, newRequest(http.MethodPost, in, "lifecycles", lifecycle, "entities", id, "claims"), o)
}

// ListClaims lists the workspace's claims.
func (c *Client) ListClaims(ctx context.Context, f ClaimFilter) iter.Seq2[wire.HeldClaim, error] {
	return pages(func(p Page) (wire.List[wire.HeldClaim], error) { return c.ListClaimsPage(ctx, f, p) })
}

// ListClaimsPage lists a page of the workspace's claims.
func (c *Client) ListClaimsPage(ctx context.Context, f ClaimFilter, p Page, o ...Option) (wire.List[wire.HeldClaim], error) {
	return do[wire.List[wire.HeldClaim]](ctx, c, list(p, "claims").set("state", f.Phase), o)
}

// RenewClaim renews a claim.
func (c *Client) RenewClaim(ctx context.Context, token string, in wire.Renew, o ...Option) (wire.Renewed, error) {
	return do[wire.Renewed](ctx, c, newRequest(http.MethodPost, in, "claims", token, "renew"), o)
}

// SettleClaim settles a claim with an outcome. Settling the claim again with the same outcome
// returns the same result.
func (c *Client) SettleClaim(ctx context.Context, token string, in wire.Settle, o ...Option) (wire.Settled, error) {
	return do[wire.Settled](ctx, c, newRequest(http.MethodPost, in, "claims", token, "settle"), o)
}

// ReleaseClaim releases a claim. The claim ends with the outcome failure.
func (c *Client) ReleaseClaim(ctx context.Context, token string, in wire.Release, o ...Option) (wire.Settled, error) {
	return do[wire.Settled](ctx, c, newRequest(http.MethodPost, in, "claims", token, "release"), o)
}

// JournalEffect journals an effect under a claim. Without a result or notDone, the call
// records the intent; otherwise it records the outcome.
func (c *Client) JournalEffect(ctx context.Context, token string, in wire.EffectCall, o ...Option) (wire.EffectState, error) {
	return do[wire.EffectState](ctx, c, newRequest(http.MethodPost, in, "claims", token, "effects"), o)
}

// ListOperations lists operations that have not ended, and operations with contradictions:
// effect calls by holders that had lost their lease.
func (c *Client) ListOperations(ctx context.Context, f OperationFilter) iter.Seq2[wire.Operation, error] {
	return pages(func(p Page) (wire.List[wire.Operation], error) { return c.ListOperationsPage(ctx, f, p) })
}

// ListOperationsPage lists a page of operations that have not ended, and operations with
// contradictions: effect calls by holders that had lost their lease.
func (c *Client) ListOperationsPage(ctx context.Context, f OperationFilter, p Page, o ...Option) (wire.List[wire.Operation], error) {
	return do[wire.List[wire.Operation]](ctx, c, list(p, "operations").set("state", f.State).set("handler", f.Handler), o)
}

// ResolveOperation resolves an uncertain operation.
func (c *Client) ResolveOperation(ctx context.Context, id string, in wire.Resolve, o ...Option) (wire.Resolved, error) {
	return do[wire.Resolved](ctx, c, newRequest(http.MethodPost, in, "operations", id, "resolve"), o)
}

// GetOperation returns an operation, even if it has ended. An ended operation of an entity is
// found by its effects and in the history of the entity. If it has no effects and its history
// is no longer retained, the response is NOT_FOUND.
func (c *Client) GetOperation(ctx context.Context, id string, o ...Option) (wire.Operation, error) {
	return do[wire.Operation](ctx, c, newRequest(http.MethodGet, nil, "operations", id), o)
}

// ReleaseOperation releases a leased operation: its holder can write nothing more. Releasing
// an operation of a lifecycle ends it, even if it is due and has no holder. A released step of
// a run becomes due again. If an effect may have happened, the response is EFFECT_UNRESOLVED.
func (c *Client) ReleaseOperation(ctx context.Context, id string, in wire.ReleaseOperation, o ...Option) (wire.Resolved, error) {
	return do[wire.Resolved](ctx, c, newRequest(http.MethodPost, in, "operations", id, "release"), o)
}

// WithdrawOperation withdraws an operation that is due and not leased. If one of its effects
// may have happened, the operation becomes uncertain and must be resolved.
func (c *Client) WithdrawOperation(ctx context.Context, id string, in wire.Withdraw, o ...Option) (wire.Resolved, error) {
	return do[wire.Resolved](ctx, c, newRequest(http.MethodPost, in, "operations", id, "withdraw"), o)
}

// AcknowledgeContradictions acknowledges an operation's contradictions. The response lists the
// contradictions that remain.
func (c *Client) AcknowledgeContradictions(ctx context.Context, id string, in wire.Acknowledge, o ...Option) (wire.Acknowledged, error) {
	return do[wire.Acknowledged](ctx, c, newRequest(http.MethodPost, in, "operations", id, "acknowledge"), o)
}

// CreateKey creates an API key. Its secret is returned only once. If the [Key] was used
// before, the secret is empty.
func (c *Client) CreateKey(ctx context.Context, in wire.NewKey, o ...Option) (wire.CreatedKey, error) {
	return do[wire.CreatedKey](ctx, c, newRequest(http.MethodPost, in, "keys"), o)
}

// ListKeys lists the workspace's API keys.
func (c *Client) ListKeys(ctx context.Context) iter.Seq2[wire.Key, error] {
	return pages(func(p Page) (wire.List[wire.Key], error) { return c.ListKeysPage(ctx, p) })
}

// ListKeysPage lists a page of the workspace's API keys.
func (c *Client) ListKeysPage(ctx context.Context, p Page, o ...Option) (wire.List[wire.Key], error) {
	return do[wire.List[wire.Key]](ctx, c, list(p, "keys"), o)
}

// GetKey returns an API key without its secret.
func (c *Client) GetKey(ctx context.Context, id string, o ...Option) (wire.Key, error) {
	return do[wire.Key](ctx, c, newRequest(http.MethodGet, nil, "keys", id), o)
}

// RotateKey replaces an API key with a new key that has the same permissions. The secret of
// the new key is returned only once.
func (c *Client) RotateKey(ctx context.Context, id string, in wire.RotateKey, o ...Option) (wire.CreatedKey, error) {
	return do[wire.CreatedKey](ctx, c, newRequest(http.MethodPost, in, "keys", id, "rotate"), o)
}

// RevokeKey revokes an API key. All nodes begin to refuse it within 5 seconds.
func (c *Client) RevokeKey(ctx context.Context, id string, o ...Option) (wire.Key, error) {
	return do[wire.Key](ctx, c, newRequest(http.MethodDelete, nil, "keys", id), o)
}

// CreateSession starts a browser session with the caller's API key. Its cookie is set. The key
// must be in a header. The session ends after 12 hours, or with the key. A key has at most 100
// sessions: one more ends the oldest.
func (c *Client) CreateSession(ctx context.Context, o ...Option) (wire.Session, error) {
	return do[wire.Session](ctx, c, newRequest(http.MethodPost, nil, "session"), o)
}

// GetSession returns the caller: its workspace, its role and its API key.
func (c *Client) GetSession(ctx context.Context, o ...Option) (wire.Session, error) {
	return do[wire.Session](ctx, c, newRequest(http.MethodGet, nil, "session"), o)
}

// DeleteSession ends the session of the cookie. The cookie is cleared. A session that has
// ended already is not an error.
func (c *Client) DeleteSession(ctx context.Context, o ...Option) error {
	_, err := c.answer(ctx, newRequest(http.MethodDelete, nil, "session").with(o))
	return err
}

// CreateWebhook creates a webhook. Its secret is returned only once. If the [Key] was used
// before, the secret is empty.
func (c *Client) CreateWebhook(ctx context.Context, in wire.NewWebhook, o ...Option) (wire.CreatedWebhook, error) {
	return do[wire.CreatedWebhook](ctx, c, newRequest(http.MethodPost, in, "webhooks"), o)
}

// ListWebhooks lists the workspace's webhooks.
func (c *Client) ListWebhooks(ctx context.Context) iter.Seq2[wire.Webhook, error] {
	return pages(func(p Page) (wire.List[wire.Webhook], error) { return c.ListWebhooksPage(ctx, p) })
}

// ListWebhooksPage lists a page of the workspace's webhooks.
func (c *Client) ListWebhooksPage(ctx context.Context, p Page, o ...Option) (wire.List[wire.Webhook], error) {
	return do[wire.List[wire.Webhook]](ctx, c, list(p, "webhooks"), o)
}

// GetWebhook returns a webhook without its secret.
func (c *Client) GetWebhook(ctx context.Context, id string, o ...Option) (wire.Webhook, error) {
	return do[wire.Webhook](ctx, c, newRequest(http.MethodGet, nil, "webhooks", id), o)
}

// RotateWebhook rotates a webhook's secret. The new secret is returned only once.
func (c *Client) RotateWebhook(ctx context.Context, id string, in wire.RotateWebhook, o ...Option) (wire.CreatedWebhook, error) {
	return do[wire.CreatedWebhook](ctx, c, newRequest(http.MethodPost, in, "webhooks", id, "rotate"), o)
}

// DeleteWebhook deletes a webhook.
func (c *Client) DeleteWebhook(ctx context.Context, id string, o ...Option) error {
	_, err := c.answer(ctx, newRequest(http.MethodDelete, nil, "webhooks", id).with(o))
	return err
}

// ListHandlers lists the workspace's handlers.
func (c *Client) ListHandlers(ctx context.Context) iter.Seq2[wire.Handler, error] {
	return pages(func(p Page) (wire.List[wire.Handler], error) { return c.ListHandlersPage(ctx, p) })
}

// ListHandlersPage lists a page of the workspace's handlers.
func (c *Client) ListHandlersPage(ctx context.Context, p Page, o ...Option) (wire.List[wire.Handler], error) {
	return do[wire.List[wire.Handler]](ctx, c, list(p, "handlers"), o)
}

// PutHandler declares a handler. The secret of a new http handler is returned only once.
func (c *Client) PutHandler(ctx context.Context, name string, in wire.PutHandler, o ...Option) (wire.Handler, error) {
	return do[wire.Handler](ctx, c, newRequest(http.MethodPut, in, "handlers", name), o)
}

// GetHandler returns a handler. The response does not include the secret.
func (c *Client) GetHandler(ctx context.Context, name string, o ...Option) (wire.Handler, error) {
	return do[wire.Handler](ctx, c, newRequest(http.MethodGet, nil, "handlers", name), o)
}

// DeleteHandler deletes a handler.
func (c *Client) DeleteHandler(ctx context.Context, name string, o ...Option) error {
	_, err := c.answer(ctx, newRequest(http.MethodDelete, nil, "handlers", name).with(o))
	return err
}

// PutLifecycle publishes a lifecycle config. A dry run only validates it. The config is a JSON
// document.
func (c *Client) PutLifecycle(ctx context.Context, name string, config json.RawMessage, o ...Option) (wire.PutLifecycle, error) {
	return do[wire.PutLifecycle](ctx, c, newRequest(http.MethodPut, config, "lifecycles", name), o)
}

// PutSecret stores the value of a named secret. Handlers, webhooks and http steps refer to it
// by its name. No request returns the value.
func (c *Client) PutSecret(ctx context.Context, name string, in wire.PutSecret, o ...Option) (wire.Secret, error) {
	return do[wire.Secret](ctx, c, newRequest(http.MethodPut, in, "secrets", name), o)
}

// ListSecrets lists the workspace's secrets, without their values.
func (c *Client) ListSecrets(ctx context.Context) iter.Seq2[wire.Secret, error] {
	return pages(func(p Page) (wire.List[wire.Secret], error) { return c.ListSecretsPage(ctx, p) })
}

// ListSecretsPage lists a page of the workspace's secrets, without their values.
func (c *Client) ListSecretsPage(ctx context.Context, p Page, o ...Option) (wire.List[wire.Secret], error) {
	return do[wire.List[wire.Secret]](ctx, c, list(p, "secrets"), o)
}

// GetSecret returns a secret without its value.
func (c *Client) GetSecret(ctx context.Context, name string, o ...Option) (wire.Secret, error) {
	return do[wire.Secret](ctx, c, newRequest(http.MethodGet, nil, "secrets", name), o)
}

// DeleteSecret deletes a secret that nothing refers to.
func (c *Client) DeleteSecret(ctx context.Context, name string, o ...Option) error {
	_, err := c.answer(ctx, newRequest(http.MethodDelete, nil, "secrets", name).with(o))
	return err
}

// ClaimTasks claims tasks for handlers. If no task is due, the call waits for one. A task
// counts as received once it is renewed, journals an effect or is ended. Without a [Key] the
// client generates one, so that it can retry the call and get the same leases after a lost
// response.
func (c *Client) ClaimTasks(ctx context.Context, in wire.ClaimTasks, o ...Option) (wire.Tasks, error) {
	return do[wire.Tasks](ctx, c, newRequest(http.MethodPost, in, "tasks", "claim"), ownKey(o))
}

// CompleteTask completes a task. Completing the task again under the same epoch returns the
// same result.
func (c *Client) CompleteTask(ctx context.Context, id string, in wire.CompleteTask, o ...Option) (wire.EndedTask, error) {
	return do[wire.EndedTask](ctx, c, newRequest(http.MethodPost, in, "tasks", id, "complete"), o)
}

// FailTask reports that a task failed.
func (c *Client) FailTask(ctx context.Context, id string, in wire.FailTask, o ...Option) (wire.EndedTask, error) {
	return do[wire.EndedTask](ctx, c, newRequest(http.MethodPost, in, "tasks", id, "fail"), o)
}

// SnoozeTask gives a task back until a later time. It counts neither as an attempt nor as a
// failure. A step of a lifecycle cannot be snoozed. Snoozing a task again under the same epoch
// returns the same result.
func (c *Client) SnoozeTask(ctx context.Context, id string, in wire.SnoozeTask, o ...Option) (wire.EndedTask, error) {
	return do[wire.EndedTask](ctx, c, newRequest(http.MethodPost, in, "tasks", id, "snooze"), o)
}

// RenewTask renews a task's lease.
func (c *Client) RenewTask(ctx context.Context, id string, in wire.Renew, o ...Option) (wire.Renewed, error) {
	return do[wire.Renewed](ctx, c, newRequest(http.MethodPost, in, "tasks", id, "renew"), o)
}

// JournalTaskEffect journals an effect of a task. Without a result or notDone, the call
// records the intent; otherwise it records the outcome.
func (c *Client) JournalTaskEffect(ctx context.Context, id string, in wire.EffectCall, o ...Option) (wire.EffectState, error) {
	return do[wire.EffectState](ctx, c, newRequest(http.MethodPost, in, "tasks", id, "effects"), o)
}

// ListWorkspaces lists the API key's workspace or, on a server without API keys, all
// workspaces.
func (c *Client) ListWorkspaces(ctx context.Context) iter.Seq2[wire.Workspace, error] {
	return pages(func(p Page) (wire.List[wire.Workspace], error) { return c.ListWorkspacesPage(ctx, p) })
}

// ListWorkspacesPage lists a page of the API key's workspace or, on a server without API keys,
// all workspaces.
func (c *Client) ListWorkspacesPage(ctx context.Context, p Page, o ...Option) (wire.List[wire.Workspace], error) {
	return do[wire.List[wire.Workspace]](ctx, c, list(p, "workspaces"), o)
}

// CreateWorkspace creates a workspace on a server without API keys. On any other server, a
// workspace is created together with its first API key.
func (c *Client) CreateWorkspace(ctx context.Context, in wire.NewWorkspace, o ...Option) (wire.Workspace, error) {
	return do[wire.Workspace](ctx, c, newRequest(http.MethodPost, in, "workspaces"), o)
}

// ListWallets lists the workspace's wallets.
func (c *Client) ListWallets(ctx context.Context) iter.Seq2[wire.Wallet, error] {
	return pages(func(p Page) (wire.List[wire.Wallet], error) { return c.ListWalletsPage(ctx, p) })
}

// ListWalletsPage lists a page of the workspace's wallets.
func (c *Client) ListWalletsPage(ctx context.Context, p Page, o ...Option) (wire.List[wire.Wallet], error) {
	return do[wire.List[wire.Wallet]](ctx, c, list(p, "wallets"), o)
}

// PutWallet creates a wallet, or changes it. Only allowNegative can be changed.
func (c *Client) PutWallet(ctx context.Context, id string, in wire.PutWallet, o ...Option) (wire.Wallet, error) {
	return do[wire.Wallet](ctx, c, newRequest(http.MethodPut, in, "wallets", id), o)
}

// GetWallet returns a wallet.
func (c *Client) GetWallet(ctx context.Context, id string, o ...Option) (wire.Wallet, error) {
	return do[wire.Wallet](ctx, c, newRequest(http.MethodGet, nil, "wallets", id), o)
}

// CreditWallet credits points to a wallet. Crediting again with the same reference adds
// nothing.
func (c *Client) CreditWallet(ctx context.Context, id string, in wire.Credit, o ...Option) (wire.Wallet, error) {
	return do[wire.Wallet](ctx, c, newRequest(http.MethodPost, in, "wallets", id, "credit"), o)
}

// ReadLedger reads a wallet's ledger, forward or backward.
func (c *Client) ReadLedger(ctx context.Context, id string, in LedgerRange) iter.Seq2[wire.LedgerEntry, error] {
	return pages(func(p Page) (wire.List[wire.LedgerEntry], error) { return c.ReadLedgerPage(ctx, id, in, p) })
}

// ReadLedgerPage reads a page of a wallet's ledger, forward or backward.
func (c *Client) ReadLedgerPage(ctx context.Context, id string, in LedgerRange, p Page, o ...Option) (wire.List[wire.LedgerEntry], error) {
	return do[wire.List[wire.LedgerEntry]](ctx, c, list(p, "wallets", id, "ledger").set("backward", in.Backward), o)
}

// AuditWallet audits a wallet's ledger (* for all wallets).
func (c *Client) AuditWallet(ctx context.Context, id string, o ...Option) (wire.Audit, error) {
	return do[wire.Audit](ctx, c, newRequest(http.MethodGet, nil, "wallets", id, "audit"), o)
}

// ListScopeKinds lists the kinds of scopes.
func (c *Client) ListScopeKinds(ctx context.Context) iter.Seq2[wire.ScopeKind, error] {
	return pages(func(p Page) (wire.List[wire.ScopeKind], error) { return c.ListScopeKindsPage(ctx, p) })
}

// ListScopeKindsPage lists a page of the kinds of scopes.
func (c *Client) ListScopeKindsPage(ctx context.Context, p Page, o ...Option) (wire.List[wire.ScopeKind], error) {
	return do[wire.List[wire.ScopeKind]](ctx, c, list(p, "scopes"), o)
}

// ListScopes lists the scopes of a kind, without their states. A page can be short or empty
// and still have a next page.
func (c *Client) ListScopes(ctx context.Context, kind string, f ScopeFilter) iter.Seq2[wire.ScopeInfo, error] {
	return pages(func(p Page) (wire.List[wire.ScopeInfo], error) { return c.ListScopesPage(ctx, kind, f, p) })
}

// ListScopesPage lists a page of the scopes of a kind, without their states. A page can be
// short or empty and still have a next page.
func (c *Client) ListScopesPage(ctx context.Context, kind string, f ScopeFilter, p Page, o ...Option) (wire.List[wire.ScopeInfo], error) {
	return do[wire.List[wire.ScopeInfo]](ctx, c, list(p, "scopes", kind).set("prefix", f.Prefix), o)
}

// PutScope replaces a scope's state, or creates the scope. With If-Match, it replaces exactly
// the version that you have read.
func (c *Client) PutScope(ctx context.Context, kind, id string, state json.RawMessage, o ...Option) (wire.ChangedScope, error) {
	return do[wire.ChangedScope](ctx, c, newRequest(http.MethodPut, state, "scopes", kind, id), o)
}

// GetScope returns a scope. The response for a scope that does not exist is NOT_FOUND; a
// watcher gets version -1.
func (c *Client) GetScope(ctx context.Context, kind, id string, o ...Option) (wire.Scope, error) {
	return do[wire.Scope](ctx, c, newRequest(http.MethodGet, nil, "scopes", kind, id), o)
}

// PatchScope merges a document into a scope's state (RFC 7396), or creates the scope.
func (c *Client) PatchScope(ctx context.Context, kind, id string, merge json.RawMessage, o ...Option) (wire.ChangedScope, error) {
	return do[wire.ChangedScope](ctx, c, newRequest(http.MethodPatch, merge, "scopes", kind, id), o)
}

// DeleteScope deletes a scope. Deleting a scope that does not exist changes nothing.
func (c *Client) DeleteScope(ctx context.Context, kind, id string, o ...Option) (wire.ChangedScope, error) {
	return do[wire.ChangedScope](ctx, c, newRequest(http.MethodDelete, nil, "scopes", kind, id), o)
}

// IncScope adds to the integer in a field. A missing field counts as 0.
func (c *Client) IncScope(ctx context.Context, kind, id string, in wire.IncScope, o ...Option) (wire.ChangedScope, error) {
	return do[wire.ChangedScope](ctx, c, newRequest(http.MethodPost, in, "scopes", kind, id, "inc"), o)
}

// PushScope appends an item to the list in a field. A missing field counts as an empty list.
func (c *Client) PushScope(ctx context.Context, kind, id string, in wire.PushScope, o ...Option) (wire.ChangedScope, error) {
	return do[wire.ChangedScope](ctx, c, newRequest(http.MethodPost, in, "scopes", kind, id, "push"), o)
}

// SetScopeRecord sets a record in the object in a field, under a key. The record may be null.
func (c *Client) SetScopeRecord(ctx context.Context, kind, id, field, key string, record json.RawMessage, o ...Option) (wire.ChangedScope, error) {
	return do[wire.ChangedScope](ctx, c, newRequest(http.MethodPut, record, "scopes", kind, id, "records", field, key), o)
}

// DeleteScopeRecord deletes a record from the object in a field. Deleting a record that does
// not exist changes nothing.
func (c *Client) DeleteScopeRecord(ctx context.Context, kind, id, field, key string, o ...Option) (wire.ChangedScope, error) {
	return do[wire.ChangedScope](ctx, c, newRequest(http.MethodDelete, nil, "scopes", kind, id, "records", field, key), o)
}

// ListBatches lists the workspace's batches, in the order of their ids. With a filter, a page
// may have few items, or none, and still a next one.
func (c *Client) ListBatches(ctx context.Context, f BatchFilter) iter.Seq2[wire.Batch, error] {
	return pages(func(p Page) (wire.List[wire.Batch], error) { return c.ListBatchesPage(ctx, f, p) })
}

// ListBatchesPage lists a page of the workspace's batches, in the order of their ids. With a
// filter, a page may have few items, or none, and still a next one.
func (c *Client) ListBatchesPage(ctx context.Context, f BatchFilter, p Page, o ...Option) (wire.List[wire.Batch], error) {
	return do[wire.List[wire.Batch]](ctx, c, list(p, "batches").set("status", f.Status).set("handler", f.Handler).set("wallet", f.Wallet).set("backward", f.Backward).set("since", f.Since).set("until", f.Until).set("updatedSince", f.UpdatedSince).set("updatedUntil", f.UpdatedUntil), o)
}

// CreateBatch creates a batch of items paid from a wallet.
func (c *Client) CreateBatch(ctx context.Context, in wire.NewBatch, o ...Option) (wire.Batch, error) {
	return do[wire.Batch](ctx, c, newRequest(http.MethodPost, in, "batches"), o)
}

// GetBatch returns a batch.
func (c *Client) GetBatch(ctx context.Context, id string, o ...Option) (wire.Batch, error) {
	return do[wire.Batch](ctx, c, newRequest(http.MethodGet, nil, "batches", id), o)
}

// ListItems lists a batch's items.
func (c *Client) ListItems(ctx context.Context, id string, f ItemFilter) iter.Seq2[wire.BatchItem, error] {
	return pages(func(p Page) (wire.List[wire.BatchItem], error) { return c.ListItemsPage(ctx, id, f, p) })
}

// ListItemsPage lists a page of a batch's items.
func (c *Client) ListItemsPage(ctx context.Context, id string, f ItemFilter, p Page, o ...Option) (wire.List[wire.BatchItem], error) {
	return do[wire.List[wire.BatchItem]](ctx, c, list(p, "batches", id, "items").set("state", f.State), o)
}

// AddItems adds items to an open batch. Items that were added before are not added again.
func (c *Client) AddItems(ctx context.Context, id string, in wire.AddItems, o ...Option) (wire.AddedItems, error) {
	return do[wire.AddedItems](ctx, c, newRequest(http.MethodPost, in, "batches", id, "items"), o)
}

// SealBatch seals a batch: no more items can be added.
func (c *Client) SealBatch(ctx context.Context, id string, o ...Option) (wire.Batch, error) {
	return do[wire.Batch](ctx, c, newRequest(http.MethodPost, nil, "batches", id, "seal"), o)
}

// CancelBatch cancels a batch. Charges for items that were not accepted are refunded. The
// result is CANCELLED, or ACCEPTED while items in flight are torn down.
func (c *Client) CancelBatch(ctx context.Context, id string, o ...Option) (wire.CancelledBatch, error) {
	return do[wire.CancelledBatch](ctx, c, newRequest(http.MethodPost, nil, "batches", id, "cancel"), o)
}

// ReadBatchHistory reads a batch's events.
func (c *Client) ReadBatchHistory(ctx context.Context, id string) iter.Seq2[wire.Event, error] {
	return pages(func(p Page) (wire.List[wire.Event], error) { return c.ReadBatchHistoryPage(ctx, id, p) })
}

// ReadBatchHistoryPage reads a page of a batch's events.
func (c *Client) ReadBatchHistoryPage(ctx context.Context, id string, p Page, o ...Option) (wire.List[wire.Event], error) {
	return do[wire.List[wire.Event]](ctx, c, list(p, "batches", id, "events"), o)
}

// PutDefinition stores a workflow definition. A dry run only validates it. The definition is a
// JSON document. Storing the same definition again changes nothing; a different definition
// with the same name and version is refused.
func (c *Client) PutDefinition(ctx context.Context, definition json.RawMessage, o ...Option) (wire.DefinedWorkflow, error) {
	return do[wire.DefinedWorkflow](ctx, c, newRequest(http.MethodPost, definition, "workflow-definitions"), o)
}

// ListDefinitions lists the workspace's workflow definitions.
func (c *Client) ListDefinitions(ctx context.Context) iter.Seq2[wire.Definition, error] {
	return pages(func(p Page) (wire.List[wire.Definition], error) { return c.ListDefinitionsPage(ctx, p) })
}

// ListDefinitionsPage lists a page of the workspace's workflow definitions.
func (c *Client) ListDefinitionsPage(ctx context.Context, p Page, o ...Option) (wire.List[wire.Definition], error) {
	return do[wire.List[wire.Definition]](ctx, c, list(p, "workflow-definitions"), o)
}

// GetDefinition returns a workflow definition. Its id is name@version.
func (c *Client) GetDefinition(ctx context.Context, id string, o ...Option) (wire.Definition, error) {
	return do[wire.Definition](ctx, c, newRequest(http.MethodGet, nil, "workflow-definitions", id), o)
}

// GetDefinitionDiagram returns a workflow definition's diagram. The format is svg (default,
// ""), mermaid, or layout for coordinates.
func (c *Client) GetDefinitionDiagram(ctx context.Context, id, format string, o ...Option) (wire.Diagram, error) {
	return do[wire.Diagram](ctx, c, newRequest(http.MethodGet, nil, "workflow-definitions", id, "diagram").set("format", format), o)
}

// StartRun starts a run. If a run was already started with the same key, the response contains
// that run. This key is the idempotencyKey in the request body, not the header
// Idempotency-Key.
func (c *Client) StartRun(ctx context.Context, in wire.StartRun, o ...Option) (wire.StartedRun, error) {
	return do[wire.StartedRun](ctx, c, newRequest(http.MethodPost, in, "workflow-runs"), o)
}

// ListRuns lists the workspace's runs, newest first. With a filter, a page may have few items,
// or none, and still a next one.
func (c *Client) ListRuns(ctx context.Context, f RunFilter) iter.Seq2[wire.Run, error] {
	return pages(func(p Page) (wire.List[wire.Run], error) { return c.ListRunsPage(ctx, f, p) })
}

// ListRunsPage lists a page of the workspace's runs, newest first. With a filter, a page may
// have few items, or none, and still a next one.
func (c *Client) ListRunsPage(ctx context.Context, f RunFilter, p Page, o ...Option) (wire.List[wire.Run], error) {
	return do[wire.List[wire.Run]](ctx, c, list(p, "workflow-runs").set("status", f.Status).set("definitionId", f.Definition).set("key", f.Key).set("step", f.Step).set("handler", f.Handler).set("since", f.Since).set("until", f.Until).set("updatedSince", f.UpdatedSince).set("updatedUntil", f.UpdatedUntil), o)
}

// GetRun returns a run.
func (c *Client) GetRun(ctx context.Context, id string, o ...Option) (wire.Run, error) {
	return do[wire.Run](ctx, c, newRequest(http.MethodGet, nil, "workflow-runs", id), o)
}

// ListSteps lists a run's step visits, in order.
func (c *Client) ListSteps(ctx context.Context, id string) iter.Seq2[wire.RunStep, error] {
	return pages(func(p Page) (wire.List[wire.RunStep], error) { return c.ListStepsPage(ctx, id, p) })
}

// ListStepsPage lists a page of a run's step visits, in order.
func (c *Client) ListStepsPage(ctx context.Context, id string, p Page, o ...Option) (wire.List[wire.RunStep], error) {
	return do[wire.List[wire.RunStep]](ctx, c, list(p, "workflow-runs", id, "steps"), o)
}

// ReadRunHistory reads a run's events.
func (c *Client) ReadRunHistory(ctx context.Context, id string) iter.Seq2[wire.Event, error] {
	return pages(func(p Page) (wire.List[wire.Event], error) { return c.ReadRunHistoryPage(ctx, id, p) })
}

// ReadRunHistoryPage reads a page of a run's events.
func (c *Client) ReadRunHistoryPage(ctx context.Context, id string, p Page, o ...Option) (wire.List[wire.Event], error) {
	return do[wire.List[wire.Event]](ctx, c, list(p, "workflow-runs", id, "events"), o)
}

// CancelRun cancels a run, immediately or when the step in flight ends. Until the run ends,
// cancelRequested is set.
func (c *Client) CancelRun(ctx context.Context, id string, in wire.Command, o ...Option) (wire.Run, error) {
	return do[wire.Run](ctx, c, newRequest(http.MethodPost, in, "workflow-runs", id, "cancel"), o)
}

// PauseRun pauses a run: no further step starts.
func (c *Client) PauseRun(ctx context.Context, id string, in wire.Command, o ...Option) (wire.Run, error) {
	return do[wire.Run](ctx, c, newRequest(http.MethodPost, in, "workflow-runs", id, "pause"), o)
}

// ResumeRun resumes a paused run.
func (c *Client) ResumeRun(ctx context.Context, id string, in wire.Command, o ...Option) (wire.Run, error) {
	return do[wire.Run](ctx, c, newRequest(http.MethodPost, in, "workflow-runs", id, "resume"), o)
}

// RetryRun retries a failed run at the step that failed.
func (c *Client) RetryRun(ctx context.Context, id string, in wire.Command, o ...Option) (wire.Run, error) {
	return do[wire.Run](ctx, c, newRequest(http.MethodPost, in, "workflow-runs", id, "retry"), o)
}

// SignalRun sends a signal to a run. The signal is stored until the run reads it. Sending a
// signal again with the same id has no effect.
func (c *Client) SignalRun(ctx context.Context, id string, in wire.Signal, o ...Option) (wire.Signalled, error) {
	return do[wire.Signalled](ctx, c, newRequest(http.MethodPost, in, "workflow-runs", id, "signals"), o)
}

// ListApprovals lists the workspace's approvals. With a filter, a page may have few items, or
// none, and still a next one.
func (c *Client) ListApprovals(ctx context.Context, f ApprovalFilter) iter.Seq2[wire.Approval, error] {
	return pages(func(p Page) (wire.List[wire.Approval], error) { return c.ListApprovalsPage(ctx, f, p) })
}

// ListApprovalsPage lists a page of the workspace's approvals. With a filter, a page may have
// few items, or none, and still a next one.
func (c *Client) ListApprovalsPage(ctx context.Context, f ApprovalFilter, p Page, o ...Option) (wire.List[wire.Approval], error) {
	return do[wire.List[wire.Approval]](ctx, c, list(p, "approvals").set("status", f.Status).set("runId", f.Run), o)
}

// GetApproval returns an approval.
func (c *Client) GetApproval(ctx context.Context, id string, o ...Option) (wire.Approval, error) {
	return do[wire.Approval](ctx, c, newRequest(http.MethodGet, nil, "approvals", id), o)
}

// DecideApproval decides an approval. Only the first decision counts. Later decisions are
// refused.
func (c *Client) DecideApproval(ctx context.Context, id string, in wire.Decide, o ...Option) (wire.Approval, error) {
	return do[wire.Approval](ctx, c, newRequest(http.MethodPost, in, "approvals", id, "decide"), o)
}

// ReadTimeline reads the events, refusals, effects and answers of any stream, newest first.
// The stream may be a history, such as $run/{id} or $scope/{kind}/{id}.
func (c *Client) ReadTimeline(ctx context.Context, stream string) iter.Seq2[wire.TimelineEntry, error] {
	return pages(func(p Page) (wire.List[wire.TimelineEntry], error) { return c.ReadTimelinePage(ctx, stream, p) })
}

// ReadTimelinePage reads a page of the events, refusals, effects and answers of any stream,
// newest first. The stream may be a history, such as $run/{id} or $scope/{kind}/{id}.
func (c *Client) ReadTimelinePage(ctx context.Context, stream string, p Page, o ...Option) (wire.List[wire.TimelineEntry], error) {
	return do[wire.List[wire.TimelineEntry]](ctx, c, list(p, "timeline").set("stream", stream), o)
}

// ListRaces lists the workspace's refused writes, newest first, grouped by what they lost to.
// The limit is a number of refusals. A race with more refusals than fit on a page continues on
// the next one.
func (c *Client) ListRaces(ctx context.Context) iter.Seq2[wire.Race, error] {
	return pages(func(p Page) (wire.List[wire.Race], error) { return c.ListRacesPage(ctx, p) })
}

// ListRacesPage lists a page of the workspace's refused writes, newest first, grouped by what
// they lost to. The limit is a number of refusals. A race with more refusals than fit on a
// page continues on the next one.
func (c *Client) ListRacesPage(ctx context.Context, p Page, o ...Option) (wire.List[wire.Race], error) {
	return do[wire.List[wire.Race]](ctx, c, list(p, "races"), o)
}

// ListInbox lists what needs a person or is stuck, oldest first. Each entry has a reason and
// an action that can be called as given. At most 1,000 entries of each kind are listed;
// inbox/counts says whether there are more.
func (c *Client) ListInbox(ctx context.Context, f InboxFilter) iter.Seq2[wire.InboxItem, error] {
	return pages(func(p Page) (wire.List[wire.InboxItem], error) { return c.ListInboxPage(ctx, f, p) })
}

// ListInboxPage lists a page of what needs a person or is stuck, oldest first. Each entry has
// a reason and an action that can be called as given. At most 1,000 entries of each kind are
// listed; inbox/counts says whether there are more.
func (c *Client) ListInboxPage(ctx context.Context, f InboxFilter, p Page, o ...Option) (wire.List[wire.InboxItem], error) {
	return do[wire.List[wire.InboxItem]](ctx, c, list(p, "inbox").set("kind", f.Kind), o)
}

// CountInbox counts the entries of the inbox by kind. Counts are exact up to 1,000.
func (c *Client) CountInbox(ctx context.Context, f InboxFilter, o ...Option) (wire.InboxCounts, error) {
	return do[wire.InboxCounts](ctx, c, newRequest(http.MethodGet, nil, "inbox", "counts").set("kind", f.Kind), o)
}

// RunMaintenance runs the background work of the node that receives the request. The node
// releases expired leases, deletes what retention permits, and continues runs whose timers are
// due.
func (c *Client) RunMaintenance(ctx context.Context, o ...Option) (wire.Maintained, error) {
	return do[wire.Maintained](ctx, c, newRequest(http.MethodPost, nil, "maintenance"), o)
}

// ListAudit lists the workspace's administrative actions, newest first.
func (c *Client) ListAudit(ctx context.Context, f AuditFilter) iter.Seq2[wire.AuditEntry, error] {
	return pages(func(p Page) (wire.List[wire.AuditEntry], error) { return c.ListAuditPage(ctx, f, p) })
}

// ListAuditPage lists a page of the workspace's administrative actions, newest first.
func (c *Client) ListAuditPage(ctx context.Context, f AuditFilter, p Page, o ...Option) (wire.List[wire.AuditEntry], error) {
	return do[wire.List[wire.AuditEntry]](ctx, c, list(p, "audit").set("actor", f.Actor).set("action", f.Action).set("subject", f.Subject).set("since", f.Since).set("until", f.Until), o)
}

// ListRequests lists the requests with an idempotency key whose response is the outcome of an
// operation.
func (c *Client) ListRequests(ctx context.Context, f RequestFilter) iter.Seq2[wire.StoredRequest, error] {
	return pages(func(p Page) (wire.List[wire.StoredRequest], error) { return c.ListRequestsPage(ctx, f, p) })
}

// ListRequestsPage lists a page of the requests with an idempotency key whose response is the
// outcome of an operation.
func (c *Client) ListRequestsPage(ctx context.Context, f RequestFilter, p Page, o ...Option) (wire.List[wire.StoredRequest], error) {
	return do[wire.List[wire.StoredRequest]](ctx, c, list(p, "requests").set("operation", f.Operation), o)
}

// GetRequest returns the requests that were made with an idempotency key, and the responses
// that their callers got. Equal keys on different routes are different requests.
func (c *Client) GetRequest(ctx context.Context, key string, o ...Option) (wire.StoredRequests, error) {
	return do[wire.StoredRequests](ctx, c, newRequest(http.MethodGet, nil, "requests", key), o)
}

// GetOverview counts what the workspace has, by capability and state. Counts of what has not
// ended are exact, others up to 5,000.
func (c *Client) GetOverview(ctx context.Context, o ...Option) (wire.Overview, error) {
	return do[wire.Overview](ctx, c, newRequest(http.MethodGet, nil, "overview"), o)
}

// CountEntities counts the entities of a lifecycle by status. Counts are exact up to 5,000.
// Rows of your own tables are not counted.
func (c *Client) CountEntities(ctx context.Context, lifecycle string, o ...Option) (wire.Tally, error) {
	return do[wire.Tally](ctx, c, newRequest(http.MethodGet, nil, "lifecycles", lifecycle, "counts"), o)
}

// ListNodes lists the nodes that run on the database.
func (c *Client) ListNodes(ctx context.Context) iter.Seq2[wire.Node, error] {
	return pages(func(p Page) (wire.List[wire.Node], error) { return c.ListNodesPage(ctx, p) })
}

// ListNodesPage lists a page of the nodes that run on the database.
func (c *Client) ListNodesPage(ctx context.Context, p Page, o ...Option) (wire.List[wire.Node], error) {
	return do[wire.List[wire.Node]](ctx, c, list(p, "nodes"), o)
}

// ListRates lists the activity of each node per minute, oldest first.
func (c *Client) ListRates(ctx context.Context, f RateFilter) iter.Seq2[wire.Rate, error] {
	return pages(func(p Page) (wire.List[wire.Rate], error) { return c.ListRatesPage(ctx, f, p) })
}

// ListRatesPage lists a page of the activity of each node per minute, oldest first.
func (c *Client) ListRatesPage(ctx context.Context, f RateFilter, p Page, o ...Option) (wire.List[wire.Rate], error) {
	return do[wire.List[wire.Rate]](ctx, c, list(p, "rates").set("minutes", f.Minutes), o)
}

// GetLive returns what has changed in the watched topics. Without a cursor there are no
// changes, only the states and a cursor. A stream has at most four messages a second.
func (c *Client) GetLive(ctx context.Context, watch, after string, o ...Option) (wire.Live, error) {
	return do[wire.Live](ctx, c, newRequest(http.MethodGet, nil, "live").set("watch", watch).set("since", after), o)
}

// StartBulk starts a bulk: one action on many runs, positions of reactions or operations, in
// the background. Each member is acted on at most once, and is checked as by the same action
// on one object; those that are refused are listed. With dryRun, nothing is written.
func (c *Client) StartBulk(ctx context.Context, in wire.NewBulk, o ...Option) (wire.StartedBulk, error) {
	return do[wire.StartedBulk](ctx, c, newRequest(http.MethodPost, in, "bulk"), o)
}

// ListBulks lists the workspace's bulks, newest first.
func (c *Client) ListBulks(ctx context.Context) iter.Seq2[wire.Bulk, error] {
	return pages(func(p Page) (wire.List[wire.Bulk], error) { return c.ListBulksPage(ctx, p) })
}

// ListBulksPage lists a page of the workspace's bulks, newest first.
func (c *Client) ListBulksPage(ctx context.Context, p Page, o ...Option) (wire.List[wire.Bulk], error) {
	return do[wire.List[wire.Bulk]](ctx, c, list(p, "bulk"), o)
}

// GetBulk returns a bulk and its progress.
func (c *Client) GetBulk(ctx context.Context, id string, o ...Option) (wire.Bulk, error) {
	return do[wire.Bulk](ctx, c, newRequest(http.MethodGet, nil, "bulk", id), o)
}

// ListBulkMembers lists a bulk's members and the result of the action on each.
func (c *Client) ListBulkMembers(ctx context.Context, id string, f BulkMemberFilter) iter.Seq2[wire.BulkMember, error] {
	return pages(func(p Page) (wire.List[wire.BulkMember], error) { return c.ListBulkMembersPage(ctx, id, f, p) })
}

// ListBulkMembersPage lists a page of a bulk's members and the result of the action on each.
func (c *Client) ListBulkMembersPage(ctx context.Context, id string, f BulkMemberFilter, p Page, o ...Option) (wire.List[wire.BulkMember], error) {
	return do[wire.List[wire.BulkMember]](ctx, c, list(p, "bulk", id, "members").set("status", f.Status), o)
}

// CancelBulk cancels a bulk: no further member is acted on. What was done is not undone.
func (c *Client) CancelBulk(ctx context.Context, id string, o ...Option) (wire.Bulk, error) {
	return do[wire.Bulk](ctx, c, newRequest(http.MethodPost, nil, "bulk", id, "cancel"), o)
}

// Search finds objects by the beginning of their ids, keys or names. The search is
// case-sensitive. It returns up to 10 objects of each kind, exact matches first. A kind can be
// given, or several separated by commas. Requests are found by their whole idempotency key,
// and by admins only.
func (c *Client) Search(ctx context.Context, q, kind string, o ...Option) (wire.Matches, error) {
	return do[wire.Matches](ctx, c, newRequest(http.MethodGet, nil, "search").set("q", q).set("kind", kind), o)
}

// ListQuotas lists the quotas of the workspace, and what it uses of them. Each node counts
// requests and connections of its own: the response has those of the node that responds.
func (c *Client) ListQuotas(ctx context.Context) iter.Seq2[wire.Quota, error] {
	return pages(func(p Page) (wire.List[wire.Quota], error) { return c.ListQuotasPage(ctx, p) })
}

// ListQuotasPage lists a page of the quotas of the workspace, and what it uses of them. Each
// node counts requests and connections of its own: the response has those of the node that
// responds.
func (c *Client) ListQuotasPage(ctx context.Context, p Page, o ...Option) (wire.List[wire.Quota], error) {
	return do[wire.List[wire.Quota]](ctx, c, list(p, "quotas"), o)
}
