# Generated from the route table by "go generate ./sdk". Do not edit.

"""The JSON objects of the API, for type checkers. At run time they are dictionaries."""

from __future__ import annotations

from typing import Any, Dict, List, Literal, TypedDict, Union


class AcceptItems(TypedDict, total=False):
    # Keys of the items to accept; omit to accept all succeeded items. An empty list accepts none.
    items: List[str]


class Accepted(TypedDict):
    accepted: int


class Ack(TypedDict):
    epoch: int
    stream: str
    # Lease token, from the claim.
    token: str
    version: int


class _AckResult(TypedDict):
    status: Literal["acked", "LEASE_LOST", "NOT_DELIVERED"]
    stream: str


class AckResult(_AckResult, total=False):
    # Set with NOT_DELIVERED: the last version that can be acknowledged under this lease. The lease remains valid.
    delivered: int


class Acked(TypedDict):
    results: List[AckResult]


class Acknowledge(TypedDict):
    # Ids of the contradictions to acknowledge.
    contradictions: List[str]


class Acknowledged(TypedDict):
    contradictions: List[Contradiction]


class Acks(TypedDict):
    acks: List[Ack]


class AddItems(TypedDict):
    items: List[NewItem]


class AddedItems(TypedDict):
    # Number of new items; identical items that the batch already has are not added again.
    added: int


class _Append(TypedDict):
    events: List[NewEvent]


class Append(_Append, total=False):
    # Expected last version of the stream; -1 if the stream must not exist. Omit it to accept any version.
    expectedVersion: int


class Appended(TypedDict):
    events: List[Event]
    lastVersion: int
    stream: str


class Approval(TypedDict):
    # The actor that decided.
    by: Union[str, None]
    content: Any
    createdAt: Union[str, None]
    decidedAt: Union[str, None]
    expiresAt: Union[str, None]
    id: str
    # Name of the person who decided, as given in the request.
    label: Union[str, None]
    prompt: str
    # An API key may decide if it may act for at least one of these requesters. If empty, any API key that is allowed to decide approvals may decide.
    requesters: List[str]
    runId: str
    status: Literal["pending", "approved", "rejected", "edited", "expired"]
    step: str
    visit: int


class Attempt(TypedDict):
    # The caller: an API key, or the actor that a program names; empty if it names none.
    actor: str
    at: Union[str, None]
    code: str
    detail: Dict[str, Any]
    # The epoch of a holder that had lost its lease; otherwise 0.
    epoch: int
    id: str
    # The node that refused the write.
    node: str
    # The operation that was in progress. For a holder that had lost its lease, its own operation.
    operation: str
    # The id of the HTTP request; empty if there was none.
    requestId: str
    requester: str
    # The number of refusals that this one stands for. It is more than 1 only if a workspace has more than 100 refusals per second on a node.
    standsFor: int
    # The step that was fired or claimed. For a holder that had lost its lease, what it tried: settle, renew, beginEffect, endEffect or enqueue. For a refused create: create.
    stepKey: str
    # The object's version when it refused the write. The refusal comes after that event and before the next.
    version: int


class Audit(TypedDict):
    entries: int
    wallets: int
    wrong: List[Discrepancy]


class _AuditEntry(TypedDict):
    # The kind of object and what was done, for example key.create or reaction.skip.
    action: str
    # The API key, or the actor that a program names; empty if it names none.
    actor: str
    at: Union[str, None]
    id: str
    # The id of the HTTP request; empty if there was none.
    requestId: str
    # The object, for example key/06gt….
    subject: str


class AuditEntry(_AuditEntry, total=False):
    after: Any
    before: Any


class Backoff(TypedDict):
    baseMs: int
    kind: Literal["fixed", "linear", "exponential"]
    maxMs: int


class _Batch(TypedDict):
    cancelRequested: bool
    # Number of points charged to the wallet.
    charged: int
    counts: BatchCounts
    createdAt: Union[str, None]
    handler: str
    id: str
    # Whether items can still be added.
    open: bool
    parallel: int
    # Number of points refunded for failed or cancelled items.
    refunded: int
    status: Literal["PENDING", "RUNNING", "PAUSED", "CANCELLING", "CANCELLED", "COMPLETED"]
    updatedAt: Union[str, None]
    wallet: str


class Batch(_Batch, total=False):
    # Why the batch's teardown or cleanup makes no progress.
    error: str
    # When the deletion of the items began, after their retention. The counts and sums of the batch remain.
    itemsDeletedAt: str


class BatchCounts(TypedDict):
    accepted: int
    cancelled: int
    failed: int
    pending: int
    running: int
    succeeded: int


class BatchItem(TypedDict):
    # Prefix under which the item may have stored artifacts; empty if none.
    artifacts: str
    attempts: int
    cost: int
    decision: Literal["accepted", "cancelled"]
    error: str
    key: str
    # Number of consecutive hand-outs to workers that never responded.
    lostHandOuts: int
    output: Any
    state: Literal["pending", "waiting", "running", "succeeded", "failed", "cancelled"]


class _Bulk(TypedDict):
    action: str
    actor: str
    cancelRequested: bool
    # Number of members on which nothing was done, because the bulk was cancelled.
    cancelled: int
    createdAt: Union[str, None]
    done: int
    id: str
    pending: int
    refused: int
    # The id of the HTTP request that started it.
    requestId: str
    running: int
    status: Literal["PENDING", "RUNNING", "CANCELLING", "CANCELLED", "COMPLETED"]
    # Number of members: the sum of pending, running, done, refused and cancelled.
    total: int
    updatedAt: Union[str, None]


class Bulk(_Bulk, total=False):
    # Omitted if the request listed ids.
    filter: BulkFilter
    happened: bool
    outcome: str
    reason: str


class BulkFilter(TypedDict, total=False):
    # For reaction.skip: false selects positions whose failed event waits for a retry, instead of blocked ones.
    blocked: bool
    # Runs of this definition, or operations of its steps.
    definitionId: str
    # Operations of entities of this lifecycle.
    lifecycle: str
    # Positions of this reaction.
    reaction: str
    # Runs that were created, or operations that began, at this time or later.
    since: str
    # Positions in streams, or in histories.
    source: Literal["event", "history"]
    # Runs with this status.
    status: str
    # Positions in streams whose names match this regular expression (RE2).
    stream: str
    # Runs that were created, or operations that began, before this time.
    until: str


class _BulkMember(TypedDict):
    id: str
    # State of the object when it was selected; empty if it did not exist.
    state: str


class BulkMember(_BulkMember, total=False):
    # Code of the refusal, or of the last failed attempt.
    code: str
    message: str
    # waiting means that the action failed for a temporary reason and is tried again. Omitted in a dry run.
    status: Literal["pending", "waiting", "running", "done", "refused", "cancelled"]


class BulkPreview(TypedDict):
    # The first 100 of them.
    members: List[BulkMember]
    # The first 100 of them.
    refused: List[BulkMember]
    # Number of ids that would currently be refused.
    refusedTotal: int
    # Number of objects that the action would be done to.
    total: int


class CancelledBatch(TypedDict):
    batch: Batch
    result: Literal["CANCELLED", "ACCEPTED"]


class ChangedScope(TypedDict):
    # false if nothing changed and nothing was written.
    changed: bool
    # A JSON object; null if the scope does not exist.
    state: Any
    # -1 if the scope does not exist; the version of the deletion if this call deleted the scope.
    version: int


class Claim(TypedDict):
    epoch: int
    holder: str
    operation: str
    requester: str
    since: Union[str, None]
    stepKey: str
    uncertain: bool
    until: Union[str, None]


class _ClaimLeases(TypedDict):
    by: str


class ClaimLeases(_ClaimLeases, total=False):
    leaseMs: int
    limit: int
    waitMs: int


class _ClaimTasks(TypedDict):
    handlers: List[str]
    # Name of the worker.
    worker: str


class ClaimTasks(_ClaimTasks, total=False):
    # How long a lease lasts without renewal; default 30000.
    leaseMs: int
    # Default 10.
    limit: int
    # How long to wait for a task; default 20000.
    waitMs: int


class Claimed(TypedDict):
    claim: Token
    entity: Entity


class _CloseStream(TypedDict):
    mode: Literal["archive", "tombstone", "restart"]


class CloseStream(_CloseStream, total=False):
    # Expected last version of the stream; omit it to accept any version. Required for restart.
    expectedVersion: int
    # Required for restart: the state computed from all events up to expectedVersion.
    snapshot: Any


class ClosedStream(TypedDict):
    lastVersion: int
    mode: str
    stream: str


class Command(TypedDict, total=False):
    # The command is applied only if the run is at this version.
    expectedVersion: int


class _CompleteTask(TypedDict):
    epoch: int


class CompleteTask(_CompleteTask, total=False):
    output: Any
    # A merge patch (RFC 7396) for the entity data or the run state.
    state: Any


class _Contradiction(TypedDict):
    at: Union[str, None]
    # The epoch of the lease that the holder lost.
    epoch: int
    id: str
    key: str
    name: str
    node: str
    ordinal: int
    state: Literal["done", "unknown"]


class Contradiction(_Contradiction, total=False):
    result: Any

_CreatedKey = TypedDict("_CreatedKey", {"createdAt": "Union[str, None]", "createdBy": "str", "expiresAt": "Union[str, None]", "from": "List[str]", "handlers": "List[str]", "id": "str", "lastUsedAt": "Union[str, None]", "lifecycles": "List[str]", "name": "str", "rate": "int", "requesters": "List[str]", "revokedAt": "Union[str, None]", "role": "str", "routeGroups": "List[str]", "workspace": "str"})


class CreatedKey(_CreatedKey, total=False):
    # The complete key. It is returned only once, and is not included when the request is replayed.
    secret: str


class _CreatedWebhook(TypedDict):
    createdAt: Union[str, None]
    createdBy: str
    events: List[str]
    id: str
    name: str
    # End of the period in which messages are also signed with the previous secret; null if there is none.
    overlapUntil: Union[str, None]
    # Name of the webhook's reaction; reactions/{reaction}/streams lists its positions.
    reaction: str
    rotatedAt: Union[str, None]
    source: str
    streams: str
    url: str


class CreatedWebhook(_CreatedWebhook, total=False):
    # With the references, not the values of secrets.
    headers: Dict[str, str]
    # Returned only once, and not included when the request is replayed.
    secret: str
    # The named secret that signs messages, as secret:NAME.
    signedWith: str


class Credit(TypedDict):
    points: int
    # Idempotency reference. Crediting again with the same reference adds nothing.
    reference: str


class _Decide(TypedDict):
    decision: Literal["approved", "rejected", "edited"]


class Decide(_Decide, total=False):
    # Name of the person who decides, stored as the label. The actor is the API key or, on a server without API keys, this name.
    by: str
    content: Any


class _DefinedWorkflow(TypedDict):
    createdAt: Union[str, None]
    # name@version
    id: str
    name: str
    steps: List[Any]
    version: str
    warnings: List[Violation]


class DefinedWorkflow(_DefinedWorkflow, total=False):
    # Retention of finished runs; defaults to the server's setting.
    retentionMs: int


class _Definition(TypedDict):
    createdAt: Union[str, None]
    # name@version
    id: str
    name: str
    steps: List[Any]
    version: str


class Definition(_Definition, total=False):
    # Retention of finished runs; defaults to the server's setting.
    retentionMs: int


class _Diagram(TypedDict):
    diagram: str
    format: Literal["svg", "mermaid", "layout"]


class Diagram(_Diagram, total=False):
    layout: DiagramLayout

DiagramEdge = TypedDict("DiagramEdge", {"from": "str", "kind": "str", "label": "str", "labelAt": "Union[DiagramPoint, None]", "points": "List[DiagramPoint]", "to": "str"})


class DiagramLayout(TypedDict):
    edges: List[DiagramEdge]
    height: float
    nodes: List[DiagramNode]
    width: float


class DiagramNode(TypedDict):
    final: bool
    height: float
    # The status or the name of the step; end is the end of a run.
    id: str
    initial: bool
    # status or claim; for a step its type, or end.
    kind: str
    # The text in the node, shortened if it is long.
    label: str
    width: float
    x: float
    y: float


class DiagramPoint(TypedDict):
    x: float
    y: float


class Discrepancy(TypedDict):
    id: int
    message: str
    wallet: str


class _Effect(TypedDict):
    key: str
    name: str
    ordinal: int
    state: Literal["begun", "done", "notDone"]


class Effect(_Effect, total=False):
    result: Any


class _EffectCall(TypedDict):
    name: str


class EffectCall(_EffectCall, total=False):
    epoch: int
    notDone: bool
    ordinal: int
    result: Any


class _EndedTask(TypedDict):
    # For an action, the status of the entity. For an event, acked, failed, snoozed, skipped or blocked. For a batch item, its state. For a step of a run, its status, or UNCERTAIN if the step needs manual resolution.
    status: str
    version: int


class EndedTask(_EndedTask, total=False):
    # When a failed or snoozed event is delivered again.
    notBefore: str


class Entity(TypedDict):
    claim: Union[Claim, None]
    createdAt: Union[str, None]
    data: Any
    id: str
    lifecycle: str
    status: str
    updatedAt: Union[str, None]
    version: int


class Event(TypedDict):
    actor: str
    at: Union[str, None]
    causation: str
    correlation: str
    data: Any
    name: str
    # Position in the feed, which can be used as a feed cursor; null until it is assigned.
    position: Union[str, None]
    stream: str
    version: int


class _FailLease(TypedDict):
    epoch: int
    message: str
    stream: str
    # Lease token, from the claim.
    token: str


class FailLease(_FailLease, total=False):
    # false blocks the stream immediately.
    retryable: bool


class _FailTask(TypedDict):
    epoch: int
    message: str


class FailTask(_FailTask, total=False):
    # true if the handler refuses the step as invalid.
    invalid: bool
    # false if a retry cannot succeed.
    retryable: bool


class FailedLease(TypedDict):
    blocked: bool
    notBefore: Union[str, None]
    retry: int


class _Fire(TypedDict):
    # The requester to act for; the API key must be allowed to act for it.
    requester: str


class Fire(_Fire, total=False):
    expectedVersion: int
    input: Any


class _Fired(TypedDict):
    entity: Entity
    outcome: Literal["success", "pending", "uncertain"]


class Fired(_Fired, total=False):
    operation: str
    output: Any


class _Handler(TypedDict):
    createdAt: Union[str, None]
    kind: str
    name: str
    onUnknown: str
    safety: str
    timeoutMs: int
    updatedAt: Union[str, None]
    url: str


class Handler(_Handler, total=False):
    # With the references, not the values of secrets.
    headers: Dict[str, str]
    # Signing secret, returned only by the call that generated it.
    secret: str
    # The named secret that signs calls, as secret:NAME.
    signedWith: str


class HeldClaim(TypedDict):
    entity: str
    epoch: int
    holder: str
    lifecycle: str
    operation: str
    phase: Literal["held", "due", "uncertain"]
    requester: str
    since: Union[str, None]
    status: str
    stepKey: str
    uncertain: bool
    until: Union[str, None]


class _InboxAction(TypedDict):
    label: str


class InboxAction(_InboxAction, total=False):
    body: Any
    method: str
    # Path of the request, beginning with /api/v1/.
    route: str


class InboxCount(TypedDict):
    # True if the inbox has more entries of this kind than count. At most 1,000 entries of a kind are counted and listed.
    capped: bool
    count: int
    kind: str


class InboxCounts(TypedDict):
    counts: List[InboxCount]


class InboxItem(TypedDict):
    action: InboxAction
    # When it ends without an action, or for overdueSignal the deadline that has passed; null if there is none.
    deadline: Union[str, None]
    # Unique within the kind.
    id: str
    kind: Literal["uncertainOperation", "uncertainStep", "blockedStream", "refusedWebhook", "failedRun", "pendingApproval", "overdueSignal", "pausedBatch", "failingTeardown", "expiredLease", "closingStream", "unservedWork", "unservedVersion", "stalledJanitor", "heldUpRetention", "oldSnapshot"]
    # Alternatives to the action.
    others: List[InboxAction]
    # Who or what is responsible, such as a requester, worker, node, handler or wallet; several requesters are separated by commas. Empty if unknown.
    owner: str
    # Why it is listed, in one sentence.
    reason: str
    since: Union[str, None]
    subject: str


class _IncScope(TypedDict):
    field: str


class IncScope(_IncScope, total=False):
    # Amount to add; default 1.
    by: int


class _JournaledEffect(TypedDict):
    key: str
    state: Literal["begun", "done", "notDone"]


class JournaledEffect(_JournaledEffect, total=False):
    result: Any

Key = TypedDict("Key", {"createdAt": "Union[str, None]", "createdBy": "str", "expiresAt": "Union[str, None]", "from": "List[str]", "handlers": "List[str]", "id": "str", "lastUsedAt": "Union[str, None]", "lifecycles": "List[str]", "name": "str", "rate": "int", "requesters": "List[str]", "revokedAt": "Union[str, None]", "role": "str", "routeGroups": "List[str]", "workspace": "str"})


class _KnownEffect(TypedDict):
    # Whether the effect happened.
    happened: bool
    name: str


class KnownEffect(_KnownEffect, total=False):
    ordinal: int
    result: Any


class Lease(TypedDict):
    attempt: int
    epoch: int
    events: List[Event]
    stream: str
    # Token that proves that the stream was claimed under this epoch. Required for ack, fail and renew.
    token: str
    until: Union[str, None]


class Leases(TypedDict):
    leases: List[Lease]


class LedgerEntry(TypedDict):
    at: Union[str, None]
    # The wallet's balance after this entry.
    balance: int
    delta: int
    # Number of the entry in the ledger, starting at 1.
    id: int
    reason: str
    reference: str


class _Lifecycle(TypedDict):
    name: str
    # 1 for the first config, higher after each change; a change that removes statuses raises it by more than 1.
    revision: int
    statuses: List[str]


class Lifecycle(_Lifecycle, total=False):
    # The config as it was sent, if it is JSON.
    config: Any
    # The config as it was sent, if it is YAML.
    source: str


class _LifecycleDetails(TypedDict):
    janitor: LifecycleJanitor
    name: str
    # Whether a program defines the lifecycle, or it was published through the API.
    origin: Literal["program", "published"]
    # 1 for the first config, higher after each change; a change that removes statuses raises it by more than 1.
    revision: int
    statuses: List[str]
    # What the linter warns about.
    warnings: List[Violation]


class LifecycleDetails(_LifecycleDetails, total=False):
    # The config as it was sent, if it is JSON.
    config: Any
    # The config as it was sent, if it is YAML.
    source: str


class LifecycleJanitor(TypedDict):
    # How often claims are swept; 0 means with every round of the server's janitor.
    everyMs: int
    # program if a janitor of the program recovers at least one claim status; none if there are no claims to recover.
    kind: Literal["standard", "program", "none"]
    # How long a claim lasts that is not renewed.
    stuckAfterMs: int


class ListApproval(TypedDict):
    items: List[Approval]
    # Cursor for the next page; null at the end of the list.
    next: Union[str, None]


class ListAttempt(TypedDict):
    items: List[Attempt]
    # Cursor for the next page; null at the end of the list.
    next: Union[str, None]


class ListAuditEntry(TypedDict):
    items: List[AuditEntry]
    # Cursor for the next page; null at the end of the list.
    next: Union[str, None]


class ListBatch(TypedDict):
    items: List[Batch]
    # Cursor for the next page; null at the end of the list.
    next: Union[str, None]


class ListBatchItem(TypedDict):
    items: List[BatchItem]
    # Cursor for the next page; null at the end of the list.
    next: Union[str, None]


class ListBulk(TypedDict):
    items: List[Bulk]
    # Cursor for the next page; null at the end of the list.
    next: Union[str, None]


class ListBulkMember(TypedDict):
    items: List[BulkMember]
    # Cursor for the next page; null at the end of the list.
    next: Union[str, None]


class ListDefinition(TypedDict):
    items: List[Definition]
    # Cursor for the next page; null at the end of the list.
    next: Union[str, None]


class ListEntity(TypedDict):
    items: List[Entity]
    # Cursor for the next page; null at the end of the list.
    next: Union[str, None]


class ListEvent(TypedDict):
    items: List[Event]
    # Cursor for the next page; null at the end of the list.
    next: Union[str, None]


class ListHandler(TypedDict):
    items: List[Handler]
    # Cursor for the next page; null at the end of the list.
    next: Union[str, None]


class ListHeldClaim(TypedDict):
    items: List[HeldClaim]
    # Cursor for the next page; null at the end of the list.
    next: Union[str, None]


class ListInboxItem(TypedDict):
    items: List[InboxItem]
    # Cursor for the next page; null at the end of the list.
    next: Union[str, None]


class ListKey(TypedDict):
    items: List[Key]
    # Cursor for the next page; null at the end of the list.
    next: Union[str, None]


class ListLedgerEntry(TypedDict):
    items: List[LedgerEntry]
    # Cursor for the next page; null at the end of the list.
    next: Union[str, None]


class ListLifecycle(TypedDict):
    items: List[Lifecycle]
    # Cursor for the next page; null at the end of the list.
    next: Union[str, None]


class ListNode(TypedDict):
    items: List[Node]
    # Cursor for the next page; null at the end of the list.
    next: Union[str, None]


class ListOperation(TypedDict):
    items: List[Operation]
    # Cursor for the next page; null at the end of the list.
    next: Union[str, None]


class ListPosition(TypedDict):
    items: List[Position]
    # Cursor for the next page; null at the end of the list.
    next: Union[str, None]


class ListQuota(TypedDict):
    items: List[Quota]
    # Cursor for the next page; null at the end of the list.
    next: Union[str, None]


class ListRace(TypedDict):
    items: List[Race]
    # Cursor for the next page; null at the end of the list.
    next: Union[str, None]


class ListRate(TypedDict):
    items: List[Rate]
    # Cursor for the next page; null at the end of the list.
    next: Union[str, None]


class ListReaction(TypedDict):
    items: List[Reaction]
    # Cursor for the next page; null at the end of the list.
    next: Union[str, None]


class ListRun(TypedDict):
    items: List[Run]
    # Cursor for the next page; null at the end of the list.
    next: Union[str, None]


class ListRunStep(TypedDict):
    items: List[RunStep]
    # Cursor for the next page; null at the end of the list.
    next: Union[str, None]


class ListScopeInfo(TypedDict):
    items: List[ScopeInfo]
    # Cursor for the next page; null at the end of the list.
    next: Union[str, None]


class ListScopeKind(TypedDict):
    items: List[ScopeKind]
    # Cursor for the next page; null at the end of the list.
    next: Union[str, None]


class ListSecret(TypedDict):
    items: List[Secret]
    # Cursor for the next page; null at the end of the list.
    next: Union[str, None]


class ListStoredRequest(TypedDict):
    items: List[StoredRequest]
    # Cursor for the next page; null at the end of the list.
    next: Union[str, None]


class ListStream(TypedDict):
    items: List[Stream]
    # Cursor for the next page; null at the end of the list.
    next: Union[str, None]


class ListTimelineEntry(TypedDict):
    items: List[TimelineEntry]
    # Cursor for the next page; null at the end of the list.
    next: Union[str, None]


class ListWallet(TypedDict):
    items: List[Wallet]
    # Cursor for the next page; null at the end of the list.
    next: Union[str, None]


class ListWebhook(TypedDict):
    items: List[Webhook]
    # Cursor for the next page; null at the end of the list.
    next: Union[str, None]


class ListWorkspace(TypedDict):
    items: List[Workspace]
    # Cursor for the next page; null at the end of the list.
    next: Union[str, None]


class _Live(TypedDict):
    # The database's time when the workspace was read. Null if it has not been read yet.
    at: Union[str, None]
    # The events of the topics, in the order of each subject. Empty if there were too many for one message: then folded has their subjects.
    changes: List[LiveChange]
    # Continues after this message: the id of the server-sent event.
    cursor: str
    # Subjects that have changed: read them again.
    folded: List[LiveSubject]
    # Time between that read and this message.
    lagMs: int
    # True if more has changed than the message names: read everything again.
    reset: bool


class Live(_Live, total=False):
    # The topics whose state has changed since the last message.
    state: LiveState


class _LiveChange(TypedDict):
    actor: str
    at: Union[str, None]
    # How many events are meant: 1 in a change.
    events: int
    kind: Literal["entity", "run", "batch", "bulk", "scope", "reaction", "webhook", "stream"]
    name: str
    # Its id. For an entity, scope or reaction, also its lifecycle, kind or name: invoice/17.
    subject: str
    # Version of its last event.
    version: int


class LiveChange(_LiveChange, total=False):
    # The data of the event; absent if it has more than 512 bytes or is encrypted.
    data: Any


class LiveInbox(TypedDict):
    counts: List[InboxCount]
    # The first 100 entries, oldest first.
    items: List[InboxItem]


class LiveRefusal(TypedDict):
    action: str
    actor: str
    at: Union[str, None]
    code: str
    id: str
    # The stream of the object, for example $entity/invoice/17.
    stream: str
    # The version of the object that refused the write.
    version: int


class LiveState(TypedDict, total=False):
    # The first 100 pending approvals.
    approvals: List[Approval]
    # Entities by status, for each lifecycle that is watched.
    counts: Dict[str, Tally]
    inbox: LiveInbox
    # The first 100 nodes.
    nodes: List[Node]
    overview: Overview
    # The latest 100 refusals of writes, latest first.
    races: List[LiveRefusal]
    # The wallets that are watched; null for one that does not exist.
    wallets: Dict[str, Wallet]


class LiveSubject(TypedDict):
    # How many events are meant: 1 in a change.
    events: int
    kind: Literal["entity", "run", "batch", "bulk", "scope", "reaction", "webhook", "stream"]
    # Its id. For an entity, scope or reaction, also its lifecycle, kind or name: invoice/17.
    subject: str
    # Version of its last event.
    version: int


class Maintained(TypedDict):
    # The node that ran it.
    node: str


class _Match(TypedDict):
    # The text is the whole id, key or name.
    exact: bool
    # The id, or the name of an object that has no id.
    id: str
    kind: Literal["entity", "run", "batch", "stream", "wallet", "scope", "operation", "request", "handler", "reaction", "lifecycle", "definition", "webhook"]
    # Path of the object, beginning with /api/v1/.
    route: str


class Match(_Match, total=False):
    # Of an entity.
    lifecycle: str
    # What else names the object: the key of a run, the subject of an operation, the name of a webhook.
    name: str
    # Of a scope.
    scopeKind: str
    # The status or state, if it has one.
    status: str


class Matches(TypedDict):
    matches: List[Match]
    # The kinds of which there are more matches: search with more text.
    more: List[str]


class _NewBatch(TypedDict):
    # The handler that processes the items.
    handler: str
    # The wallet that pays for the items.
    wallet: str


class NewBatch(_NewBatch, total=False):
    # How many times a failing item is attempted; default 3.
    attempts: int
    # Generated if omitted.
    id: str
    items: List[NewItem]
    # Number of worker crashes after which an item fails; default 5.
    maxDeaths: int
    # Leave the batch open, so that items can be added until it is sealed.
    open: bool
    # Maximum number of items that run at the same time; default 1.
    parallel: int
    # How long the batch keeps its items after it has ended; default: the retention of the kind or the server.
    retentionMs: int
    # Timeout of one attempt; defaults to the handler's timeout or, if that is not set, to 15 minutes.
    timeoutMs: int
    # Whether the handler undoes items that were started and then failed or were cancelled. A handler of a program undoes them if it has an undo function.
    undo: bool


class _NewBulk(TypedDict):
    action: Literal["run.retry", "run.cancel", "run.pause", "run.resume", "reaction.unblock", "reaction.skip", "operation.release", "operation.resolve", "operation.withdraw"]


class NewBulk(_NewBulk, total=False):
    # Return what would be acted on, and write nothing.
    dryRun: bool
    # Selects up to 10000 objects. Objects that do not permit the action are not selected.
    filter: BulkFilter
    # For operation.resolve: whether the effects of unknown outcome happened, for all operations.
    happened: bool
    # Up to 1000 ids: of runs or operations, or reaction/stream for positions.
    ids: List[str]
    # For operation.resolve: the outcome with which all operations end. Without it, they continue.
    outcome: Literal["success", "failure", "invalid"]
    # For operation.release and operation.withdraw: recorded in the audit.
    reason: str


class _NewClaim(TypedDict):
    requester: str
    stepKey: str


class NewClaim(_NewClaim, total=False):
    expectedVersion: int
    input: Any
    # How long the lease lasts; defaults to the lifecycle's stuck_after.
    leaseMs: int


class NewEntity(TypedDict, total=False):
    # A JSON object.
    data: Any
    # Generated if omitted.
    id: str
    # Defaults to the config's initial status.
    status: str


class _NewEvent(TypedDict):
    name: str


class NewEvent(_NewEvent, total=False):
    # Defaults to the API key.
    actor: str
    causation: str
    correlation: str
    data: Any


class _NewItem(TypedDict):
    # Cost in points. Set it to 0 for an item that costs nothing.
    cost: int
    # Unique within the batch.
    key: str


class NewItem(_NewItem, total=False):
    input: Any


class _NewKey(TypedDict):
    role: Literal["read", "operate", "worker", "admin"]

_NewKeyOptional = TypedDict("_NewKeyOptional", {"from": "List[str]", "handlers": "List[str]", "lifecycles": "List[str]", "lifetimeMs": "int", "name": "str", "rate": "int", "requesters": "List[str]", "routeGroups": "List[str]"}, total=False)


class NewKey(_NewKey, _NewKeyOptional):
    pass


class _NewWebhook(TypedDict):
    url: str


class NewWebhook(_NewWebhook, total=False):
    # Event names; omit them or use * for all.
    events: List[str]
    # Headers of each message. A value may contain ${secret:NAME}, which is replaced when the message is sent.
    headers: Dict[str, str]
    name: str
    # whsec_ followed by 24 to 64 bytes in base64, or secret:NAME for a named secret; generated if omitted.
    secret: str
    # Where events come from: user streams (event) or histories (history).
    source: Literal["event", "history"]
    # A regular expression (RE2) that stream names must match; omit it for all streams.
    streams: str


class NewWorkspace(TypedDict):
    name: str


class Node(TypedDict):
    # The node has not reported for 30 seconds.
    gone: bool
    name: str
    pool: NodePool
    # Streams that the node has leased for reactions, and that wait until it has free capacity.
    queued: int
    # When the node reported last. A node reports every 10 seconds.
    seenAt: Union[str, None]
    # The work that the node, or a worker through it, polls for.
    serves: List[NodeServes]
    # The oldest snapshot that keeps PostgreSQL from removing old rows; null if there is none.
    snapshot: Snapshot
    # The janitor no longer completes its sweeps.
    stalled: bool
    startedAt: Union[str, None]
    # The last run of each sweep of the janitor.
    sweeps: List[NodeSweep]
    version: str
    # Callers that wait for a wake-up.
    waiting: int


class NodePool(TypedDict):
    busy: int
    size: int


class NodeServes(TypedDict):
    # reaction, operation, step, batch, or a kind of maintenance.
    kind: str
    # Of the reaction, lifecycle or handler.
    name: str
    # A worker elsewhere asked this node for it within the last minute.
    remote: bool


class NodeSweep(TypedDict):
    at: Union[str, None]
    error: str
    name: str


class _Operation(TypedDict):
    effects: List[Effect]
    epoch: int
    handler: str
    id: str
    kind: str
    since: Union[str, None]
    state: Literal["held", "due", "uncertain", "ended"]
    subject: str


class Operation(_Operation, total=False):
    contradictions: List[Contradiction]
    # The event that ended the operation, while it is retained. Only in the response for one operation.
    ended: Event
    error: str
    # Number of consecutive hand-outs to workers that never responded. Set only with state=lost.
    lostHandOuts: int


class Overview(TypedDict):
    # Pending approvals.
    approvals: int
    blockedStreams: int
    endedBatches: Tally
    endedRuns: Tally
    # Entities, by lifecycle.
    entities: Tally
    liveBatches: Dict[str, int]
    # Runs that have not ended, and failed ones, by status.
    liveRuns: Dict[str, int]
    # Operations that have not ended, by state.
    operations: Dict[str, int]
    # Scopes, by kind.
    scopes: Tally
    # Streams, by state.
    streams: Tally


class Position(TypedDict):
    blocked: bool
    deaths: int
    # Last version that is known to concern the reaction; at most the watermark if nothing is to be handled.
    due: int
    error: str
    # Version of the event that failed; null if none has.
    failing: Union[int, None]
    # Last version of the stream.
    head: int
    leasedBy: str
    leasedUntil: Union[str, None]
    # Number of consecutive hand-outs to workers that never responded.
    lostHandOuts: int
    notBefore: Union[str, None]
    reaction: str
    # true if a reset is pending until the lease ends.
    resetRequested: bool
    retry: int
    stream: str
    # Last version that the reaction has handled or skipped; -1 if there is none.
    watermark: int


class _Problem(TypedDict):
    code: str
    detail: str
    requestId: str
    status: int
    title: str
    type: str


class Problem(_Problem, total=False):
    # JSON pointer (RFC 6901) to the member that the error is about.
    pointer: str
    violations: List[Violation]


class PushScope(TypedDict):
    field: str
    # Any JSON value, including null.
    value: Any


class _PutHandler(TypedDict):
    kind: Literal["http", "worker"]


class PutHandler(_PutHandler, total=False):
    # Headers of each call. A value may contain ${secret:NAME}, which is replaced when the call is made.
    headers: Dict[str, str]
    onUnknown: Literal["hold", "retry", "probe"]
    # Declared safety, which determines whether the handler may run again. Omit it to declare no safety.
    safety: Literal["idempotent", "transactional", "journaled", "opaque"]
    # Signing secret (whsec_…), or secret:NAME for a named secret. If empty, a secret is generated for a new http handler.
    secret: str
    timeoutMs: int
    url: str


class PutLifecycle(TypedDict):
    name: str
    # 1 for the first config, higher after each change; a change that removes statuses raises it by more than 1.
    revision: int
    warnings: List[Violation]


class _PutReaction(TypedDict):
    # Event names; * for all.
    events: List[str]


class PutReaction(_PutReaction, total=False):
    backoff: Backoff
    blockOnError: bool
    handler: str
    leaseMs: int
    maxDeaths: int
    maxRetries: int
    # The head start in whole seconds, from -1000 to 1000.
    priority: int
    # Where events come from: user streams (event) or histories (history).
    source: Literal["event", "history"]
    start: Literal["beginning", "now"]
    # A regular expression (RE2) that stream names must match; omit it for all streams.
    streams: str


class _PutSecret(TypedDict):
    # 8 to 4096 printable ASCII characters, without line breaks. No request returns it.
    value: str


class PutSecret(_PutSecret, total=False):
    # The value is stored only if the secret is at this version; 0 if it must not exist.
    expectedVersion: int
    # How long messages are also signed with the previous value; at most 30 days. Headers always have the new value.
    overlapMs: int


class PutWallet(TypedDict, total=False):
    # Whether the balance may be negative.
    allowNegative: bool


class Quota(TypedDict):
    # Null if there is none.
    limit: Union[int, None]
    # requests (per second), connections (event streams and waiting requests), work (open operations, runs and items), storage (bytes) or definitions (definitions, lifecycles, reactions, handlers, webhooks, secrets and API keys).
    name: str
    # Each node has its own count.
    perNode: bool
    # Requests that the node has refused because of the quota since it started.
    refused: int
    # Null if it is not counted: of requests, and of storage without a limit.
    used: Union[int, None]


class _Race(TypedDict):
    # The operation that won; empty if the winner is an event without an operation.
    operation: str
    # Latest first.
    refusals: List[Refusal]
    # The number of refusals, including those that the listed ones stand for.
    refused: int
    # The stream of the object, for example $entity/invoice/17.
    stream: str


class Race(_Race, total=False):
    # The event that won; absent if it is no longer retained.
    winner: Winner


class Rate(TypedDict):
    # Commands that write events when they are applied.
    commands: int
    # Items of batches that succeeded.
    items: int
    # Age of the oldest work, in all workspaces, that is due and has no holder. A node reads it once a minute; null if it has not read it yet.
    lagMs: Union[int, None]
    # 95 % of the HTTP requests took at most this long, without the time for which they waited for work; rounded up, by up to a quarter. It is that of the slowest 10 seconds of the minute; null if there were no requests. Responses that are streams of server-sent events are not counted.
    latencyMs: Union[int, None]
    minute: Union[str, None]
    node: str
    # Deliveries to reactions that ended.
    reactions: int
    # Of these commands, those that were refused.
    refusals: int
    # HTTP requests.
    requests: int
    # Runs that ended.
    runs: int
    # Steps of runs that ended.
    steps: int


class _Reaction(TypedDict):
    backoff: Backoff
    blockOnError: bool
    createdAt: Union[str, None]
    events: List[str]
    handler: str
    leaseMs: int
    maxDeaths: int
    maxRetries: int
    name: str
    # The head start in whole seconds, from -1000 to 1000.
    priority: int
    source: Literal["event", "history"]
    start: str
    streams: str
    updatedAt: Union[str, None]


class Reaction(_Reaction, total=False):
    # true if a Go program serves the reaction, so that its streams cannot be claimed manually.
    program: bool


class Refusal(TypedDict):
    # The step that was fired, or the command: append, put, cancel, start, decide. For a holder that had lost its lease, what it tried: settle, renew.
    action: str
    # The caller: an API key, or the actor that a program names; empty if it names none.
    actor: str
    at: Union[str, None]
    code: str
    detail: Dict[str, Any]
    # The epoch of a holder that had lost its lease; otherwise 0.
    epoch: int
    id: str
    # The node that refused the write.
    node: str
    # The operation that was in progress. For a holder that had lost its lease, its own operation.
    operation: str
    # The id of the HTTP request; empty if there was none.
    requestId: str
    requester: str
    # The number of refusals that this one stands for. It is more than 1 only if a workspace has more than 100 refusals per second on a node.
    standsFor: int
    # The stream of the object, for example $entity/invoice/17.
    stream: str
    # The object's version when it refused the write. The refusal comes after that event and before the next.
    version: int


class Release(TypedDict, total=False):
    reason: str


class ReleaseOperation(TypedDict, total=False):
    # The epoch of the lease to end. If the lease has another one, nothing is changed, so a repeated request cannot end the lease of the next holder.
    epoch: int
    # Recorded in the audit and, for an operation of an entity, as its error.
    reason: str


class Renew(TypedDict, total=False):
    epoch: int
    leaseMs: int


class _RenewLease(TypedDict):
    epoch: int
    stream: str
    # Lease token, from the claim.
    token: str


class RenewLease(_RenewLease, total=False):
    leaseMs: int


class Renewed(TypedDict):
    cancelRequested: bool
    until: Union[str, None]


class Repair(TypedDict, total=False):
    filter: RepairFilter
    streams: List[str]


class RepairFilter(TypedDict, total=False):
    blocked: bool
    source: Literal["event", "history"]
    # A regular expression (RE2) that stream names must match.
    stream: str


class Repaired(TypedDict):
    held: List[str]
    # Streams that are reset when their current lease ends. Until then, renew returns cancelRequested and no longer extends the lease.
    pending: List[str]
    streams: List[str]


class Resolve(TypedDict, total=False):
    effects: List[KnownEffect]
    # Outcome that ends the operation; omit it to resume the operation.
    outcome: Literal["success", "failure", "invalid"]


class Resolved(TypedDict):
    operation: Union[Operation, None]


class RotateKey(TypedDict, total=False):
    # How long the old key stays valid.
    overlapMs: int


class RotateWebhook(TypedDict, total=False):
    # How long messages are also signed with the old secret; at most 30 days.
    overlapMs: int
    # As when the webhook was created; generated if omitted.
    secret: str


class Run(TypedDict):
    cancelRequested: bool
    createdAt: Union[str, None]
    # Current step or, for a failed or cancelled run, the last step; null for a completed run.
    currentStepName: Union[str, None]
    definitionId: str
    error: Union[str, None]
    finishedAt: Union[str, None]
    id: str
    idempotencyKey: Union[str, None]
    input: Any
    output: Any
    startedAt: Union[str, None]
    state: Any
    status: Literal["PENDING", "RUNNING", "WAITING", "PAUSED", "COMPLETED", "FAILED", "CANCELLED"]
    # The last change of the run.
    updatedAt: Union[str, None]
    # Incremented by every change of the run.
    version: int
    workspaceId: str


class _RunStep(TypedDict):
    attempts: int
    # Number of attempts whose worker crashed: the lease expired without a report.
    deaths: int
    # When the step is next due, if it is not leased.
    dueAt: Union[str, None]
    epoch: int
    error: Union[str, None]
    # Number of attempts that were reported as failed.
    failures: int
    finishedAt: Union[str, None]
    holder: Union[str, None]
    input: Any
    # Number of consecutive hand-outs to workers that never responded.
    lostHandOuts: int
    name: str
    output: Any
    startedAt: Union[str, None]
    status: Literal["PENDING", "RUNNING", "WAITING", "COMPLETED", "FAILED", "SKIPPED", "CANCELLED"]
    type: str
    # Whether the step waits for manual resolution (see operations).
    uncertain: bool
    # End of the lease.
    until: Union[str, None]
    # Visit number of this step, starting at 1.
    visit: int


class RunStep(_RunStep, total=False):
    handler: str


class Scope(TypedDict):
    id: str
    kind: str
    # A JSON object.
    state: Any
    # Incremented by every change and never reused. The ETag is this number in quotes.
    version: int


class ScopeInfo(TypedDict):
    createdAt: Union[str, None]
    # null if the scope does not expire.
    expiresAt: Union[str, None]
    id: str
    kind: str
    updatedAt: Union[str, None]
    version: int


class ScopeKind(TypedDict):
    kind: str


class Secret(TypedDict):
    createdAt: Union[str, None]
    createdBy: str
    name: str
    # End of the period in which messages are also signed with the previous value; null if there is none.
    overlapUntil: Union[str, None]
    updatedAt: Union[str, None]
    updatedBy: str
    # 1 for the first value.
    version: int


class Session(TypedDict):
    # How histories name the caller.
    actor: str
    # When the session ends or, for a caller without one, when its API key or token expires; null if it does not.
    expiresAt: Union[str, None]
    # The caller's API key; null for a token, and on a server without API keys.
    key: Union[SessionKey, None]
    # Whether the server requires API keys.
    login: bool
    # The time of the database.
    now: Union[str, None]
    # Requesters that the caller may act for; * stands for all.
    requesters: List[str]
    role: str
    # The version of the server; empty if it has none.
    version: str
    workspace: str


class SessionKey(TypedDict):
    id: str
    name: str


class _Settle(TypedDict):
    outcome: Literal["success", "failure", "invalid"]


class Settle(_Settle, total=False):
    # A merge patch (RFC 7396) for the entity's data.
    data: Any
    # Events to append to user streams in the same transaction.
    events: List[SettleEvent]
    message: str


class _SettleEvent(TypedDict):
    name: str


class SettleEvent(_SettleEvent, total=False):
    data: Any
    stream: str


class Settled(TypedDict):
    entity: Entity


class _Signal(TypedDict):
    type: str


class Signal(_Signal, total=False):
    # Id chosen by the sender. Sending a signal again with the same id has no effect. Generated if omitted.
    id: str
    payload: Any


class Signalled(TypedDict):
    # false if this signal was already sent.
    fresh: bool
    id: str


class Snapshot(TypedDict):
    # The connection that holds the transaction open: its process id, its application or role, and its state.
    by: str
    # When the transaction began.
    since: Union[str, None]


class SnoozeLease(TypedDict):
    # Delay until the stream is due again, in milliseconds: 1 to 2592000000 (30 days).
    delayMs: int
    epoch: int
    stream: str
    # Token of the lease.
    token: str


class SnoozeTask(TypedDict):
    # Delay until the task is due again, in milliseconds: 1 to 2592000000 (30 days).
    delayMs: int
    epoch: int


class SnoozedLease(TypedDict):
    notBefore: Union[str, None]


class _StartRun(TypedDict):
    # name@version
    definitionId: str


class StartRun(_StartRun, total=False):
    # 1 to 255 characters. Every start with the same key returns the same run.
    idempotencyKey: str
    # A JSON object; default {}.
    input: Any


class StartedBulk(TypedDict, total=False):
    bulk: Bulk
    preview: BulkPreview


class StartedRun(TypedDict):
    created: bool
    run: Run


class _StoredRequest(TypedDict):
    # When the request was first received.
    at: Union[str, None]
    # The route and a hash of the idempotency key. The key itself is not stored.
    id: str
    # The operationId of the route in the OpenAPI document, for example startRun.
    route: str
    # operation means that the response is the outcome of the operation.
    state: Literal["inFlight", "answered", "operation"]
    # The HTTP status of the response; 0 if there is none yet, or if it is unknown.
    status: int


class StoredRequest(_StoredRequest, total=False):
    operation: str
    response: Any
    subject: str
    # The response is not shown, because it proves that its caller holds a lease.
    withheld: bool


class StoredRequests(TypedDict):
    requests: List[StoredRequest]


class _Stream(TypedDict):
    # The number of stored events.
    events: int
    # Time of the first stored event.
    firstAt: Union[str, None]
    firstVersion: int
    # Time of the last event.
    lastAt: Union[str, None]
    # Name of the last event.
    lastName: str
    lastVersion: int
    name: str
    state: Literal["open", "closing", "closed"]


class Stream(_Stream, total=False):
    # How a closed stream was closed.
    mode: Literal["archive", "tombstone"]


class _StreamStatistics(TypedDict):
    # How many of the newest events were counted, at most 10000.
    counted: int
    # The number of stored events.
    events: int
    # Time of the first stored event.
    firstAt: Union[str, None]
    firstVersion: int
    # Time of the last event.
    lastAt: Union[str, None]
    # Name of the last event.
    lastName: str
    lastVersion: int
    name: str
    # The number of counted events by name.
    names: Dict[str, int]
    state: Literal["open", "closing", "closed"]


class StreamStatistics(_StreamStatistics, total=False):
    # How a closed stream was closed.
    mode: Literal["archive", "tombstone"]


class Tally(TypedDict):
    # True if there are more than 5,000; only the first 5,001 are counted.
    capped: bool
    counts: Dict[str, int]


class Task(TypedDict):
    attempt: int
    context: TaskContext
    epoch: int
    handler: str
    id: str
    # The operation id, which is the same for every attempt and never reused.
    idempotencyKey: str
    input: Any
    kind: Literal["action", "validation", "afterEffect", "runStep", "reaction", "batchItem", "undoItem", "probe"]
    until: Union[str, None]


class TaskContext(TypedDict, total=False):
    # Prefix for the item's artifacts, which are deleted if the item fails or is cancelled.
    artifactPrefix: str
    batch: str
    entity: Entity
    event: Event
    # Input of the run; the step's input is in the task.
    input: Any
    # Key of the item in the batch.
    item: str
    # For an undo: failed or cancelled.
    itemStatus: str
    # For an undo: the output of the item, if it has one.
    output: Any
    reaction: str
    requester: str
    run: str
    # State of the run.
    state: Any
    # Step of the run.
    step: str
    stepKey: str
    # Visit number of this step, starting at 1.
    visit: int


class Tasks(TypedDict):
    tasks: List[Task]


class _TimelineEffect(TypedDict):
    begunAt: Union[str, None]
    # The epoch of the attempt that began the effect last.
    epoch: int
    key: str
    name: str
    operation: str
    ordinal: int
    state: Literal["begun", "done", "notDone"]


class TimelineEffect(_TimelineEffect, total=False):
    result: Any


class TimelineEntry(TypedDict, total=False):
    # A request with an idempotency key. The response to it is the outcome of the operation that the next entry, an event, ended.
    answer: StoredRequest
    effect: TimelineEffect
    event: Event
    refusal: Refusal


class Token(TypedDict):
    epoch: int
    token: str
    until: Union[str, None]


class _TruncateStream(TypedDict):
    # The first version to keep; at most the last version.
    before: int


class TruncateStream(_TruncateStream, total=False):
    # The state computed from all events below before, from which aggregates start. Any JSON value.
    snapshot: Any


class _Violation(TypedDict):
    message: str
    path: str
    rule: str


class Violation(_Violation, total=False):
    line: int


class Wallet(TypedDict):
    allowNegative: bool
    balance: int
    id: str


class _Webhook(TypedDict):
    createdAt: Union[str, None]
    createdBy: str
    events: List[str]
    id: str
    name: str
    # End of the period in which messages are also signed with the previous secret; null if there is none.
    overlapUntil: Union[str, None]
    # Name of the webhook's reaction; reactions/{reaction}/streams lists its positions.
    reaction: str
    rotatedAt: Union[str, None]
    source: str
    streams: str
    url: str


class Webhook(_Webhook, total=False):
    # With the references, not the values of secrets.
    headers: Dict[str, str]
    # The named secret that signs messages, as secret:NAME.
    signedWith: str


class Winner(TypedDict):
    actor: str
    at: Union[str, None]
    name: str
    version: int


class Withdraw(TypedDict, total=False):
    reason: str


class Workspace(TypedDict):
    createdAt: Union[str, None]
    name: str
