// Generated from the route table by "go generate ./web". Do not edit.

export interface AcceptItems {
  /** Keys of the items to accept; omit to accept all succeeded items. An empty list accepts none. */
  items?: (string)[];
}

export interface Accepted {
  accepted: number;
}

export interface Ack {
  epoch: number;
  stream: string;
  /** Lease token, from the claim. */
  token: string;
  version: number;
}

export interface AckResult {
  /** Set with NOT_DELIVERED: the last version that can be acknowledged under this lease. The lease remains valid. */
  delivered?: number;
  status: "acked" | "LEASE_LOST" | "NOT_DELIVERED";
  stream: string;
}

export interface Acked {
  results: (AckResult)[];
}

export interface Acknowledge {
  /** Ids of the contradictions to acknowledge. */
  contradictions: (string)[];
}

export interface Acknowledged {
  contradictions: (Contradiction)[];
}

export interface Acks {
  acks: (Ack)[];
}

export interface AddItems {
  items: (NewItem)[];
}

export interface AddedItems {
  /** Number of new items; identical items that the batch already has are not added again. */
  added: number;
}

export interface Append {
  events: (NewEvent)[];
  /** Expected last version of the stream; -1 if the stream must not exist. Omit it to accept any version. */
  expectedVersion?: number;
}

export interface Appended {
  events: (Event)[];
  lastVersion: number;
  stream: string;
}

export interface Approval {
  /** The actor that decided. */
  by: string | null;
  content: any;
  createdAt: string | null;
  decidedAt: string | null;
  expiresAt: string | null;
  id: string;
  /** Name of the person who decided, as given in the request. */
  label: string | null;
  prompt: string;
  /** An API key may decide if it may act for at least one of these requesters. If empty, any API key that is allowed to decide approvals may decide. */
  requesters: (string)[];
  runId: string;
  status: "pending" | "approved" | "rejected" | "edited" | "expired";
  step: string;
  visit: number;
}

export interface Attempt {
  /** The caller: an API key, or the actor that a program names; empty if it names none. */
  actor: string;
  at: string | null;
  code: string;
  detail: Record<string, any>;
  /** The epoch of a holder that had lost its lease; otherwise 0. */
  epoch: number;
  id: string;
  /** The node that refused the write. */
  node: string;
  /** The operation that was in progress. For a holder that had lost its lease, its own operation. */
  operation: string;
  /** The id of the HTTP request; empty if there was none. */
  requestId: string;
  requester: string;
  /** The number of refusals that this one stands for. It is more than 1 only if a workspace has more than 100 refusals per second on a node. */
  standsFor: number;
  /** The step that was fired or claimed. For a holder that had lost its lease, what it tried: settle, renew, beginEffect, endEffect or enqueue. For a refused create: create. */
  stepKey: string;
  /** The object's version when it refused the write. The refusal comes after that event and before the next. */
  version: number;
}

export interface Audit {
  entries: number;
  wallets: number;
  wrong: (Discrepancy)[];
}

export interface AuditEntry {
  /** The kind of object and what was done, for example key.create or reaction.skip. */
  action: string;
  /** The API key, or the actor that a program names; empty if it names none. */
  actor: string;
  after?: any;
  at: string | null;
  before?: any;
  id: string;
  /** The id of the HTTP request; empty if there was none. */
  requestId: string;
  /** The object, for example key/06gt…. */
  subject: string;
}

export interface Backoff {
  baseMs: number;
  kind: "fixed" | "linear" | "exponential";
  maxMs: number;
}

export interface Batch {
  cancelRequested: boolean;
  /** Number of points charged to the wallet. */
  charged: number;
  counts: BatchCounts;
  createdAt: string | null;
  /** Why the batch's teardown or cleanup makes no progress. */
  error?: string;
  handler: string;
  id: string;
  /** When the deletion of the items began, after their retention. The counts and sums of the batch remain. */
  itemsDeletedAt?: string;
  /** Whether items can still be added. */
  open: boolean;
  parallel: number;
  /** Number of points refunded for failed or cancelled items. */
  refunded: number;
  status: "PENDING" | "RUNNING" | "PAUSED" | "CANCELLING" | "CANCELLED" | "COMPLETED";
  updatedAt: string | null;
  wallet: string;
}

export interface BatchCounts {
  accepted: number;
  cancelled: number;
  failed: number;
  pending: number;
  running: number;
  succeeded: number;
}

export interface BatchItem {
  /** Prefix under which the item may have stored artifacts; empty if none. */
  artifacts: string;
  attempts: number;
  cost: number;
  decision: "accepted" | "cancelled";
  error: string;
  key: string;
  /** Number of consecutive hand-outs to workers that never responded. */
  lostHandOuts: number;
  output: any;
  state: "pending" | "waiting" | "running" | "succeeded" | "failed" | "cancelled";
}

export interface Bulk {
  action: string;
  actor: string;
  cancelRequested: boolean;
  /** Number of members on which nothing was done, because the bulk was cancelled. */
  cancelled: number;
  createdAt: string | null;
  done: number;
  /** Omitted if the request listed ids. */
  filter?: BulkFilter;
  happened?: boolean;
  id: string;
  outcome?: string;
  pending: number;
  reason?: string;
  refused: number;
  /** The id of the HTTP request that started it. */
  requestId: string;
  running: number;
  status: "PENDING" | "RUNNING" | "CANCELLING" | "CANCELLED" | "COMPLETED";
  /** Number of members: the sum of pending, running, done, refused and cancelled. */
  total: number;
  updatedAt: string | null;
}

export interface BulkFilter {
  /** For reaction.skip: false selects positions whose failed event waits for a retry, instead of blocked ones. */
  blocked?: boolean;
  /** Runs of this definition, or operations of its steps. */
  definitionId?: string;
  /** Operations of entities of this lifecycle. */
  lifecycle?: string;
  /** Positions of this reaction. */
  reaction?: string;
  /** Runs that were created, or operations that began, at this time or later. */
  since?: string;
  /** Positions in streams, or in histories. */
  source?: "event" | "history";
  /** Runs with this status. */
  status?: string;
  /** Positions in streams whose names match this regular expression (RE2). */
  stream?: string;
  /** Runs that were created, or operations that began, before this time. */
  until?: string;
}

export interface BulkMember {
  /** Code of the refusal, or of the last failed attempt. */
  code?: string;
  id: string;
  message?: string;
  /** State of the object when it was selected; empty if it did not exist. */
  state: string;
  /** waiting means that the action failed for a temporary reason and is tried again. Omitted in a dry run. */
  status?: "pending" | "waiting" | "running" | "done" | "refused" | "cancelled";
}

export interface BulkPreview {
  /** The first 100 of them. */
  members: (BulkMember)[];
  /** The first 100 of them. */
  refused: (BulkMember)[];
  /** Number of ids that would currently be refused. */
  refusedTotal: number;
  /** Number of objects that the action would be done to. */
  total: number;
}

export interface CancelledBatch {
  batch: Batch;
  result: "CANCELLED" | "ACCEPTED";
}

export interface ChangedScope {
  /** false if nothing changed and nothing was written. */
  changed: boolean;
  /** A JSON object; null if the scope does not exist. */
  state: any;
  /** -1 if the scope does not exist; the version of the deletion if this call deleted the scope. */
  version: number;
}

export interface Claim {
  epoch: number;
  holder: string;
  operation: string;
  requester: string;
  since: string | null;
  stepKey: string;
  uncertain: boolean;
  until: string | null;
}

export interface ClaimLeases {
  by: string;
  leaseMs?: number;
  limit?: number;
  waitMs?: number;
}

export interface ClaimTasks {
  handlers: (string)[];
  /** How long a lease lasts without renewal; default 30000. */
  leaseMs?: number;
  /** Default 10. */
  limit?: number;
  /** How long to wait for a task; default 20000. */
  waitMs?: number;
  /** Name of the worker. */
  worker: string;
}

export interface Claimed {
  claim: Token;
  entity: Entity;
}

export interface CloseStream {
  /** Expected last version of the stream; omit it to accept any version. Required for restart. */
  expectedVersion?: number;
  mode: "archive" | "tombstone" | "restart";
  /** Required for restart: the state computed from all events up to expectedVersion. */
  snapshot?: any;
}

export interface ClosedStream {
  lastVersion: number;
  mode: string;
  stream: string;
}

export interface Command {
  /** The command is applied only if the run is at this version. */
  expectedVersion?: number;
}

export interface CompleteTask {
  epoch: number;
  output?: any;
  /** A merge patch (RFC 7396) for the entity data or the run state. */
  state?: any;
}

export interface Contradiction {
  at: string | null;
  /** The epoch of the lease that the holder lost. */
  epoch: number;
  id: string;
  key: string;
  name: string;
  node: string;
  ordinal: number;
  result?: any;
  state: "done" | "unknown";
}

export interface CreatedKey {
  createdAt: string | null;
  createdBy: string;
  expiresAt: string | null;
  from: (string)[];
  handlers: (string)[];
  id: string;
  /** When it was last used, about a minute behind; null if it was never used. */
  lastUsedAt: string | null;
  lifecycles: (string)[];
  name: string;
  rate: number;
  requesters: (string)[];
  revokedAt: string | null;
  role: string;
  routeGroups: (string)[];
  /** The complete key. It is returned only once, and is not included when the request is replayed. */
  secret?: string;
  workspace: string;
}

export interface CreatedWebhook {
  createdAt: string | null;
  createdBy: string;
  events: (string)[];
  /** With the references, not the values of secrets. */
  headers?: Record<string, string>;
  id: string;
  name: string;
  /** End of the period in which messages are also signed with the previous secret; null if there is none. */
  overlapUntil: string | null;
  /** Name of the webhook's reaction; reactions/{reaction}/streams lists its positions. */
  reaction: string;
  rotatedAt: string | null;
  /** Returned only once, and not included when the request is replayed. */
  secret?: string;
  /** The named secret that signs messages, as secret:NAME. */
  signedWith?: string;
  source: string;
  streams: string;
  url: string;
}

export interface Credit {
  points: number;
  /** Idempotency reference. Crediting again with the same reference adds nothing. */
  reference: string;
}

export interface Decide {
  /** Name of the person who decides, stored as the label. The actor is the API key or, on a server without API keys, this name. */
  by?: string;
  content?: any;
  decision: "approved" | "rejected" | "edited";
}

export interface DefinedWorkflow {
  createdAt: string | null;
  /** name@version */
  id: string;
  name: string;
  /** Retention of finished runs; defaults to the server's setting. */
  retentionMs?: number;
  steps: (any)[];
  version: string;
  warnings: (Violation)[];
}

export interface Definition {
  createdAt: string | null;
  /** name@version */
  id: string;
  name: string;
  /** Retention of finished runs; defaults to the server's setting. */
  retentionMs?: number;
  steps: (any)[];
  version: string;
}

export interface Diagram {
  diagram: string;
  format: "svg" | "mermaid" | "layout";
  layout?: DiagramLayout;
}

export interface DiagramEdge {
  from: string;
  /** In a lifecycle step, claim, done, failed or revert; in a definition next, then, else, failure, timeout or reject. */
  kind: string;
  label: string;
  /** The middle of the label, directly above the line; null if the line has none. */
  labelAt: DiagramPoint | null;
  /** The line, from the border of one node to that of the other. No line crosses another node. */
  points: (DiagramPoint)[];
  to: string;
}

export interface DiagramLayout {
  edges: (DiagramEdge)[];
  height: number;
  nodes: (DiagramNode)[];
  width: number;
}

export interface DiagramNode {
  final: boolean;
  height: number;
  /** The status or the name of the step; end is the end of a run. */
  id: string;
  initial: boolean;
  /** status or claim; for a step its type, or end. */
  kind: string;
  /** The text in the node, shortened if it is long. */
  label: string;
  width: number;
  x: number;
  y: number;
}

export interface DiagramPoint {
  x: number;
  y: number;
}

export interface Discrepancy {
  id: number;
  message: string;
  wallet: string;
}

export interface Effect {
  key: string;
  name: string;
  ordinal: number;
  result?: any;
  state: "begun" | "done" | "notDone";
}

export interface EffectCall {
  epoch?: number;
  name: string;
  notDone?: boolean;
  ordinal?: number;
  result?: any;
}

export interface EndedTask {
  /** When a failed or snoozed event is delivered again. */
  notBefore?: string;
  /** For an action, the status of the entity. For an event, acked, failed, snoozed, skipped or blocked. For a batch item, its state. For a step of a run, its status, or UNCERTAIN if the step needs manual resolution. */
  status: string;
  version: number;
}

export interface Entity {
  claim: Claim | null;
  createdAt: string | null;
  data: any;
  id: string;
  lifecycle: string;
  status: string;
  updatedAt: string | null;
  version: number;
}

export interface Event {
  actor: string;
  at: string | null;
  causation: string;
  correlation: string;
  data: any;
  name: string;
  /** Position in the feed, which can be used as a feed cursor; null until it is assigned. */
  position: string | null;
  stream: string;
  version: number;
}

export interface FailLease {
  epoch: number;
  message: string;
  /** false blocks the stream immediately. */
  retryable?: boolean;
  stream: string;
  /** Lease token, from the claim. */
  token: string;
}

export interface FailTask {
  epoch: number;
  /** true if the handler refuses the step as invalid. */
  invalid?: boolean;
  message: string;
  /** false if a retry cannot succeed. */
  retryable?: boolean;
}

export interface FailedLease {
  blocked: boolean;
  notBefore: string | null;
  retry: number;
}

export interface Fire {
  expectedVersion?: number;
  input?: any;
  /** The requester to act for; the API key must be allowed to act for it. */
  requester: string;
}

export interface Fired {
  entity: Entity;
  operation?: string;
  outcome: "success" | "pending" | "uncertain";
  output?: any;
}

export interface Handler {
  createdAt: string | null;
  /** With the references, not the values of secrets. */
  headers?: Record<string, string>;
  kind: string;
  name: string;
  onUnknown: string;
  safety: string;
  /** Signing secret, returned only by the call that generated it. */
  secret?: string;
  /** The named secret that signs calls, as secret:NAME. */
  signedWith?: string;
  timeoutMs: number;
  updatedAt: string | null;
  url: string;
}

export interface HeldClaim {
  entity: string;
  epoch: number;
  holder: string;
  lifecycle: string;
  operation: string;
  phase: "held" | "due" | "uncertain";
  requester: string;
  since: string | null;
  status: string;
  stepKey: string;
  uncertain: boolean;
  until: string | null;
}

export interface InboxAction {
  body?: any;
  label: string;
  method?: string;
  /** Path of the request, beginning with /api/v1/. */
  route?: string;
}

export interface InboxCount {
  /** True if the inbox has more entries of this kind than count. At most 1,000 entries of a kind are counted and listed. */
  capped: boolean;
  count: number;
  kind: string;
}

export interface InboxCounts {
  counts: (InboxCount)[];
}

export interface InboxItem {
  action: InboxAction;
  /** When it ends without an action, or for overdueSignal the deadline that has passed; null if there is none. */
  deadline: string | null;
  /** Unique within the kind. */
  id: string;
  kind: "uncertainOperation" | "uncertainStep" | "blockedStream" | "refusedWebhook" | "failedRun" | "pendingApproval" | "overdueSignal" | "pausedBatch" | "failingTeardown" | "expiredLease" | "closingStream" | "unservedWork" | "unservedVersion" | "stalledJanitor" | "heldUpRetention" | "oldSnapshot";
  /** Alternatives to the action. */
  others: (InboxAction)[];
  /** Who or what is responsible, such as a requester, worker, node, handler or wallet; several requesters are separated by commas. Empty if unknown. */
  owner: string;
  /** Why it is listed, in one sentence. */
  reason: string;
  since: string | null;
  subject: string;
}

export interface IncScope {
  /** Amount to add; default 1. */
  by?: number;
  field: string;
}

export interface JournaledEffect {
  key: string;
  result?: any;
  state: "begun" | "done" | "notDone";
}

export interface Key {
  createdAt: string | null;
  createdBy: string;
  expiresAt: string | null;
  from: (string)[];
  handlers: (string)[];
  id: string;
  /** When it was last used, about a minute behind; null if it was never used. */
  lastUsedAt: string | null;
  lifecycles: (string)[];
  name: string;
  rate: number;
  requesters: (string)[];
  revokedAt: string | null;
  role: string;
  routeGroups: (string)[];
  workspace: string;
}

export interface KnownEffect {
  /** Whether the effect happened. */
  happened: boolean;
  name: string;
  ordinal?: number;
  result?: any;
}

export interface Lease {
  attempt: number;
  epoch: number;
  events: (Event)[];
  stream: string;
  /** Token that proves that the stream was claimed under this epoch. Required for ack, fail and renew. */
  token: string;
  until: string | null;
}

export interface Leases {
  leases: (Lease)[];
}

export interface LedgerEntry {
  at: string | null;
  /** The wallet's balance after this entry. */
  balance: number;
  delta: number;
  /** Number of the entry in the ledger, starting at 1. */
  id: number;
  reason: string;
  reference: string;
}

export interface Lifecycle {
  /** The config as it was sent, if it is JSON. */
  config?: any;
  name: string;
  /** 1 for the first config, higher after each change; a change that removes statuses raises it by more than 1. */
  revision: number;
  /** The config as it was sent, if it is YAML. */
  source?: string;
  statuses: (string)[];
}

export interface LifecycleDetails {
  /** The config as it was sent, if it is JSON. */
  config?: any;
  janitor: LifecycleJanitor;
  name: string;
  /** Whether a program defines the lifecycle, or it was published through the API. */
  origin: "program" | "published";
  /** 1 for the first config, higher after each change; a change that removes statuses raises it by more than 1. */
  revision: number;
  /** The config as it was sent, if it is YAML. */
  source?: string;
  statuses: (string)[];
  /** What the linter warns about. */
  warnings: (Violation)[];
}

export interface LifecycleJanitor {
  /** How often claims are swept; 0 means with every round of the server's janitor. */
  everyMs: number;
  /** program if a janitor of the program recovers at least one claim status; none if there are no claims to recover. */
  kind: "standard" | "program" | "none";
  /** How long a claim lasts that is not renewed. */
  stuckAfterMs: number;
}

export interface ListApproval {
  items: (Approval)[];
  /** Cursor for the next page; null at the end of the list. */
  next: string | null;
}

export interface ListAttempt {
  items: (Attempt)[];
  /** Cursor for the next page; null at the end of the list. */
  next: string | null;
}

export interface ListAuditEntry {
  items: (AuditEntry)[];
  /** Cursor for the next page; null at the end of the list. */
  next: string | null;
}

export interface ListBatch {
  items: (Batch)[];
  /** Cursor for the next page; null at the end of the list. */
  next: string | null;
}

export interface ListBatchItem {
  items: (BatchItem)[];
  /** Cursor for the next page; null at the end of the list. */
  next: string | null;
}

export interface ListBulk {
  items: (Bulk)[];
  /** Cursor for the next page; null at the end of the list. */
  next: string | null;
}

export interface ListBulkMember {
  items: (BulkMember)[];
  /** Cursor for the next page; null at the end of the list. */
  next: string | null;
}

export interface ListDefinition {
  items: (Definition)[];
  /** Cursor for the next page; null at the end of the list. */
  next: string | null;
}

export interface ListEntity {
  items: (Entity)[];
  /** Cursor for the next page; null at the end of the list. */
  next: string | null;
}

export interface ListEvent {
  items: (Event)[];
  /** Cursor for the next page; null at the end of the list. */
  next: string | null;
}

export interface ListHandler {
  items: (Handler)[];
  /** Cursor for the next page; null at the end of the list. */
  next: string | null;
}

export interface ListHeldClaim {
  items: (HeldClaim)[];
  /** Cursor for the next page; null at the end of the list. */
  next: string | null;
}

export interface ListInboxItem {
  items: (InboxItem)[];
  /** Cursor for the next page; null at the end of the list. */
  next: string | null;
}

export interface ListKey {
  items: (Key)[];
  /** Cursor for the next page; null at the end of the list. */
  next: string | null;
}

export interface ListLedgerEntry {
  items: (LedgerEntry)[];
  /** Cursor for the next page; null at the end of the list. */
  next: string | null;
}

export interface ListLifecycle {
  items: (Lifecycle)[];
  /** Cursor for the next page; null at the end of the list. */
  next: string | null;
}

export interface ListNode {
  items: (Node)[];
  /** Cursor for the next page; null at the end of the list. */
  next: string | null;
}

export interface ListOperation {
  items: (Operation)[];
  /** Cursor for the next page; null at the end of the list. */
  next: string | null;
}

export interface ListPosition {
  items: (Position)[];
  /** Cursor for the next page; null at the end of the list. */
  next: string | null;
}

export interface ListQuota {
  items: (Quota)[];
  /** Cursor for the next page; null at the end of the list. */
  next: string | null;
}

export interface ListRace {
  items: (Race)[];
  /** Cursor for the next page; null at the end of the list. */
  next: string | null;
}

export interface ListRate {
  items: (Rate)[];
  /** Cursor for the next page; null at the end of the list. */
  next: string | null;
}

export interface ListReaction {
  items: (Reaction)[];
  /** Cursor for the next page; null at the end of the list. */
  next: string | null;
}

export interface ListRun {
  items: (Run)[];
  /** Cursor for the next page; null at the end of the list. */
  next: string | null;
}

export interface ListRunStep {
  items: (RunStep)[];
  /** Cursor for the next page; null at the end of the list. */
  next: string | null;
}

export interface ListScopeInfo {
  items: (ScopeInfo)[];
  /** Cursor for the next page; null at the end of the list. */
  next: string | null;
}

export interface ListScopeKind {
  items: (ScopeKind)[];
  /** Cursor for the next page; null at the end of the list. */
  next: string | null;
}

export interface ListSecret {
  items: (Secret)[];
  /** Cursor for the next page; null at the end of the list. */
  next: string | null;
}

export interface ListStoredRequest {
  items: (StoredRequest)[];
  /** Cursor for the next page; null at the end of the list. */
  next: string | null;
}

export interface ListStream {
  items: (Stream)[];
  /** Cursor for the next page; null at the end of the list. */
  next: string | null;
}

export interface ListTimelineEntry {
  items: (TimelineEntry)[];
  /** Cursor for the next page; null at the end of the list. */
  next: string | null;
}

export interface ListWallet {
  items: (Wallet)[];
  /** Cursor for the next page; null at the end of the list. */
  next: string | null;
}

export interface ListWebhook {
  items: (Webhook)[];
  /** Cursor for the next page; null at the end of the list. */
  next: string | null;
}

export interface ListWorkspace {
  items: (Workspace)[];
  /** Cursor for the next page; null at the end of the list. */
  next: string | null;
}

export interface Live {
  /** The database's time when the workspace was read. Null if it has not been read yet. */
  at: string | null;
  /** The events of the topics, in the order of each subject. Empty if there were too many for one message: then folded has their subjects. */
  changes: (LiveChange)[];
  /** Continues after this message: the id of the server-sent event. */
  cursor: string;
  /** Subjects that have changed: read them again. */
  folded: (LiveSubject)[];
  /** Time between that read and this message. */
  lagMs: number;
  /** True if more has changed than the message names: read everything again. */
  reset: boolean;
  /** The topics whose state has changed since the last message. */
  state?: LiveState;
}

export interface LiveChange {
  actor: string;
  at: string | null;
  /** The data of the event; absent if it has more than 512 bytes or is encrypted. */
  data?: any;
  /** How many events are meant: 1 in a change. */
  events: number;
  kind: "entity" | "run" | "batch" | "bulk" | "scope" | "reaction" | "webhook" | "stream";
  name: string;
  /** Its id. For an entity, scope or reaction, also its lifecycle, kind or name: invoice/17. */
  subject: string;
  /** Version of its last event. */
  version: number;
}

export interface LiveInbox {
  counts: (InboxCount)[];
  /** The first 100 entries, oldest first. */
  items: (InboxItem)[];
}

export interface LiveRefusal {
  action: string;
  actor: string;
  at: string | null;
  code: string;
  id: string;
  /** The stream of the object, for example $entity/invoice/17. */
  stream: string;
  /** The version of the object that refused the write. */
  version: number;
}

export interface LiveState {
  /** The first 100 pending approvals. */
  approvals?: (Approval)[];
  /** Entities by status, for each lifecycle that is watched. */
  counts?: Record<string, Tally>;
  inbox?: LiveInbox;
  /** The first 100 nodes. */
  nodes?: (Node)[];
  overview?: Overview;
  /** The latest 100 refusals of writes, latest first. */
  races?: (LiveRefusal)[];
  /** The wallets that are watched; null for one that does not exist. */
  wallets?: Record<string, Wallet>;
}

export interface LiveSubject {
  /** How many events are meant: 1 in a change. */
  events: number;
  kind: "entity" | "run" | "batch" | "bulk" | "scope" | "reaction" | "webhook" | "stream";
  /** Its id. For an entity, scope or reaction, also its lifecycle, kind or name: invoice/17. */
  subject: string;
  /** Version of its last event. */
  version: number;
}

export interface Maintained {
  /** The node that ran it. */
  node: string;
}

export interface Match {
  /** The text is the whole id, key or name. */
  exact: boolean;
  /** The id, or the name of an object that has no id. */
  id: string;
  kind: "entity" | "run" | "batch" | "stream" | "wallet" | "scope" | "operation" | "request" | "handler" | "reaction" | "lifecycle" | "definition" | "webhook";
  /** Of an entity. */
  lifecycle?: string;
  /** What else names the object: the key of a run, the subject of an operation, the name of a webhook. */
  name?: string;
  /** Path of the object, beginning with /api/v1/. */
  route: string;
  /** Of a scope. */
  scopeKind?: string;
  /** The status or state, if it has one. */
  status?: string;
}

export interface Matches {
  matches: (Match)[];
  /** The kinds of which there are more matches: search with more text. */
  more: (string)[];
}

export interface NewBatch {
  /** How many times a failing item is attempted; default 3. */
  attempts?: number;
  /** The handler that processes the items. */
  handler: string;
  /** Generated if omitted. */
  id?: string;
  items?: (NewItem)[];
  /** Number of worker crashes after which an item fails; default 5. */
  maxDeaths?: number;
  /** Leave the batch open, so that items can be added until it is sealed. */
  open?: boolean;
  /** Maximum number of items that run at the same time; default 1. */
  parallel?: number;
  /** How long the batch keeps its items after it has ended; default: the retention of the kind or the server. */
  retentionMs?: number;
  /** Timeout of one attempt; defaults to the handler's timeout or, if that is not set, to 15 minutes. */
  timeoutMs?: number;
  /** Whether the handler undoes items that were started and then failed or were cancelled. A handler of a program undoes them if it has an undo function. */
  undo?: boolean;
  /** The wallet that pays for the items. */
  wallet: string;
}

export interface NewBulk {
  action: "run.retry" | "run.cancel" | "run.pause" | "run.resume" | "reaction.unblock" | "reaction.skip" | "operation.release" | "operation.resolve" | "operation.withdraw";
  /** Return what would be acted on, and write nothing. */
  dryRun?: boolean;
  /** Selects up to 10000 objects. Objects that do not permit the action are not selected. */
  filter?: BulkFilter;
  /** For operation.resolve: whether the effects of unknown outcome happened, for all operations. */
  happened?: boolean;
  /** Up to 1000 ids: of runs or operations, or reaction/stream for positions. */
  ids?: (string)[];
  /** For operation.resolve: the outcome with which all operations end. Without it, they continue. */
  outcome?: "success" | "failure" | "invalid";
  /** For operation.release and operation.withdraw: recorded in the audit. */
  reason?: string;
}

export interface NewClaim {
  expectedVersion?: number;
  input?: any;
  /** How long the lease lasts; defaults to the lifecycle's stuck_after. */
  leaseMs?: number;
  requester: string;
  stepKey: string;
}

export interface NewEntity {
  /** A JSON object. */
  data?: any;
  /** Generated if omitted. */
  id?: string;
  /** Defaults to the config's initial status. */
  status?: string;
}

export interface NewEvent {
  /** Defaults to the API key. */
  actor?: string;
  causation?: string;
  correlation?: string;
  data?: any;
  name: string;
}

export interface NewItem {
  /** Cost in points. Set it to 0 for an item that costs nothing. */
  cost: number;
  input?: any;
  /** Unique within the batch. */
  key: string;
}

export interface NewKey {
  /** Networks from which the key may be used, such as 10.1.0.0/16; empty means all. */
  from?: (string)[];
  /** Handlers whose tasks the key may claim and end; empty means all handlers. A key with handlers cannot claim entities or streams directly. */
  handlers?: (string)[];
  /** Lifecycles whose entities, claims and operations the key may use, and nothing else; empty means no such restriction. */
  lifecycles?: (string)[];
  /** How long the key is valid; 0 means that it does not expire. */
  lifetimeMs?: number;
  name?: string;
  /** Requests per second; 0 means the server's default. */
  rate?: number;
  /** Requesters that the key may act for; * for all. Without requesters, the key cannot fire steps. */
  requesters?: (string)[];
  role: "read" | "operate" | "worker" | "admin";
  /** Groups of routes that the key may use: their tags in this document. Empty means all groups. */
  routeGroups?: (string)[];
}

export interface NewWebhook {
  /** Event names; omit them or use * for all. */
  events?: (string)[];
  /** Headers of each message. A value may contain ${secret:NAME}, which is replaced when the message is sent. */
  headers?: Record<string, string>;
  name?: string;
  /** whsec_ followed by 24 to 64 bytes in base64, or secret:NAME for a named secret; generated if omitted. */
  secret?: string;
  /** Where events come from: user streams (event) or histories (history). */
  source?: "event" | "history";
  /** A regular expression (RE2) that stream names must match; omit it for all streams. */
  streams?: string;
  url: string;
}

export interface NewWorkspace {
  name: string;
}

export interface Node {
  /** The node has not reported for 30 seconds. */
  gone: boolean;
  name: string;
  pool: NodePool;
  /** Streams that the node has leased for reactions, and that wait until it has free capacity. */
  queued: number;
  /** When the node reported last. A node reports every 10 seconds. */
  seenAt: string | null;
  /** The work that the node, or a worker through it, polls for. */
  serves: (NodeServes)[];
  /** The oldest snapshot that keeps PostgreSQL from removing old rows; null if there is none. */
  snapshot: Snapshot;
  /** The janitor no longer completes its sweeps. */
  stalled: boolean;
  startedAt: string | null;
  /** The last run of each sweep of the janitor. */
  sweeps: (NodeSweep)[];
  version: string;
  /** Callers that wait for a wake-up. */
  waiting: number;
}

export interface NodePool {
  busy: number;
  size: number;
}

export interface NodeServes {
  /** reaction, operation, step, batch, or a kind of maintenance. */
  kind: string;
  /** Of the reaction, lifecycle or handler. */
  name: string;
  /** A worker elsewhere asked this node for it within the last minute. */
  remote: boolean;
}

export interface NodeSweep {
  at: string | null;
  error: string;
  name: string;
}

export interface Operation {
  contradictions?: (Contradiction)[];
  effects: (Effect)[];
  /** The event that ended the operation, while it is retained. Only in the response for one operation. */
  ended?: Event;
  epoch: number;
  error?: string;
  handler: string;
  id: string;
  kind: string;
  /** Number of consecutive hand-outs to workers that never responded. Set only with state=lost. */
  lostHandOuts?: number;
  since: string | null;
  state: "held" | "due" | "uncertain" | "ended";
  subject: string;
}

export interface Overview {
  /** Pending approvals. */
  approvals: number;
  blockedStreams: number;
  endedBatches: Tally;
  endedRuns: Tally;
  /** Entities, by lifecycle. */
  entities: Tally;
  liveBatches: Record<string, number>;
  /** Runs that have not ended, and failed ones, by status. */
  liveRuns: Record<string, number>;
  /** Operations that have not ended, by state. */
  operations: Record<string, number>;
  /** Scopes, by kind. */
  scopes: Tally;
  /** Streams, by state. */
  streams: Tally;
}

export interface Position {
  blocked: boolean;
  deaths: number;
  /** Last version that is known to concern the reaction; at most the watermark if nothing is to be handled. */
  due: number;
  error: string;
  /** Version of the event that failed; null if none has. */
  failing: number | null;
  /** Last version of the stream. */
  head: number;
  leasedBy: string;
  leasedUntil: string | null;
  /** Number of consecutive hand-outs to workers that never responded. */
  lostHandOuts: number;
  notBefore: string | null;
  reaction: string;
  /** true if a reset is pending until the lease ends. */
  resetRequested: boolean;
  retry: number;
  stream: string;
  /** Last version that the reaction has handled or skipped; -1 if there is none. */
  watermark: number;
}

export interface Problem {
  code: string;
  detail: string;
  /** JSON pointer (RFC 6901) to the member that the error is about. */
  pointer?: string;
  requestId: string;
  status: number;
  title: string;
  type: string;
  violations?: (Violation)[];
}

export interface PushScope {
  field: string;
  /** Any JSON value, including null. */
  value: any;
}

export interface PutHandler {
  /** Headers of each call. A value may contain ${secret:NAME}, which is replaced when the call is made. */
  headers?: Record<string, string>;
  kind: "http" | "worker";
  onUnknown?: "hold" | "retry" | "probe";
  /** Declared safety, which determines whether the handler may run again. Omit it to declare no safety. */
  safety?: "idempotent" | "transactional" | "journaled" | "opaque";
  /** Signing secret (whsec_…), or secret:NAME for a named secret. If empty, a secret is generated for a new http handler. */
  secret?: string;
  timeoutMs?: number;
  url?: string;
}

export interface PutLifecycle {
  name: string;
  /** 1 for the first config, higher after each change; a change that removes statuses raises it by more than 1. */
  revision: number;
  warnings: (Violation)[];
}

export interface PutReaction {
  backoff?: Backoff;
  blockOnError?: boolean;
  /** Event names; * for all. */
  events: (string)[];
  handler?: string;
  leaseMs?: number;
  maxDeaths?: number;
  maxRetries?: number;
  /** The head start in whole seconds, from -1000 to 1000. */
  priority?: number;
  /** Where events come from: user streams (event) or histories (history). */
  source?: "event" | "history";
  start?: "beginning" | "now";
  /** A regular expression (RE2) that stream names must match; omit it for all streams. */
  streams?: string;
}

export interface PutSecret {
  /** The value is stored only if the secret is at this version; 0 if it must not exist. */
  expectedVersion?: number;
  /** How long messages are also signed with the previous value; at most 30 days. Headers always have the new value. */
  overlapMs?: number;
  /** 8 to 4096 printable ASCII characters, without line breaks. No request returns it. */
  value: string;
}

export interface PutWallet {
  /** Whether the balance may be negative. */
  allowNegative?: boolean;
}

export interface Quota {
  /** Null if there is none. */
  limit: number | null;
  /** requests (per second), connections (event streams and waiting requests), work (open operations, runs and items), storage (bytes) or definitions (definitions, lifecycles, reactions, handlers, webhooks, secrets and API keys). */
  name: string;
  /** Each node has its own count. */
  perNode: boolean;
  /** Requests that the node has refused because of the quota since it started. */
  refused: number;
  /** Null if it is not counted: of requests, and of storage without a limit. */
  used: number | null;
}

export interface Race {
  /** The operation that won; empty if the winner is an event without an operation. */
  operation: string;
  /** Latest first. */
  refusals: (Refusal)[];
  /** The number of refusals, including those that the listed ones stand for. */
  refused: number;
  /** The stream of the object, for example $entity/invoice/17. */
  stream: string;
  /** The event that won; absent if it is no longer retained. */
  winner?: Winner;
}

export interface Rate {
  /** Commands that write events when they are applied. */
  commands: number;
  /** Items of batches that succeeded. */
  items: number;
  /** Age of the oldest work, in all workspaces, that is due and has no holder. A node reads it once a minute; null if it has not read it yet. */
  lagMs: number | null;
  /** 95 % of the HTTP requests took at most this long, without the time for which they waited for work; rounded up, by up to a quarter. It is that of the slowest 10 seconds of the minute; null if there were no requests. Responses that are streams of server-sent events are not counted. */
  latencyMs: number | null;
  minute: string | null;
  node: string;
  /** Deliveries to reactions that ended. */
  reactions: number;
  /** Of these commands, those that were refused. */
  refusals: number;
  /** HTTP requests. */
  requests: number;
  /** Runs that ended. */
  runs: number;
  /** Steps of runs that ended. */
  steps: number;
}

export interface Reaction {
  backoff: Backoff;
  blockOnError: boolean;
  createdAt: string | null;
  events: (string)[];
  handler: string;
  leaseMs: number;
  maxDeaths: number;
  maxRetries: number;
  name: string;
  /** The head start in whole seconds, from -1000 to 1000. */
  priority: number;
  /** true if a Go program serves the reaction, so that its streams cannot be claimed manually. */
  program?: boolean;
  source: "event" | "history";
  start: string;
  streams: string;
  updatedAt: string | null;
}

export interface Refusal {
  /** The step that was fired, or the command: append, put, cancel, start, decide. For a holder that had lost its lease, what it tried: settle, renew. */
  action: string;
  /** The caller: an API key, or the actor that a program names; empty if it names none. */
  actor: string;
  at: string | null;
  code: string;
  detail: Record<string, any>;
  /** The epoch of a holder that had lost its lease; otherwise 0. */
  epoch: number;
  id: string;
  /** The node that refused the write. */
  node: string;
  /** The operation that was in progress. For a holder that had lost its lease, its own operation. */
  operation: string;
  /** The id of the HTTP request; empty if there was none. */
  requestId: string;
  requester: string;
  /** The number of refusals that this one stands for. It is more than 1 only if a workspace has more than 100 refusals per second on a node. */
  standsFor: number;
  /** The stream of the object, for example $entity/invoice/17. */
  stream: string;
  /** The object's version when it refused the write. The refusal comes after that event and before the next. */
  version: number;
}

export interface Release {
  reason?: string;
}

export interface ReleaseOperation {
  /** The epoch of the lease to end. If the lease has another one, nothing is changed, so a repeated request cannot end the lease of the next holder. */
  epoch?: number;
  /** Recorded in the audit and, for an operation of an entity, as its error. */
  reason?: string;
}

export interface Renew {
  epoch?: number;
  leaseMs?: number;
}

export interface RenewLease {
  epoch: number;
  leaseMs?: number;
  stream: string;
  /** Lease token, from the claim. */
  token: string;
}

export interface Renewed {
  cancelRequested: boolean;
  until: string | null;
}

export interface Repair {
  filter?: RepairFilter;
  streams?: (string)[];
}

export interface RepairFilter {
  blocked?: boolean;
  source?: "event" | "history";
  /** A regular expression (RE2) that stream names must match. */
  stream?: string;
}

export interface Repaired {
  held: (string)[];
  /** Streams that are reset when their current lease ends. Until then, renew returns cancelRequested and no longer extends the lease. */
  pending: (string)[];
  streams: (string)[];
}

export interface Resolve {
  effects?: (KnownEffect)[];
  /** Outcome that ends the operation; omit it to resume the operation. */
  outcome?: "success" | "failure" | "invalid";
}

export interface Resolved {
  operation: Operation | null;
}

export interface RotateKey {
  /** How long the old key stays valid. */
  overlapMs?: number;
}

export interface RotateWebhook {
  /** How long messages are also signed with the old secret; at most 30 days. */
  overlapMs?: number;
  /** As when the webhook was created; generated if omitted. */
  secret?: string;
}

export interface Run {
  cancelRequested: boolean;
  createdAt: string | null;
  /** Current step or, for a failed or cancelled run, the last step; null for a completed run. */
  currentStepName: string | null;
  definitionId: string;
  error: string | null;
  finishedAt: string | null;
  id: string;
  idempotencyKey: string | null;
  input: any;
  output: any;
  startedAt: string | null;
  state: any;
  status: "PENDING" | "RUNNING" | "WAITING" | "PAUSED" | "COMPLETED" | "FAILED" | "CANCELLED";
  /** The last change of the run. */
  updatedAt: string | null;
  /** Incremented by every change of the run. */
  version: number;
  workspaceId: string;
}

export interface RunStep {
  attempts: number;
  /** Number of attempts whose worker crashed: the lease expired without a report. */
  deaths: number;
  /** When the step is next due, if it is not leased. */
  dueAt: string | null;
  epoch: number;
  error: string | null;
  /** Number of attempts that were reported as failed. */
  failures: number;
  finishedAt: string | null;
  handler?: string;
  holder: string | null;
  input: any;
  /** Number of consecutive hand-outs to workers that never responded. */
  lostHandOuts: number;
  name: string;
  output: any;
  startedAt: string | null;
  status: "PENDING" | "RUNNING" | "WAITING" | "COMPLETED" | "FAILED" | "SKIPPED" | "CANCELLED";
  type: string;
  /** Whether the step waits for manual resolution (see operations). */
  uncertain: boolean;
  /** End of the lease. */
  until: string | null;
  /** Visit number of this step, starting at 1. */
  visit: number;
}

export interface Scope {
  id: string;
  kind: string;
  /** A JSON object. */
  state: any;
  /** Incremented by every change and never reused. The ETag is this number in quotes. */
  version: number;
}

export interface ScopeInfo {
  createdAt: string | null;
  /** null if the scope does not expire. */
  expiresAt: string | null;
  id: string;
  kind: string;
  updatedAt: string | null;
  version: number;
}

export interface ScopeKind {
  kind: string;
}

export interface Secret {
  createdAt: string | null;
  createdBy: string;
  name: string;
  /** End of the period in which messages are also signed with the previous value; null if there is none. */
  overlapUntil: string | null;
  updatedAt: string | null;
  updatedBy: string;
  /** 1 for the first value. */
  version: number;
}

export interface Session {
  /** How histories name the caller. */
  actor: string;
  /** When the session ends or, for a caller without one, when its API key or token expires; null if it does not. */
  expiresAt: string | null;
  /** The caller's API key; null for a token, and on a server without API keys. */
  key: SessionKey | null;
  /** Whether the server requires API keys. */
  login: boolean;
  /** The time of the database. */
  now: string | null;
  /** Requesters that the caller may act for; * stands for all. */
  requesters: (string)[];
  role: string;
  /** The version of the server; empty if it has none. */
  version: string;
  workspace: string;
}

export interface SessionKey {
  id: string;
  name: string;
}

export interface Settle {
  /** A merge patch (RFC 7396) for the entity's data. */
  data?: any;
  /** Events to append to user streams in the same transaction. */
  events?: (SettleEvent)[];
  message?: string;
  outcome: "success" | "failure" | "invalid";
}

export interface SettleEvent {
  data?: any;
  name: string;
  stream?: string;
}

export interface Settled {
  entity: Entity;
}

export interface Signal {
  /** Id chosen by the sender. Sending a signal again with the same id has no effect. Generated if omitted. */
  id?: string;
  payload?: any;
  type: string;
}

export interface Signalled {
  /** false if this signal was already sent. */
  fresh: boolean;
  id: string;
}

export interface Snapshot {
  /** The connection that holds the transaction open: its process id, its application or role, and its state. */
  by: string;
  /** When the transaction began. */
  since: string | null;
}

export interface SnoozeLease {
  /** Delay until the stream is due again, in milliseconds: 1 to 2592000000 (30 days). */
  delayMs: number;
  epoch: number;
  stream: string;
  /** Token of the lease. */
  token: string;
}

export interface SnoozeTask {
  /** Delay until the task is due again, in milliseconds: 1 to 2592000000 (30 days). */
  delayMs: number;
  epoch: number;
}

export interface SnoozedLease {
  notBefore: string | null;
}

export interface StartRun {
  /** name@version */
  definitionId: string;
  /** 1 to 255 characters. Every start with the same key returns the same run. */
  idempotencyKey?: string;
  /** A JSON object; default {}. */
  input?: any;
}

export interface StartedBulk {
  bulk?: Bulk;
  preview?: BulkPreview;
}

export interface StartedRun {
  created: boolean;
  run: Run;
}

export interface StoredRequest {
  /** When the request was first received. */
  at: string | null;
  /** The route and a hash of the idempotency key. The key itself is not stored. */
  id: string;
  operation?: string;
  response?: any;
  /** The operationId of the route in the OpenAPI document, for example startRun. */
  route: string;
  /** operation means that the response is the outcome of the operation. */
  state: "inFlight" | "answered" | "operation";
  /** The HTTP status of the response; 0 if there is none yet, or if it is unknown. */
  status: number;
  subject?: string;
  /** The response is not shown, because it proves that its caller holds a lease. */
  withheld?: boolean;
}

export interface StoredRequests {
  requests: (StoredRequest)[];
}

export interface Stream {
  /** The number of stored events. */
  events: number;
  /** Time of the first stored event. */
  firstAt: string | null;
  firstVersion: number;
  /** Time of the last event. */
  lastAt: string | null;
  /** Name of the last event. */
  lastName: string;
  lastVersion: number;
  /** How a closed stream was closed. */
  mode?: "archive" | "tombstone";
  name: string;
  state: "open" | "closing" | "closed";
}

export interface StreamStatistics {
  /** How many of the newest events were counted, at most 10000. */
  counted: number;
  /** The number of stored events. */
  events: number;
  /** Time of the first stored event. */
  firstAt: string | null;
  firstVersion: number;
  /** Time of the last event. */
  lastAt: string | null;
  /** Name of the last event. */
  lastName: string;
  lastVersion: number;
  /** How a closed stream was closed. */
  mode?: "archive" | "tombstone";
  name: string;
  /** The number of counted events by name. */
  names: Record<string, number>;
  state: "open" | "closing" | "closed";
}

export interface Tally {
  /** True if there are more than 5,000; only the first 5,001 are counted. */
  capped: boolean;
  counts: Record<string, number>;
}

export interface Task {
  attempt: number;
  context: TaskContext;
  epoch: number;
  handler: string;
  id: string;
  /** The operation id, which is the same for every attempt and never reused. */
  idempotencyKey: string;
  input: any;
  kind: "action" | "validation" | "afterEffect" | "runStep" | "reaction" | "batchItem" | "undoItem" | "probe";
  until: string | null;
}

export interface TaskContext {
  /** Prefix for the item's artifacts, which are deleted if the item fails or is cancelled. */
  artifactPrefix?: string;
  batch?: string;
  entity?: Entity;
  event?: Event;
  /** Input of the run; the step's input is in the task. */
  input?: any;
  /** Key of the item in the batch. */
  item?: string;
  /** For an undo: failed or cancelled. */
  itemStatus?: string;
  /** For an undo: the output of the item, if it has one. */
  output?: any;
  reaction?: string;
  requester?: string;
  run?: string;
  /** State of the run. */
  state?: any;
  /** Step of the run. */
  step?: string;
  stepKey?: string;
  /** Visit number of this step, starting at 1. */
  visit?: number;
}

export interface Tasks {
  tasks: (Task)[];
}

export interface TimelineEffect {
  begunAt: string | null;
  /** The epoch of the attempt that began the effect last. */
  epoch: number;
  key: string;
  name: string;
  operation: string;
  ordinal: number;
  result?: any;
  state: "begun" | "done" | "notDone";
}

export interface TimelineEntry {
  /** A request with an idempotency key. The response to it is the outcome of the operation that the next entry, an event, ended. */
  answer?: StoredRequest;
  effect?: TimelineEffect;
  event?: Event;
  refusal?: Refusal;
}

export interface Token {
  epoch: number;
  token: string;
  until: string | null;
}

export interface TruncateStream {
  /** The first version to keep; at most the last version. */
  before: number;
  /** The state computed from all events below before, from which aggregates start. Any JSON value. */
  snapshot?: any;
}

export interface Violation {
  line?: number;
  message: string;
  path: string;
  rule: string;
}

export interface Wallet {
  allowNegative: boolean;
  balance: number;
  id: string;
}

export interface Webhook {
  createdAt: string | null;
  createdBy: string;
  events: (string)[];
  /** With the references, not the values of secrets. */
  headers?: Record<string, string>;
  id: string;
  name: string;
  /** End of the period in which messages are also signed with the previous secret; null if there is none. */
  overlapUntil: string | null;
  /** Name of the webhook's reaction; reactions/{reaction}/streams lists its positions. */
  reaction: string;
  rotatedAt: string | null;
  /** The named secret that signs messages, as secret:NAME. */
  signedWith?: string;
  source: string;
  streams: string;
  url: string;
}

export interface Winner {
  actor: string;
  at: string | null;
  name: string;
  version: number;
}

export interface Withdraw {
  reason?: string;
}

export interface Workspace {
  createdAt: string | null;
  name: string;
}

/** The roles that may use a route that changes something; admin may use all. */
export const roles: Record<string, readonly string[]> = {
  "DELETE /handlers/{name}": ["admin"],
  "DELETE /keys/{id}": ["admin"],
  "DELETE /reactions/{name}": ["admin"],
  "DELETE /scopes/{kind}/{id}": ["admin", "operate"],
  "DELETE /scopes/{kind}/{id}/records/{field}/{key}": ["admin", "operate"],
  "DELETE /secrets/{name}": ["admin"],
  "DELETE /session": ["admin", "read", "operate", "worker"],
  "DELETE /webhooks/{id}": ["admin"],
  "PATCH /scopes/{kind}/{id}": ["admin", "operate"],
  "POST /approvals/{id}/decide": ["admin", "operate"],
  "POST /batches": ["admin", "operate"],
  "POST /batches/{id}/cancel": ["admin", "operate"],
  "POST /batches/{id}/finalize": ["admin", "operate"],
  "POST /batches/{id}/items": ["admin", "operate"],
  "POST /batches/{id}/seal": ["admin", "operate"],
  "POST /bulk": ["admin", "operate"],
  "POST /bulk/{id}/cancel": ["admin", "operate"],
  "POST /claims/{token}/effects": ["admin", "worker", "operate"],
  "POST /claims/{token}/release": ["admin", "worker", "operate"],
  "POST /claims/{token}/renew": ["admin", "worker", "operate"],
  "POST /claims/{token}/settle": ["admin", "worker", "operate"],
  "POST /keys": ["admin"],
  "POST /keys/{id}/rotate": ["admin"],
  "POST /lifecycles/{name}/entities": ["admin", "operate"],
  "POST /lifecycles/{name}/entities/{id}/claims": ["admin", "worker", "operate"],
  "POST /lifecycles/{name}/entities/{id}/steps/{stepKey}": ["admin", "operate"],
  "POST /maintenance": ["admin", "operate"],
  "POST /operations/{id}/acknowledge": ["admin", "operate"],
  "POST /operations/{id}/release": ["admin", "operate"],
  "POST /operations/{id}/resolve": ["admin", "operate"],
  "POST /operations/{id}/withdraw": ["admin", "operate"],
  "POST /reactions/{name}/ack": ["admin", "worker", "operate"],
  "POST /reactions/{name}/claim": ["admin", "worker", "operate"],
  "POST /reactions/{name}/fail": ["admin", "worker", "operate"],
  "POST /reactions/{name}/renew": ["admin", "worker", "operate"],
  "POST /reactions/{name}/reset": ["admin", "operate"],
  "POST /reactions/{name}/skip": ["admin", "operate"],
  "POST /reactions/{name}/snooze": ["admin", "worker", "operate"],
  "POST /reactions/{name}/unblock": ["admin", "operate"],
  "POST /scopes/{kind}/{id}/inc": ["admin", "operate"],
  "POST /scopes/{kind}/{id}/push": ["admin", "operate"],
  "POST /session": ["admin", "read", "operate", "worker"],
  "POST /streams/{stream}/close": ["admin", "operate"],
  "POST /streams/{stream}/events": ["admin", "operate"],
  "POST /streams/{stream}/truncate": ["admin", "operate"],
  "POST /tasks/claim": ["admin", "worker", "operate"],
  "POST /tasks/{id}/complete": ["admin", "worker", "operate"],
  "POST /tasks/{id}/effects": ["admin", "worker", "operate"],
  "POST /tasks/{id}/fail": ["admin", "worker", "operate"],
  "POST /tasks/{id}/renew": ["admin", "worker", "operate"],
  "POST /tasks/{id}/snooze": ["admin", "worker", "operate"],
  "POST /wallets/{id}/credit": ["admin", "operate"],
  "POST /webhooks": ["admin"],
  "POST /webhooks/{id}/rotate": ["admin"],
  "POST /workflow-definitions": ["admin"],
  "POST /workflow-runs": ["admin", "operate"],
  "POST /workflow-runs/{id}/cancel": ["admin", "operate"],
  "POST /workflow-runs/{id}/pause": ["admin", "operate"],
  "POST /workflow-runs/{id}/resume": ["admin", "operate"],
  "POST /workflow-runs/{id}/retry": ["admin", "operate"],
  "POST /workflow-runs/{id}/signals": ["admin", "operate"],
  "POST /workspaces": ["admin"],
  "PUT /handlers/{name}": ["admin"],
  "PUT /lifecycles/{name}": ["admin"],
  "PUT /reactions/{name}": ["admin"],
  "PUT /scopes/{kind}/{id}": ["admin", "operate"],
  "PUT /scopes/{kind}/{id}/records/{field}/{key}": ["admin", "operate"],
  "PUT /secrets/{name}": ["admin"],
  "PUT /wallets/{id}": ["admin", "operate"],
};
