# Generated from the route table by "go generate ./sdk". Do not edit.

from __future__ import annotations

from datetime import datetime
from typing import Any, Dict, Iterator

from . import types as t


class Api:
    """The routes of the API. Client sends the requests."""

    _send: Any
    _pages: Any

    def list_streams(self, *, prefix: str | None = None, limit: int | None = None, cursor: str | None = None) -> Iterator[t.Stream]:
        """List the workspace's streams, without the histories."""
        return self._pages(lambda at: self.list_streams_page(prefix=prefix, limit=limit, cursor=at), cursor)

    def list_streams_page(self, *, prefix: str | None = None, limit: int | None = None, cursor: str | None = None) -> t.ListStream:
        """One page: List the workspace's streams, without the histories."""
        return self._send("GET", ["streams"], query={"prefix": prefix, "limit": limit, "cursor": cursor}, repeat="read")

    def get_stream(self, stream: str) -> t.StreamStatistics:
        """Show a stream and counts of its events."""
        return self._send("GET", ["streams", stream], repeat="read")

    def append_events(self, stream: str, body: t.Append, *, idempotency_key: str | None = None) -> t.Appended:
        """Append events to a stream, all or none, at an expected version."""
        return self._send("POST", ["streams", stream, "events"], body=body, key=idempotency_key, repeat="key")

    def read_stream(self, stream: str, *, from_: int | None = None, backward: bool | None = None, limit: int | None = None, cursor: str | None = None) -> Iterator[t.Event]:
        """Read a stream, forward or backward."""
        return self._pages(lambda at: self.read_stream_page(stream, from_=from_, backward=backward, limit=limit, cursor=at), cursor)

    def read_stream_page(self, stream: str, *, from_: int | None = None, backward: bool | None = None, limit: int | None = None, cursor: str | None = None) -> t.ListEvent:
        """One page: Read a stream, forward or backward."""
        return self._send("GET", ["streams", stream, "events"], query={"from": from_, "backward": backward, "limit": limit, "cursor": cursor}, repeat="read")

    def close_stream(self, stream: str, body: t.CloseStream, *, idempotency_key: str | None = None) -> t.ClosedStream:
        """Close a stream at an expected version. Repeating the same close returns the same result."""
        return self._send("POST", ["streams", stream, "close"], body=body, key=idempotency_key, repeat="key")

    def truncate_stream(self, stream: str, body: t.TruncateStream, *, idempotency_key: str | None = None) -> t.Stream:
        """Delete the events of a stream below a version. Repeating it changes nothing."""
        return self._send("POST", ["streams", stream, "truncate"], body=body, key=idempotency_key, repeat="key")

    def search_events(self, *, stream: str | None = None, name: str | None = None, correlation: str | None = None, actor: str | None = None, since: str | datetime | None = None, until: str | datetime | None = None, backward: bool | None = None, limit: int | None = None, cursor: str | None = None) -> Iterator[t.Event]:
        """Search a stream, or the feed of all streams but histories, for events. A page can be short or empty and still have a next page."""
        return self._pages(lambda at: self.search_events_page(stream=stream, name=name, correlation=correlation, actor=actor, since=since, until=until, backward=backward, limit=limit, cursor=at), cursor)

    def search_events_page(self, *, stream: str | None = None, name: str | None = None, correlation: str | None = None, actor: str | None = None, since: str | datetime | None = None, until: str | datetime | None = None, backward: bool | None = None, limit: int | None = None, cursor: str | None = None) -> t.ListEvent:
        """One page: Search a stream, or the feed of all streams but histories, for events. A page can be short or empty and still have a next page."""
        return self._send("GET", ["events", "search"], query={"stream": stream, "name": name, "correlation": correlation, "actor": actor, "since": since, "until": until, "backward": backward, "limit": limit, "cursor": cursor}, repeat="read")

    def read_feed(self, *, limit: int | None = None, cursor: str | None = None) -> Iterator[t.Event]:
        """Read the feed of all streams but histories. A cursor can also be an event's position."""
        return self._pages(lambda at: self.read_feed_page(limit=limit, cursor=at), cursor)

    def read_feed_page(self, *, limit: int | None = None, cursor: str | None = None) -> t.ListEvent:
        """One page: Read the feed of all streams but histories. A cursor can also be an event's position."""
        return self._send("GET", ["events"], query={"limit": limit, "cursor": cursor}, repeat="read")

    def read_activity(self, *, limit: int | None = None, cursor: str | None = None) -> Iterator[t.Event]:
        """Read all activity of the workspace, which is its feed and its histories. Despite the path, this is not the feed, which is at events. A page lists events of histories, except those of API keys, before events of the feed, each oldest first."""
        return self._pages(lambda at: self.read_activity_page(limit=limit, cursor=at), cursor)

    def read_activity_page(self, *, limit: int | None = None, cursor: str | None = None) -> t.ListEvent:
        """One page: Read all activity of the workspace, which is its feed and its histories. Despite the path, this is not the feed, which is at events. A page lists events of histories, except those of API keys, before events of the feed, each oldest first."""
        return self._send("GET", ["feed"], query={"limit": limit, "cursor": cursor}, repeat="read")

    def list_reactions(self, *, limit: int | None = None, cursor: str | None = None) -> Iterator[t.Reaction]:
        """List the workspace's reactions and its lifecycles' after-effects."""
        return self._pages(lambda at: self.list_reactions_page(limit=limit, cursor=at), cursor)

    def list_reactions_page(self, *, limit: int | None = None, cursor: str | None = None) -> t.ListReaction:
        """One page: List the workspace's reactions and its lifecycles' after-effects."""
        return self._send("GET", ["reactions"], query={"limit": limit, "cursor": cursor}, repeat="read")

    def put_reaction(self, name: str, body: t.PutReaction, *, idempotency_key: str | None = None) -> t.Reaction:
        """Register a reaction, or change its definition."""
        return self._send("PUT", ["reactions", name], body=body, key=idempotency_key, repeat="key")

    def get_reaction(self, name: str) -> t.Reaction:
        """Show a reaction."""
        return self._send("GET", ["reactions", name], repeat="read")

    def delete_reaction(self, name: str, *, idempotency_key: str | None = None) -> None:
        """Delete a reaction."""
        return self._send("DELETE", ["reactions", name], key=idempotency_key, repeat="key")

    def list_positions(self, reaction: str, *, stream: str | None = None, blocked: bool | None = None, limit: int | None = None, cursor: str | None = None) -> Iterator[t.Position]:
        """List a reaction's positions in its streams (* for all reactions)."""
        return self._pages(lambda at: self.list_positions_page(reaction, stream=stream, blocked=blocked, limit=limit, cursor=at), cursor)

    def list_positions_page(self, reaction: str, *, stream: str | None = None, blocked: bool | None = None, limit: int | None = None, cursor: str | None = None) -> t.ListPosition:
        """One page: List a reaction's positions in its streams (* for all reactions)."""
        return self._send("GET", ["reactions", reaction, "streams"], query={"stream": stream, "blocked": blocked, "limit": limit, "cursor": cursor}, repeat="read")

    def claim_leases(self, reaction: str, body: t.ClaimLeases, *, idempotency_key: str | None = None) -> t.Leases:
        """Claim a reaction's streams manually."""
        return self._send("POST", ["reactions", reaction, "claim"], body=body, key=idempotency_key, repeat="key")

    def ack_leases(self, reaction: str, body: t.Acks, *, idempotency_key: str | None = None) -> t.Acked:
        """Acknowledge handled events. Each lease is identified by its token. A lost lease or a version that was not delivered is reported in the results, not as an error."""
        return self._send("POST", ["reactions", reaction, "ack"], body=body, key=idempotency_key, repeat="key")

    def fail_lease(self, reaction: str, body: t.FailLease, *, idempotency_key: str | None = None) -> t.FailedLease:
        """Report that an event could not be handled. The lease is identified by its token."""
        return self._send("POST", ["reactions", reaction, "fail"], body=body, key=idempotency_key, repeat="key")

    def snooze_lease(self, reaction: str, body: t.SnoozeLease, *, idempotency_key: str | None = None) -> t.SnoozedLease:
        """Give a stream back until a later time. This does not count as a failure. The lease is identified by its token."""
        return self._send("POST", ["reactions", reaction, "snooze"], body=body, key=idempotency_key, repeat="key")

    def renew_lease(self, reaction: str, body: t.RenewLease, *, idempotency_key: str | None = None) -> t.Renewed:
        """Renew a lease. The lease is identified by its token."""
        return self._send("POST", ["reactions", reaction, "renew"], body=body, key=idempotency_key, repeat="key")

    def unblock_reactions(self, reaction: str, body: t.Repair, *, idempotency_key: str | None = None) -> t.Repaired:
        """Unblock a reaction on its streams (* for all reactions). Each stream continues with the event that blocked it."""
        return self._send("POST", ["reactions", reaction, "unblock"], body=body, key=idempotency_key, repeat="key")

    def reset_reactions(self, reaction: str, body: t.Repair, *, idempotency_key: str | None = None) -> t.Repaired:
        """Reset a reaction's positions (* for all reactions). The reaction handles all of their events again. With *, the positions of after-effects and webhooks are not reset."""
        return self._send("POST", ["reactions", reaction, "reset"], body=body, key=idempotency_key, repeat="key")

    def skip_reactions(self, reaction: str, body: t.Repair, *, idempotency_key: str | None = None) -> t.Repaired:
        """Skip the events that block a reaction's streams (* for all reactions). Each stream continues with its next event."""
        return self._send("POST", ["reactions", reaction, "skip"], body=body, key=idempotency_key, repeat="key")

    def list_lifecycles(self, *, limit: int | None = None, cursor: str | None = None) -> Iterator[t.Lifecycle]:
        """List the workspace's lifecycles."""
        return self._pages(lambda at: self.list_lifecycles_page(limit=limit, cursor=at), cursor)

    def list_lifecycles_page(self, *, limit: int | None = None, cursor: str | None = None) -> t.ListLifecycle:
        """One page: List the workspace's lifecycles."""
        return self._send("GET", ["lifecycles"], query={"limit": limit, "cursor": cursor}, repeat="read")

    def get_lifecycle(self, name: str) -> t.LifecycleDetails:
        """Show a lifecycle's config, origin, janitor and lint warnings."""
        return self._send("GET", ["lifecycles", name], repeat="read")

    def get_lifecycle_diagram(self, lifecycle: str, *, format: str | None = None) -> t.Diagram:
        """Show a lifecycle's diagram. The format is svg (default, ""), mermaid, or layout for coordinates."""
        return self._send("GET", ["lifecycles", lifecycle, "diagram"], query={"format": format}, repeat="read")

    def create_entity(self, lifecycle: str, body: t.NewEntity, *, idempotency_key: str | None = None) -> t.Entity:
        """Create an entity. Without an id and without a idempotency key, each call creates a new entity."""
        return self._send("POST", ["lifecycles", lifecycle, "entities"], body=body, key=idempotency_key, repeat="key")

    def list_entities(self, lifecycle: str, *, status: str | None = None, since: str | datetime | None = None, until: str | datetime | None = None, updated_since: str | datetime | None = None, updated_until: str | datetime | None = None, limit: int | None = None, cursor: str | None = None) -> Iterator[t.Entity]:
        """List a lifecycle's entities, ordered by id. With a filter, a page may have few items, or none, and still a next one."""
        return self._pages(lambda at: self.list_entities_page(lifecycle, status=status, since=since, until=until, updated_since=updated_since, updated_until=updated_until, limit=limit, cursor=at), cursor)

    def list_entities_page(self, lifecycle: str, *, status: str | None = None, since: str | datetime | None = None, until: str | datetime | None = None, updated_since: str | datetime | None = None, updated_until: str | datetime | None = None, limit: int | None = None, cursor: str | None = None) -> t.ListEntity:
        """One page: List a lifecycle's entities, ordered by id. With a filter, a page may have few items, or none, and still a next one."""
        return self._send("GET", ["lifecycles", lifecycle, "entities"], query={"status": status, "since": since, "until": until, "updatedSince": updated_since, "updatedUntil": updated_until, "limit": limit, "cursor": cursor}, repeat="read")

    def get_entity(self, lifecycle: str, id: str, *, at: int | None = None) -> t.Entity:
        """Show an entity."""
        return self._send("GET", ["lifecycles", lifecycle, "entities", id], query={"at": at}, repeat="read")

    def read_entity_history(self, lifecycle: str, id: str, *, limit: int | None = None, cursor: str | None = None) -> Iterator[t.Event]:
        """Read an entity's history. Events are in order, oldest first."""
        return self._pages(lambda at: self.read_entity_history_page(lifecycle, id, limit=limit, cursor=at), cursor)

    def read_entity_history_page(self, lifecycle: str, id: str, *, limit: int | None = None, cursor: str | None = None) -> t.ListEvent:
        """One page: Read an entity's history. Events are in order, oldest first."""
        return self._send("GET", ["lifecycles", lifecycle, "entities", id, "history"], query={"limit": limit, "cursor": cursor}, repeat="read")

    def list_refusals(self, lifecycle: str, id: str, *, limit: int | None = None, cursor: str | None = None) -> Iterator[t.Attempt]:
        """List the refused writes to an entity, newest first."""
        return self._pages(lambda at: self.list_refusals_page(lifecycle, id, limit=limit, cursor=at), cursor)

    def list_refusals_page(self, lifecycle: str, id: str, *, limit: int | None = None, cursor: str | None = None) -> t.ListAttempt:
        """One page: List the refused writes to an entity, newest first."""
        return self._send("GET", ["lifecycles", lifecycle, "entities", id, "attempts"], query={"limit": limit, "cursor": cursor}, repeat="read")

    def read_entity_timeline(self, lifecycle: str, id: str, *, limit: int | None = None, cursor: str | None = None) -> Iterator[t.TimelineEntry]:
        """Read an entity's events, refusals, effects and answers, newest first. Their order is that of the database: a refusal comes after the event whose version it found."""
        return self._pages(lambda at: self.read_entity_timeline_page(lifecycle, id, limit=limit, cursor=at), cursor)

    def read_entity_timeline_page(self, lifecycle: str, id: str, *, limit: int | None = None, cursor: str | None = None) -> t.ListTimelineEntry:
        """One page: Read an entity's events, refusals, effects and answers, newest first. Their order is that of the database: a refusal comes after the event whose version it found."""
        return self._send("GET", ["lifecycles", lifecycle, "entities", id, "timeline"], query={"limit": limit, "cursor": cursor}, repeat="read")

    def fire_step(self, lifecycle: str, id: str, step: str, body: t.Fire, *, wait_ms: int | None = None, idempotency_key: str | None = None) -> t.Fired:
        """Fire a step of an entity. The outcome may be pending or uncertain: the step then continues in the background, and the same call with the same idempotency key later returns its outcome."""
        return self._send("POST", ["lifecycles", lifecycle, "entities", id, "steps", step], body=body, query={"waitMs": wait_ms}, key=idempotency_key, repeat="key")

    def claim_step(self, lifecycle: str, id: str, body: t.NewClaim, *, idempotency_key: str | None = None) -> t.Claimed:
        """Claim a step manually. The caller runs the step's body itself."""
        return self._send("POST", ["lifecycles", lifecycle, "entities", id, "claims"], body=body, key=idempotency_key, repeat="key")

    def list_claims(self, *, state: str | None = None, limit: int | None = None, cursor: str | None = None) -> Iterator[t.HeldClaim]:
        """List the workspace's claims."""
        return self._pages(lambda at: self.list_claims_page(state=state, limit=limit, cursor=at), cursor)

    def list_claims_page(self, *, state: str | None = None, limit: int | None = None, cursor: str | None = None) -> t.ListHeldClaim:
        """One page: List the workspace's claims."""
        return self._send("GET", ["claims"], query={"state": state, "limit": limit, "cursor": cursor}, repeat="read")

    def renew_claim(self, token: str, body: t.Renew | None = None, *, idempotency_key: str | None = None) -> t.Renewed:
        """Renew a claim."""
        return self._send("POST", ["claims", token, "renew"], body=body, optional=True, key=idempotency_key, repeat="key")

    def settle_claim(self, token: str, body: t.Settle, *, idempotency_key: str | None = None) -> t.Settled:
        """Settle a claim with an outcome. Settling the claim again with the same outcome returns the same result."""
        return self._send("POST", ["claims", token, "settle"], body=body, key=idempotency_key, repeat="key")

    def release_claim(self, token: str, body: t.Release | None = None, *, idempotency_key: str | None = None) -> t.Settled:
        """Release a claim. The claim ends with the outcome failure."""
        return self._send("POST", ["claims", token, "release"], body=body, optional=True, key=idempotency_key, repeat="key")

    def journal_effect(self, token: str, body: t.EffectCall, *, idempotency_key: str | None = None) -> t.JournaledEffect:
        """Journal an effect under a claim. Without a result or notDone, the call records the intent; otherwise it records the outcome."""
        return self._send("POST", ["claims", token, "effects"], body=body, key=idempotency_key, repeat="key")

    def list_operations(self, *, state: str | None = None, handler: str | None = None, limit: int | None = None, cursor: str | None = None) -> Iterator[t.Operation]:
        """List operations that have not ended, and operations with contradictions: effect calls by holders that had lost their lease."""
        return self._pages(lambda at: self.list_operations_page(state=state, handler=handler, limit=limit, cursor=at), cursor)

    def list_operations_page(self, *, state: str | None = None, handler: str | None = None, limit: int | None = None, cursor: str | None = None) -> t.ListOperation:
        """One page: List operations that have not ended, and operations with contradictions: effect calls by holders that had lost their lease."""
        return self._send("GET", ["operations"], query={"state": state, "handler": handler, "limit": limit, "cursor": cursor}, repeat="read")

    def resolve_operation(self, id: str, body: t.Resolve, *, idempotency_key: str | None = None) -> t.Resolved:
        """Resolve an uncertain operation."""
        return self._send("POST", ["operations", id, "resolve"], body=body, key=idempotency_key, repeat="key")

    def get_operation(self, id: str) -> t.Operation:
        """Show an operation, even if it has ended. An ended operation of an entity is found by its effects and in the history of the entity. If it has no effects and its history is no longer retained, the response is NOT_FOUND."""
        return self._send("GET", ["operations", id], repeat="read")

    def release_operation(self, id: str, body: t.ReleaseOperation | None = None, *, idempotency_key: str | None = None) -> t.Resolved:
        """Release a leased operation: its holder can write nothing more. Releasing an operation of a lifecycle ends it, even if it is due and has no holder. A released step of a run becomes due again. If an effect may have happened, the response is EFFECT_UNRESOLVED."""
        return self._send("POST", ["operations", id, "release"], body=body, optional=True, key=idempotency_key, repeat="key")

    def withdraw_operation(self, id: str, body: t.Withdraw | None = None, *, idempotency_key: str | None = None) -> t.Resolved:
        """Withdraw an operation that is due and not leased. If one of its effects may have happened, the operation becomes uncertain and must be resolved."""
        return self._send("POST", ["operations", id, "withdraw"], body=body, optional=True, key=idempotency_key, repeat="key")

    def acknowledge_contradictions(self, id: str, body: t.Acknowledge, *, idempotency_key: str | None = None) -> t.Acknowledged:
        """Acknowledge an operation's contradictions. The response lists the contradictions that remain."""
        return self._send("POST", ["operations", id, "acknowledge"], body=body, key=idempotency_key, repeat="key")

    def create_key(self, body: t.NewKey, *, idempotency_key: str | None = None) -> t.CreatedKey:
        """Create an API key. Its secret is returned only once. If the idempotency key was used before, the secret is empty."""
        return self._send("POST", ["keys"], body=body, key=idempotency_key, repeat="key")

    def list_keys(self, *, limit: int | None = None, cursor: str | None = None) -> Iterator[t.Key]:
        """List the workspace's API keys."""
        return self._pages(lambda at: self.list_keys_page(limit=limit, cursor=at), cursor)

    def list_keys_page(self, *, limit: int | None = None, cursor: str | None = None) -> t.ListKey:
        """One page: List the workspace's API keys."""
        return self._send("GET", ["keys"], query={"limit": limit, "cursor": cursor}, repeat="read")

    def get_key(self, id: str) -> t.Key:
        """Show an API key without its secret."""
        return self._send("GET", ["keys", id], repeat="read")

    def rotate_key(self, id: str, body: t.RotateKey | None = None, *, idempotency_key: str | None = None) -> t.CreatedKey:
        """Replace an API key with a new key that has the same permissions. The secret of the new key is returned only once."""
        return self._send("POST", ["keys", id, "rotate"], body=body, optional=True, key=idempotency_key, repeat="key")

    def revoke_key(self, id: str, *, idempotency_key: str | None = None) -> t.Key:
        """Revoke an API key. All nodes begin to refuse it within 5 seconds."""
        return self._send("DELETE", ["keys", id], key=idempotency_key, repeat="key")

    def create_session(self) -> t.Session:
        """Start a browser session with the caller's API key. Its cookie is set. The key must be in a header. The session ends after 12 hours, or with the key. A key has at most 100 sessions: one more ends the oldest."""
        return self._send("POST", ["session"], repeat="never")

    def get_session(self) -> t.Session:
        """Show the caller: its workspace, its role and its API key."""
        return self._send("GET", ["session"], repeat="read")

    def delete_session(self) -> None:
        """End the session of the cookie. The cookie is cleared. A session that has ended already is not an error."""
        return self._send("DELETE", ["session"], repeat="never")

    def create_webhook(self, body: t.NewWebhook, *, idempotency_key: str | None = None) -> t.CreatedWebhook:
        """Create a webhook. Its secret is returned only once. If the idempotency key was used before, the secret is empty."""
        return self._send("POST", ["webhooks"], body=body, key=idempotency_key, repeat="key")

    def list_webhooks(self, *, limit: int | None = None, cursor: str | None = None) -> Iterator[t.Webhook]:
        """List the workspace's webhooks."""
        return self._pages(lambda at: self.list_webhooks_page(limit=limit, cursor=at), cursor)

    def list_webhooks_page(self, *, limit: int | None = None, cursor: str | None = None) -> t.ListWebhook:
        """One page: List the workspace's webhooks."""
        return self._send("GET", ["webhooks"], query={"limit": limit, "cursor": cursor}, repeat="read")

    def get_webhook(self, id: str) -> t.Webhook:
        """Show a webhook without its secret."""
        return self._send("GET", ["webhooks", id], repeat="read")

    def rotate_webhook(self, id: str, body: t.RotateWebhook | None = None, *, idempotency_key: str | None = None) -> t.CreatedWebhook:
        """Rotate a webhook's secret. The new secret is returned only once."""
        return self._send("POST", ["webhooks", id, "rotate"], body=body, optional=True, key=idempotency_key, repeat="key")

    def delete_webhook(self, id: str, *, idempotency_key: str | None = None) -> None:
        """Delete a webhook."""
        return self._send("DELETE", ["webhooks", id], key=idempotency_key, repeat="key")

    def list_handlers(self, *, limit: int | None = None, cursor: str | None = None) -> Iterator[t.Handler]:
        """List the workspace's handlers."""
        return self._pages(lambda at: self.list_handlers_page(limit=limit, cursor=at), cursor)

    def list_handlers_page(self, *, limit: int | None = None, cursor: str | None = None) -> t.ListHandler:
        """One page: List the workspace's handlers."""
        return self._send("GET", ["handlers"], query={"limit": limit, "cursor": cursor}, repeat="read")

    def put_handler(self, name: str, body: t.PutHandler, *, idempotency_key: str | None = None) -> t.Handler:
        """Declare a handler. The secret of a new http handler is returned only once."""
        return self._send("PUT", ["handlers", name], body=body, key=idempotency_key, repeat="key")

    def get_handler(self, name: str) -> t.Handler:
        """Show a handler. The response does not include the secret."""
        return self._send("GET", ["handlers", name], repeat="read")

    def delete_handler(self, name: str, *, idempotency_key: str | None = None) -> None:
        """Delete a handler."""
        return self._send("DELETE", ["handlers", name], key=idempotency_key, repeat="key")

    def put_lifecycle(self, name: str, body: Dict[str, Any] | str, *, dry_run: bool | None = None, idempotency_key: str | None = None) -> t.PutLifecycle:
        """Publish a lifecycle config. A dry run only validates it. The config is a JSON document."""
        return self._send("PUT", ["lifecycles", name], body=body, yaml=True, query={"dryRun": dry_run}, key=idempotency_key, repeat="key")

    def put_secret(self, name: str, body: t.PutSecret, *, idempotency_key: str | None = None) -> t.Secret:
        """Store the value of a named secret. Handlers, webhooks and http steps refer to it by its name. No request returns the value."""
        return self._send("PUT", ["secrets", name], body=body, key=idempotency_key, repeat="key")

    def list_secrets(self, *, limit: int | None = None, cursor: str | None = None) -> Iterator[t.Secret]:
        """List the workspace's secrets, without their values."""
        return self._pages(lambda at: self.list_secrets_page(limit=limit, cursor=at), cursor)

    def list_secrets_page(self, *, limit: int | None = None, cursor: str | None = None) -> t.ListSecret:
        """One page: List the workspace's secrets, without their values."""
        return self._send("GET", ["secrets"], query={"limit": limit, "cursor": cursor}, repeat="read")

    def get_secret(self, name: str) -> t.Secret:
        """Show a secret without its value."""
        return self._send("GET", ["secrets", name], repeat="read")

    def delete_secret(self, name: str, *, idempotency_key: str | None = None) -> None:
        """Delete a secret that nothing refers to."""
        return self._send("DELETE", ["secrets", name], key=idempotency_key, repeat="key")

    def claim_tasks(self, body: t.ClaimTasks, *, idempotency_key: str | None = None) -> t.Tasks:
        """Claim tasks for handlers. If no task is due, the call waits for one. A task counts as received once it is renewed, journals an effect or is ended."""
        return self._send("POST", ["tasks", "claim"], body=body, key=idempotency_key, repeat="key")

    def complete_task(self, id: str, body: t.CompleteTask) -> t.EndedTask:
        """Complete a task. Completing the task again under the same epoch returns the same result."""
        return self._send("POST", ["tasks", id, "complete"], body=body, repeat="task")

    def fail_task(self, id: str, body: t.FailTask) -> t.EndedTask:
        """Report that a task failed."""
        return self._send("POST", ["tasks", id, "fail"], body=body, repeat="task")

    def snooze_task(self, id: str, body: t.SnoozeTask) -> t.EndedTask:
        """Give a task back until a later time. It counts neither as an attempt nor as a failure. A step of a lifecycle cannot be snoozed. Snoozing a task again under the same epoch returns the same result."""
        return self._send("POST", ["tasks", id, "snooze"], body=body, repeat="task")

    def renew_task(self, id: str, body: t.Renew) -> t.Renewed:
        """Renew a task's lease."""
        return self._send("POST", ["tasks", id, "renew"], body=body, repeat="task")

    def journal_task_effect(self, id: str, body: t.EffectCall) -> t.JournaledEffect:
        """Journal an effect of a task. Without a result or notDone, the call records the intent; otherwise it records the outcome."""
        return self._send("POST", ["tasks", id, "effects"], body=body, repeat="task")

    def list_workspaces(self, *, limit: int | None = None, cursor: str | None = None) -> Iterator[t.Workspace]:
        """List the API key's workspace or, on a server without API keys, all workspaces."""
        return self._pages(lambda at: self.list_workspaces_page(limit=limit, cursor=at), cursor)

    def list_workspaces_page(self, *, limit: int | None = None, cursor: str | None = None) -> t.ListWorkspace:
        """One page: List the API key's workspace or, on a server without API keys, all workspaces."""
        return self._send("GET", ["workspaces"], query={"limit": limit, "cursor": cursor}, repeat="read")

    def create_workspace(self, body: t.NewWorkspace, *, idempotency_key: str | None = None) -> t.Workspace:
        """Create a workspace on a server without API keys. On any other server, a workspace is created together with its first API key."""
        return self._send("POST", ["workspaces"], body=body, key=idempotency_key, repeat="key")

    def list_wallets(self, *, limit: int | None = None, cursor: str | None = None) -> Iterator[t.Wallet]:
        """List the workspace's wallets."""
        return self._pages(lambda at: self.list_wallets_page(limit=limit, cursor=at), cursor)

    def list_wallets_page(self, *, limit: int | None = None, cursor: str | None = None) -> t.ListWallet:
        """One page: List the workspace's wallets."""
        return self._send("GET", ["wallets"], query={"limit": limit, "cursor": cursor}, repeat="read")

    def put_wallet(self, id: str, body: t.PutWallet, *, idempotency_key: str | None = None) -> t.Wallet:
        """Create a wallet, or change it. Only allowNegative can be changed."""
        return self._send("PUT", ["wallets", id], body=body, key=idempotency_key, repeat="key")

    def get_wallet(self, id: str) -> t.Wallet:
        """Show a wallet."""
        return self._send("GET", ["wallets", id], repeat="read")

    def credit_wallet(self, id: str, body: t.Credit, *, idempotency_key: str | None = None) -> t.Wallet:
        """Credit points to a wallet. Crediting again with the same reference adds nothing."""
        return self._send("POST", ["wallets", id, "credit"], body=body, key=idempotency_key, repeat="key")

    def read_ledger(self, id: str, *, backward: bool | None = None, limit: int | None = None, cursor: str | None = None) -> Iterator[t.LedgerEntry]:
        """Read a wallet's ledger, forward or backward."""
        return self._pages(lambda at: self.read_ledger_page(id, backward=backward, limit=limit, cursor=at), cursor)

    def read_ledger_page(self, id: str, *, backward: bool | None = None, limit: int | None = None, cursor: str | None = None) -> t.ListLedgerEntry:
        """One page: Read a wallet's ledger, forward or backward."""
        return self._send("GET", ["wallets", id, "ledger"], query={"backward": backward, "limit": limit, "cursor": cursor}, repeat="read")

    def audit_wallet(self, id: str) -> t.Audit:
        """Audit a wallet's ledger (* for all wallets)."""
        return self._send("GET", ["wallets", id, "audit"], repeat="read")

    def list_scope_kinds(self, *, limit: int | None = None, cursor: str | None = None) -> Iterator[t.ScopeKind]:
        """List the kinds of scopes."""
        return self._pages(lambda at: self.list_scope_kinds_page(limit=limit, cursor=at), cursor)

    def list_scope_kinds_page(self, *, limit: int | None = None, cursor: str | None = None) -> t.ListScopeKind:
        """One page: List the kinds of scopes."""
        return self._send("GET", ["scopes"], query={"limit": limit, "cursor": cursor}, repeat="read")

    def list_scopes(self, kind: str, *, prefix: str | None = None, limit: int | None = None, cursor: str | None = None) -> Iterator[t.ScopeInfo]:
        """List the scopes of a kind, without their states. A page can be short or empty and still have a next page."""
        return self._pages(lambda at: self.list_scopes_page(kind, prefix=prefix, limit=limit, cursor=at), cursor)

    def list_scopes_page(self, kind: str, *, prefix: str | None = None, limit: int | None = None, cursor: str | None = None) -> t.ListScopeInfo:
        """One page: List the scopes of a kind, without their states. A page can be short or empty and still have a next page."""
        return self._send("GET", ["scopes", kind], query={"prefix": prefix, "limit": limit, "cursor": cursor}, repeat="read")

    def put_scope(self, kind: str, id: str, body: Any, *, idempotency_key: str | None = None, if_match: int | str | None = None, if_none_match: int | str | None = None) -> t.ChangedScope:
        """Replace a scope's state, or create the scope. With If-Match, it replaces exactly the version that you have read."""
        return self._send("PUT", ["scopes", kind, id], body=body, key=idempotency_key, if_match=if_match, if_none_match=if_none_match, repeat="key")

    def get_scope(self, kind: str, id: str, *, at: int | None = None, if_match: int | str | None = None, if_none_match: int | str | None = None) -> t.Scope:
        """Show a scope. The response for a scope that does not exist is NOT_FOUND; a watcher gets version -1."""
        return self._send("GET", ["scopes", kind, id], query={"at": at}, if_match=if_match, if_none_match=if_none_match, repeat="read")

    def patch_scope(self, kind: str, id: str, body: Dict[str, Any], *, idempotency_key: str | None = None, if_match: int | str | None = None, if_none_match: int | str | None = None) -> t.ChangedScope:
        """Merge a document into a scope's state (RFC 7396), or create the scope."""
        return self._send("PATCH", ["scopes", kind, id], body=body, key=idempotency_key, if_match=if_match, if_none_match=if_none_match, repeat="key")

    def delete_scope(self, kind: str, id: str, *, idempotency_key: str | None = None, if_match: int | str | None = None, if_none_match: int | str | None = None) -> t.ChangedScope:
        """Delete a scope. Deleting a scope that does not exist changes nothing."""
        return self._send("DELETE", ["scopes", kind, id], key=idempotency_key, if_match=if_match, if_none_match=if_none_match, repeat="key")

    def inc_scope(self, kind: str, id: str, body: t.IncScope, *, idempotency_key: str | None = None, if_match: int | str | None = None, if_none_match: int | str | None = None) -> t.ChangedScope:
        """Add to the integer in a field. A missing field counts as 0."""
        return self._send("POST", ["scopes", kind, id, "inc"], body=body, key=idempotency_key, if_match=if_match, if_none_match=if_none_match, repeat="key")

    def push_scope(self, kind: str, id: str, body: t.PushScope, *, idempotency_key: str | None = None, if_match: int | str | None = None, if_none_match: int | str | None = None) -> t.ChangedScope:
        """Append an item to the list in a field. A missing field counts as an empty list."""
        return self._send("POST", ["scopes", kind, id, "push"], body=body, key=idempotency_key, if_match=if_match, if_none_match=if_none_match, repeat="key")

    def set_scope_record(self, kind: str, id: str, field: str, key: str, body: Any, *, idempotency_key: str | None = None, if_match: int | str | None = None, if_none_match: int | str | None = None) -> t.ChangedScope:
        """Set a record in the object in a field, under a key. The record may be null."""
        return self._send("PUT", ["scopes", kind, id, "records", field, key], body=body, key=idempotency_key, if_match=if_match, if_none_match=if_none_match, repeat="key")

    def delete_scope_record(self, kind: str, id: str, field: str, key: str, *, idempotency_key: str | None = None, if_match: int | str | None = None, if_none_match: int | str | None = None) -> t.ChangedScope:
        """Delete a record from the object in a field. Deleting a record that does not exist changes nothing."""
        return self._send("DELETE", ["scopes", kind, id, "records", field, key], key=idempotency_key, if_match=if_match, if_none_match=if_none_match, repeat="key")

    def list_batches(self, *, limit: int | None = None, cursor: str | None = None, status: str | None = None, handler: str | None = None, wallet: str | None = None, backward: bool | None = None, since: str | datetime | None = None, until: str | datetime | None = None, updated_since: str | datetime | None = None, updated_until: str | datetime | None = None) -> Iterator[t.Batch]:
        """List the workspace's batches, in the order of their ids. With a filter, a page may have few items, or none, and still a next one."""
        return self._pages(lambda at: self.list_batches_page(limit=limit, status=status, handler=handler, wallet=wallet, backward=backward, since=since, until=until, updated_since=updated_since, updated_until=updated_until, cursor=at), cursor)

    def list_batches_page(self, *, limit: int | None = None, cursor: str | None = None, status: str | None = None, handler: str | None = None, wallet: str | None = None, backward: bool | None = None, since: str | datetime | None = None, until: str | datetime | None = None, updated_since: str | datetime | None = None, updated_until: str | datetime | None = None) -> t.ListBatch:
        """One page: List the workspace's batches, in the order of their ids. With a filter, a page may have few items, or none, and still a next one."""
        return self._send("GET", ["batches"], query={"limit": limit, "cursor": cursor, "status": status, "handler": handler, "wallet": wallet, "backward": backward, "since": since, "until": until, "updatedSince": updated_since, "updatedUntil": updated_until}, repeat="read")

    def create_batch(self, body: t.NewBatch, *, idempotency_key: str | None = None) -> t.Batch:
        """Create a batch of items paid from a wallet."""
        return self._send("POST", ["batches"], body=body, key=idempotency_key, repeat="key")

    def get_batch(self, id: str) -> t.Batch:
        """Show a batch."""
        return self._send("GET", ["batches", id], repeat="read")

    def list_items(self, id: str, *, limit: int | None = None, cursor: str | None = None, state: str | None = None) -> Iterator[t.BatchItem]:
        """List a batch's items."""
        return self._pages(lambda at: self.list_items_page(id, limit=limit, state=state, cursor=at), cursor)

    def list_items_page(self, id: str, *, limit: int | None = None, cursor: str | None = None, state: str | None = None) -> t.ListBatchItem:
        """One page: List a batch's items."""
        return self._send("GET", ["batches", id, "items"], query={"limit": limit, "cursor": cursor, "state": state}, repeat="read")

    def add_items(self, id: str, body: t.AddItems, *, idempotency_key: str | None = None) -> t.AddedItems:
        """Add items to an open batch. Items that were added before are not added again."""
        return self._send("POST", ["batches", id, "items"], body=body, key=idempotency_key, repeat="key")

    def seal_batch(self, id: str, *, idempotency_key: str | None = None) -> t.Batch:
        """Seal a batch: no more items can be added."""
        return self._send("POST", ["batches", id, "seal"], key=idempotency_key, repeat="key")

    def cancel_batch(self, id: str, *, idempotency_key: str | None = None) -> t.CancelledBatch:
        """Cancel a batch. Charges for items that were not accepted are refunded. The result is CANCELLED, or ACCEPTED while items in flight are torn down."""
        return self._send("POST", ["batches", id, "cancel"], key=idempotency_key, repeat="key")

    def accept_items(self, id: str, body: t.AcceptItems | None = None, *, idempotency_key: str | None = None) -> t.Accepted:
        """Accept items of a batch that have succeeded. Without a list of items, the call accepts all succeeded items."""
        return self._send("POST", ["batches", id, "finalize"], body=body, optional=True, key=idempotency_key, repeat="key")

    def read_batch_history(self, id: str, *, limit: int | None = None, cursor: str | None = None) -> Iterator[t.Event]:
        """Read a batch's events."""
        return self._pages(lambda at: self.read_batch_history_page(id, limit=limit, cursor=at), cursor)

    def read_batch_history_page(self, id: str, *, limit: int | None = None, cursor: str | None = None) -> t.ListEvent:
        """One page: Read a batch's events."""
        return self._send("GET", ["batches", id, "events"], query={"limit": limit, "cursor": cursor}, repeat="read")

    def put_definition(self, body: Dict[str, Any] | str, *, dry_run: bool | None = None, idempotency_key: str | None = None) -> t.DefinedWorkflow:
        """Store a workflow definition. A dry run only validates it. The definition is a JSON document. Storing the same definition again changes nothing; a different definition with the same name and version is refused."""
        return self._send("POST", ["workflow-definitions"], body=body, yaml=True, query={"dryRun": dry_run}, key=idempotency_key, repeat="key")

    def list_definitions(self, *, limit: int | None = None, cursor: str | None = None) -> Iterator[t.Definition]:
        """List the workspace's workflow definitions."""
        return self._pages(lambda at: self.list_definitions_page(limit=limit, cursor=at), cursor)

    def list_definitions_page(self, *, limit: int | None = None, cursor: str | None = None) -> t.ListDefinition:
        """One page: List the workspace's workflow definitions."""
        return self._send("GET", ["workflow-definitions"], query={"limit": limit, "cursor": cursor}, repeat="read")

    def get_definition(self, id: str) -> t.Definition:
        """Show a workflow definition. Its id is name@version."""
        return self._send("GET", ["workflow-definitions", id], repeat="read")

    def get_definition_diagram(self, id: str, *, format: str | None = None) -> t.Diagram:
        """Show a workflow definition's diagram. The format is svg (default, ""), mermaid, or layout for coordinates."""
        return self._send("GET", ["workflow-definitions", id, "diagram"], query={"format": format}, repeat="read")

    def start_run(self, body: t.StartRun, *, idempotency_key: str | None = None) -> t.StartedRun:
        """Start a run. If a run was already started with the same key, the response contains that run. This key is the idempotencyKey in the request body, not the header Idempotency-Key."""
        return self._send("POST", ["workflow-runs"], body=body, key=idempotency_key, repeat="key")

    def list_runs(self, *, limit: int | None = None, cursor: str | None = None, status: str | None = None, definition_id: str | None = None, key: str | None = None, step: str | None = None, handler: str | None = None, since: str | datetime | None = None, until: str | datetime | None = None, updated_since: str | datetime | None = None, updated_until: str | datetime | None = None) -> Iterator[t.Run]:
        """List the workspace's runs, newest first. With a filter, a page may have few items, or none, and still a next one."""
        return self._pages(lambda at: self.list_runs_page(limit=limit, status=status, definition_id=definition_id, key=key, step=step, handler=handler, since=since, until=until, updated_since=updated_since, updated_until=updated_until, cursor=at), cursor)

    def list_runs_page(self, *, limit: int | None = None, cursor: str | None = None, status: str | None = None, definition_id: str | None = None, key: str | None = None, step: str | None = None, handler: str | None = None, since: str | datetime | None = None, until: str | datetime | None = None, updated_since: str | datetime | None = None, updated_until: str | datetime | None = None) -> t.ListRun:
        """One page: List the workspace's runs, newest first. With a filter, a page may have few items, or none, and still a next one."""
        return self._send("GET", ["workflow-runs"], query={"limit": limit, "cursor": cursor, "status": status, "definitionId": definition_id, "key": key, "step": step, "handler": handler, "since": since, "until": until, "updatedSince": updated_since, "updatedUntil": updated_until}, repeat="read")

    def get_run(self, id: str) -> t.Run:
        """Show a run."""
        return self._send("GET", ["workflow-runs", id], repeat="read")

    def list_steps(self, id: str, *, limit: int | None = None, cursor: str | None = None) -> Iterator[t.RunStep]:
        """List a run's step visits, in order."""
        return self._pages(lambda at: self.list_steps_page(id, limit=limit, cursor=at), cursor)

    def list_steps_page(self, id: str, *, limit: int | None = None, cursor: str | None = None) -> t.ListRunStep:
        """One page: List a run's step visits, in order."""
        return self._send("GET", ["workflow-runs", id, "steps"], query={"limit": limit, "cursor": cursor}, repeat="read")

    def read_run_history(self, id: str, *, limit: int | None = None, cursor: str | None = None) -> Iterator[t.Event]:
        """Read a run's events."""
        return self._pages(lambda at: self.read_run_history_page(id, limit=limit, cursor=at), cursor)

    def read_run_history_page(self, id: str, *, limit: int | None = None, cursor: str | None = None) -> t.ListEvent:
        """One page: Read a run's events."""
        return self._send("GET", ["workflow-runs", id, "events"], query={"limit": limit, "cursor": cursor}, repeat="read")

    def cancel_run(self, id: str, body: t.Command | None = None, *, idempotency_key: str | None = None) -> t.Run:
        """Cancel a run, immediately or when the step in flight ends. Until the run ends, cancelRequested is set."""
        return self._send("POST", ["workflow-runs", id, "cancel"], body=body, optional=True, key=idempotency_key, repeat="key")

    def pause_run(self, id: str, body: t.Command | None = None, *, idempotency_key: str | None = None) -> t.Run:
        """Pause a run: no further step starts."""
        return self._send("POST", ["workflow-runs", id, "pause"], body=body, optional=True, key=idempotency_key, repeat="key")

    def resume_run(self, id: str, body: t.Command | None = None, *, idempotency_key: str | None = None) -> t.Run:
        """Resume a paused run."""
        return self._send("POST", ["workflow-runs", id, "resume"], body=body, optional=True, key=idempotency_key, repeat="key")

    def retry_run(self, id: str, body: t.Command | None = None, *, idempotency_key: str | None = None) -> t.Run:
        """Retry a failed run at the step that failed."""
        return self._send("POST", ["workflow-runs", id, "retry"], body=body, optional=True, key=idempotency_key, repeat="key")

    def signal_run(self, id: str, body: t.Signal, *, idempotency_key: str | None = None) -> t.Signalled:
        """Send a signal to a run. The signal is stored until the run reads it. Sending a signal again with the same id has no effect."""
        return self._send("POST", ["workflow-runs", id, "signals"], body=body, key=idempotency_key, repeat="key")

    def list_approvals(self, *, limit: int | None = None, cursor: str | None = None, status: str | None = None, run_id: str | None = None) -> Iterator[t.Approval]:
        """List the workspace's approvals. With a filter, a page may have few items, or none, and still a next one."""
        return self._pages(lambda at: self.list_approvals_page(limit=limit, status=status, run_id=run_id, cursor=at), cursor)

    def list_approvals_page(self, *, limit: int | None = None, cursor: str | None = None, status: str | None = None, run_id: str | None = None) -> t.ListApproval:
        """One page: List the workspace's approvals. With a filter, a page may have few items, or none, and still a next one."""
        return self._send("GET", ["approvals"], query={"limit": limit, "cursor": cursor, "status": status, "runId": run_id}, repeat="read")

    def get_approval(self, id: str) -> t.Approval:
        """Show an approval."""
        return self._send("GET", ["approvals", id], repeat="read")

    def decide_approval(self, id: str, body: t.Decide, *, idempotency_key: str | None = None) -> t.Approval:
        """Decide an approval. Only the first decision counts. Later decisions are refused."""
        return self._send("POST", ["approvals", id, "decide"], body=body, key=idempotency_key, repeat="key")

    def read_timeline(self, *, stream: str | None = None, limit: int | None = None, cursor: str | None = None) -> Iterator[t.TimelineEntry]:
        """Read the events, refusals, effects and answers of any stream, newest first. The stream may be a history, such as $run/{id} or $scope/{kind}/{id}."""
        return self._pages(lambda at: self.read_timeline_page(stream=stream, limit=limit, cursor=at), cursor)

    def read_timeline_page(self, *, stream: str | None = None, limit: int | None = None, cursor: str | None = None) -> t.ListTimelineEntry:
        """One page: Read the events, refusals, effects and answers of any stream, newest first. The stream may be a history, such as $run/{id} or $scope/{kind}/{id}."""
        return self._send("GET", ["timeline"], query={"stream": stream, "limit": limit, "cursor": cursor}, repeat="read")

    def list_races(self, *, limit: int | None = None, cursor: str | None = None) -> Iterator[t.Race]:
        """List the workspace's refused writes, newest first, grouped by what they lost to. The limit is a number of refusals. A race with more refusals than fit on a page continues on the next one."""
        return self._pages(lambda at: self.list_races_page(limit=limit, cursor=at), cursor)

    def list_races_page(self, *, limit: int | None = None, cursor: str | None = None) -> t.ListRace:
        """One page: List the workspace's refused writes, newest first, grouped by what they lost to. The limit is a number of refusals. A race with more refusals than fit on a page continues on the next one."""
        return self._send("GET", ["races"], query={"limit": limit, "cursor": cursor}, repeat="read")

    def list_inbox(self, *, kind: str | None = None, limit: int | None = None, cursor: str | None = None) -> Iterator[t.InboxItem]:
        """List what needs a person or is stuck, oldest first. Each entry has a reason and an action that can be called as given. At most 1,000 entries of each kind are listed; inbox/counts says whether there are more."""
        return self._pages(lambda at: self.list_inbox_page(kind=kind, limit=limit, cursor=at), cursor)

    def list_inbox_page(self, *, kind: str | None = None, limit: int | None = None, cursor: str | None = None) -> t.ListInboxItem:
        """One page: List what needs a person or is stuck, oldest first. Each entry has a reason and an action that can be called as given. At most 1,000 entries of each kind are listed; inbox/counts says whether there are more."""
        return self._send("GET", ["inbox"], query={"kind": kind, "limit": limit, "cursor": cursor}, repeat="read")

    def count_inbox(self, *, kind: str | None = None) -> t.InboxCounts:
        """Count the entries of the inbox by kind. Counts are exact up to 1,000."""
        return self._send("GET", ["inbox", "counts"], query={"kind": kind}, repeat="read")

    def run_maintenance(self, *, idempotency_key: str | None = None) -> t.Maintained:
        """Run the background work of the node that receives the request. The node releases expired leases, deletes what retention permits, and continues runs whose timers are due."""
        return self._send("POST", ["maintenance"], key=idempotency_key, repeat="key")

    def list_audit(self, *, actor: str | None = None, action: str | None = None, subject: str | None = None, since: str | datetime | None = None, until: str | datetime | None = None, limit: int | None = None, cursor: str | None = None) -> Iterator[t.AuditEntry]:
        """List the workspace's administrative actions, newest first."""
        return self._pages(lambda at: self.list_audit_page(actor=actor, action=action, subject=subject, since=since, until=until, limit=limit, cursor=at), cursor)

    def list_audit_page(self, *, actor: str | None = None, action: str | None = None, subject: str | None = None, since: str | datetime | None = None, until: str | datetime | None = None, limit: int | None = None, cursor: str | None = None) -> t.ListAuditEntry:
        """One page: List the workspace's administrative actions, newest first."""
        return self._send("GET", ["audit"], query={"actor": actor, "action": action, "subject": subject, "since": since, "until": until, "limit": limit, "cursor": cursor}, repeat="read")

    def list_requests(self, *, operation: str | None = None, limit: int | None = None, cursor: str | None = None) -> Iterator[t.StoredRequest]:
        """List the requests with an idempotency key whose response is the outcome of an operation."""
        return self._pages(lambda at: self.list_requests_page(operation=operation, limit=limit, cursor=at), cursor)

    def list_requests_page(self, *, operation: str | None = None, limit: int | None = None, cursor: str | None = None) -> t.ListStoredRequest:
        """One page: List the requests with an idempotency key whose response is the outcome of an operation."""
        return self._send("GET", ["requests"], query={"operation": operation, "limit": limit, "cursor": cursor}, repeat="read")

    def get_request(self, key: str) -> t.StoredRequests:
        """Show the requests that were made with an idempotency key, and the responses that their callers got. Equal keys on different routes are different requests."""
        return self._send("GET", ["requests", key], repeat="read")

    def get_overview(self) -> t.Overview:
        """Count what the workspace has, by capability and state. Counts of what has not ended are exact, others up to 5,000."""
        return self._send("GET", ["overview"], repeat="read")

    def count_entities(self, lifecycle: str) -> t.Tally:
        """Count the entities of a lifecycle by status. Counts are exact up to 5,000. Rows of your own tables are not counted."""
        return self._send("GET", ["lifecycles", lifecycle, "counts"], repeat="read")

    def list_nodes(self, *, limit: int | None = None, cursor: str | None = None) -> Iterator[t.Node]:
        """List the nodes that run on the database."""
        return self._pages(lambda at: self.list_nodes_page(limit=limit, cursor=at), cursor)

    def list_nodes_page(self, *, limit: int | None = None, cursor: str | None = None) -> t.ListNode:
        """One page: List the nodes that run on the database."""
        return self._send("GET", ["nodes"], query={"limit": limit, "cursor": cursor}, repeat="read")

    def list_rates(self, *, limit: int | None = None, cursor: str | None = None, minutes: int | None = None) -> Iterator[t.Rate]:
        """List the activity of each node per minute, oldest first."""
        return self._pages(lambda at: self.list_rates_page(limit=limit, minutes=minutes, cursor=at), cursor)

    def list_rates_page(self, *, limit: int | None = None, cursor: str | None = None, minutes: int | None = None) -> t.ListRate:
        """One page: List the activity of each node per minute, oldest first."""
        return self._send("GET", ["rates"], query={"limit": limit, "cursor": cursor, "minutes": minutes}, repeat="read")

    def get_live(self, *, watch: str | None = None, since: str | None = None) -> t.Live:
        """Show what has changed in the watched topics. Without a cursor there are no changes, only the states and a cursor. A stream has at most four messages a second."""
        return self._send("GET", ["live"], query={"watch": watch, "since": since}, repeat="read")

    def start_bulk(self, body: t.NewBulk, *, idempotency_key: str | None = None) -> t.StartedBulk:
        """Start a bulk: one action on many runs, positions of reactions or operations, in the background. Each member is acted on at most once, and is checked as by the same action on one object; those that are refused are listed. With dryRun, nothing is written."""
        return self._send("POST", ["bulk"], body=body, key=idempotency_key, repeat="key")

    def list_bulks(self, *, limit: int | None = None, cursor: str | None = None) -> Iterator[t.Bulk]:
        """List the workspace's bulks, newest first."""
        return self._pages(lambda at: self.list_bulks_page(limit=limit, cursor=at), cursor)

    def list_bulks_page(self, *, limit: int | None = None, cursor: str | None = None) -> t.ListBulk:
        """One page: List the workspace's bulks, newest first."""
        return self._send("GET", ["bulk"], query={"limit": limit, "cursor": cursor}, repeat="read")

    def get_bulk(self, id: str) -> t.Bulk:
        """Show a bulk and its progress."""
        return self._send("GET", ["bulk", id], repeat="read")

    def list_bulk_members(self, id: str, *, limit: int | None = None, cursor: str | None = None, status: str | None = None) -> Iterator[t.BulkMember]:
        """List a bulk's members and the result of the action on each."""
        return self._pages(lambda at: self.list_bulk_members_page(id, limit=limit, status=status, cursor=at), cursor)

    def list_bulk_members_page(self, id: str, *, limit: int | None = None, cursor: str | None = None, status: str | None = None) -> t.ListBulkMember:
        """One page: List a bulk's members and the result of the action on each."""
        return self._send("GET", ["bulk", id, "members"], query={"limit": limit, "cursor": cursor, "status": status}, repeat="read")

    def cancel_bulk(self, id: str, *, idempotency_key: str | None = None) -> t.Bulk:
        """Cancel a bulk: no further member is acted on. What was done is not undone."""
        return self._send("POST", ["bulk", id, "cancel"], key=idempotency_key, repeat="key")

    def search(self, *, q: str | None = None, kind: str | None = None) -> t.Matches:
        """Find objects by the beginning of their ids, keys or names. The search is case-sensitive. It returns up to 10 objects of each kind, exact matches first. A kind can be given, or several separated by commas. Requests are found by their whole idempotency key, and by admins only."""
        return self._send("GET", ["search"], query={"q": q, "kind": kind}, repeat="read")

    def list_quotas(self, *, limit: int | None = None, cursor: str | None = None) -> Iterator[t.Quota]:
        """List the quotas of the workspace, and what it uses of them. Each node counts requests and connections of its own: the response has those of the node that responds."""
        return self._pages(lambda at: self.list_quotas_page(limit=limit, cursor=at), cursor)

    def list_quotas_page(self, *, limit: int | None = None, cursor: str | None = None) -> t.ListQuota:
        """One page: List the quotas of the workspace, and what it uses of them. Each node counts requests and connections of its own: the response has those of the node that responds."""
        return self._send("GET", ["quotas"], query={"limit": limit, "cursor": cursor}, repeat="read")
