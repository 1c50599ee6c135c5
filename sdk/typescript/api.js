// Generated from the route table by "go generate ./sdk". Do not edit.

/** The routes of the API. Client sends the requests. */
export class Api {
  listStreams(options) {
    return this.pages((page) => this.listStreamsPage({ ...options, ...page }));
  }

  listStreamsPage(options) {
    return this.send({ method: "GET", path: ["streams"], query: ["prefix", "limit", "cursor"], repeat: "read" }, options);
  }

  getStream(stream, options) {
    return this.send({ method: "GET", path: ["streams", stream], repeat: "read" }, options);
  }

  appendEvents(stream, body, options) {
    return this.send({ method: "POST", path: ["streams", stream, "events"], body, repeat: "key" }, options);
  }

  readStream(stream, options) {
    return this.pages((page) => this.readStreamPage(stream, { ...options, ...page }));
  }

  readStreamPage(stream, options) {
    return this.send({ method: "GET", path: ["streams", stream, "events"], query: ["from", "backward", "limit", "cursor"], repeat: "read" }, options);
  }

  closeStream(stream, body, options) {
    return this.send({ method: "POST", path: ["streams", stream, "close"], body, repeat: "key" }, options);
  }

  truncateStream(stream, body, options) {
    return this.send({ method: "POST", path: ["streams", stream, "truncate"], body, repeat: "key" }, options);
  }

  searchEvents(options) {
    return this.pages((page) => this.searchEventsPage({ ...options, ...page }));
  }

  searchEventsPage(options) {
    return this.send({ method: "GET", path: ["events", "search"], query: ["stream", "name", "correlation", "actor", "since", "until", "backward", "limit", "cursor"], repeat: "read" }, options);
  }

  readFeed(options) {
    return this.pages((page) => this.readFeedPage({ ...options, ...page }));
  }

  readFeedPage(options) {
    return this.send({ method: "GET", path: ["events"], query: ["limit", "cursor"], repeat: "read" }, options);
  }

  readActivity(options) {
    return this.pages((page) => this.readActivityPage({ ...options, ...page }));
  }

  readActivityPage(options) {
    return this.send({ method: "GET", path: ["feed"], query: ["limit", "cursor"], repeat: "read" }, options);
  }

  listReactions(options) {
    return this.pages((page) => this.listReactionsPage({ ...options, ...page }));
  }

  listReactionsPage(options) {
    return this.send({ method: "GET", path: ["reactions"], query: ["limit", "cursor"], repeat: "read" }, options);
  }

  putReaction(name, body, options) {
    return this.send({ method: "PUT", path: ["reactions", name], body, repeat: "key" }, options);
  }

  getReaction(name, options) {
    return this.send({ method: "GET", path: ["reactions", name], repeat: "read" }, options);
  }

  deleteReaction(name, options) {
    return this.send({ method: "DELETE", path: ["reactions", name], repeat: "key" }, options);
  }

  listPositions(reaction, options) {
    return this.pages((page) => this.listPositionsPage(reaction, { ...options, ...page }));
  }

  listPositionsPage(reaction, options) {
    return this.send({ method: "GET", path: ["reactions", reaction, "streams"], query: ["stream", "blocked", "limit", "cursor"], repeat: "read" }, options);
  }

  claimLeases(reaction, body, options) {
    return this.send({ method: "POST", path: ["reactions", reaction, "claim"], body, repeat: "key" }, options);
  }

  ackLeases(reaction, body, options) {
    return this.send({ method: "POST", path: ["reactions", reaction, "ack"], body, repeat: "key" }, options);
  }

  failLease(reaction, body, options) {
    return this.send({ method: "POST", path: ["reactions", reaction, "fail"], body, repeat: "key" }, options);
  }

  snoozeLease(reaction, body, options) {
    return this.send({ method: "POST", path: ["reactions", reaction, "snooze"], body, repeat: "key" }, options);
  }

  renewLease(reaction, body, options) {
    return this.send({ method: "POST", path: ["reactions", reaction, "renew"], body, repeat: "key" }, options);
  }

  unblockReactions(reaction, body, options) {
    return this.send({ method: "POST", path: ["reactions", reaction, "unblock"], body, repeat: "key" }, options);
  }

  resetReactions(reaction, body, options) {
    return this.send({ method: "POST", path: ["reactions", reaction, "reset"], body, repeat: "key" }, options);
  }

  skipReactions(reaction, body, options) {
    return this.send({ method: "POST", path: ["reactions", reaction, "skip"], body, repeat: "key" }, options);
  }

  listLifecycles(options) {
    return this.pages((page) => this.listLifecyclesPage({ ...options, ...page }));
  }

  listLifecyclesPage(options) {
    return this.send({ method: "GET", path: ["lifecycles"], query: ["limit", "cursor"], repeat: "read" }, options);
  }

  getLifecycle(name, options) {
    return this.send({ method: "GET", path: ["lifecycles", name], repeat: "read" }, options);
  }

  getLifecycleDiagram(lifecycle, options) {
    return this.send({ method: "GET", path: ["lifecycles", lifecycle, "diagram"], query: ["format"], repeat: "read" }, options);
  }

  createEntity(lifecycle, body, options) {
    return this.send({ method: "POST", path: ["lifecycles", lifecycle, "entities"], body, repeat: "key" }, options);
  }

  listEntities(lifecycle, options) {
    return this.pages((page) => this.listEntitiesPage(lifecycle, { ...options, ...page }));
  }

  listEntitiesPage(lifecycle, options) {
    return this.send({ method: "GET", path: ["lifecycles", lifecycle, "entities"], query: ["status", "since", "until", "updatedSince", "updatedUntil", "limit", "cursor"], repeat: "read" }, options);
  }

  getEntity(lifecycle, id, options) {
    return this.send({ method: "GET", path: ["lifecycles", lifecycle, "entities", id], query: ["at"], repeat: "read" }, options);
  }

  readEntityHistory(lifecycle, id, options) {
    return this.pages((page) => this.readEntityHistoryPage(lifecycle, id, { ...options, ...page }));
  }

  readEntityHistoryPage(lifecycle, id, options) {
    return this.send({ method: "GET", path: ["lifecycles", lifecycle, "entities", id, "history"], query: ["limit", "cursor"], repeat: "read" }, options);
  }

  listRefusals(lifecycle, id, options) {
    return this.pages((page) => this.listRefusalsPage(lifecycle, id, { ...options, ...page }));
  }

  listRefusalsPage(lifecycle, id, options) {
    return this.send({ method: "GET", path: ["lifecycles", lifecycle, "entities", id, "attempts"], query: ["limit", "cursor"], repeat: "read" }, options);
  }

  readEntityTimeline(lifecycle, id, options) {
    return this.pages((page) => this.readEntityTimelinePage(lifecycle, id, { ...options, ...page }));
  }

  readEntityTimelinePage(lifecycle, id, options) {
    return this.send({ method: "GET", path: ["lifecycles", lifecycle, "entities", id, "timeline"], query: ["limit", "cursor"], repeat: "read" }, options);
  }

  fireStep(lifecycle, id, step, body, options) {
    return this.send({ method: "POST", path: ["lifecycles", lifecycle, "entities", id, "steps", step], body, query: ["waitMs"], repeat: "key" }, options);
  }

  claimStep(lifecycle, id, body, options) {
    return this.send({ method: "POST", path: ["lifecycles", lifecycle, "entities", id, "claims"], body, repeat: "key" }, options);
  }

  listClaims(options) {
    return this.pages((page) => this.listClaimsPage({ ...options, ...page }));
  }

  listClaimsPage(options) {
    return this.send({ method: "GET", path: ["claims"], query: ["state", "limit", "cursor"], repeat: "read" }, options);
  }

  renewClaim(token, body, options) {
    return this.send({ method: "POST", path: ["claims", token, "renew"], body, repeat: "key" }, options);
  }

  settleClaim(token, body, options) {
    return this.send({ method: "POST", path: ["claims", token, "settle"], body, repeat: "key" }, options);
  }

  releaseClaim(token, body, options) {
    return this.send({ method: "POST", path: ["claims", token, "release"], body, repeat: "key" }, options);
  }

  journalEffect(token, body, options) {
    return this.send({ method: "POST", path: ["claims", token, "effects"], body, repeat: "key" }, options);
  }

  listOperations(options) {
    return this.pages((page) => this.listOperationsPage({ ...options, ...page }));
  }

  listOperationsPage(options) {
    return this.send({ method: "GET", path: ["operations"], query: ["state", "handler", "limit", "cursor"], repeat: "read" }, options);
  }

  resolveOperation(id, body, options) {
    return this.send({ method: "POST", path: ["operations", id, "resolve"], body, repeat: "key" }, options);
  }

  getOperation(id, options) {
    return this.send({ method: "GET", path: ["operations", id], repeat: "read" }, options);
  }

  releaseOperation(id, body, options) {
    return this.send({ method: "POST", path: ["operations", id, "release"], body, repeat: "key" }, options);
  }

  withdrawOperation(id, body, options) {
    return this.send({ method: "POST", path: ["operations", id, "withdraw"], body, repeat: "key" }, options);
  }

  acknowledgeContradictions(id, body, options) {
    return this.send({ method: "POST", path: ["operations", id, "acknowledge"], body, repeat: "key" }, options);
  }

  createKey(body, options) {
    return this.send({ method: "POST", path: ["keys"], body, repeat: "key" }, options);
  }

  listKeys(options) {
    return this.pages((page) => this.listKeysPage({ ...options, ...page }));
  }

  listKeysPage(options) {
    return this.send({ method: "GET", path: ["keys"], query: ["limit", "cursor"], repeat: "read" }, options);
  }

  getKey(id, options) {
    return this.send({ method: "GET", path: ["keys", id], repeat: "read" }, options);
  }

  rotateKey(id, body, options) {
    return this.send({ method: "POST", path: ["keys", id, "rotate"], body, repeat: "key" }, options);
  }

  revokeKey(id, options) {
    return this.send({ method: "DELETE", path: ["keys", id], repeat: "key" }, options);
  }

  createSession(options) {
    return this.send({ method: "POST", path: ["session"], repeat: "never" }, options);
  }

  getSession(options) {
    return this.send({ method: "GET", path: ["session"], repeat: "read" }, options);
  }

  deleteSession(options) {
    return this.send({ method: "DELETE", path: ["session"], repeat: "never" }, options);
  }

  createWebhook(body, options) {
    return this.send({ method: "POST", path: ["webhooks"], body, repeat: "key" }, options);
  }

  listWebhooks(options) {
    return this.pages((page) => this.listWebhooksPage({ ...options, ...page }));
  }

  listWebhooksPage(options) {
    return this.send({ method: "GET", path: ["webhooks"], query: ["limit", "cursor"], repeat: "read" }, options);
  }

  getWebhook(id, options) {
    return this.send({ method: "GET", path: ["webhooks", id], repeat: "read" }, options);
  }

  rotateWebhook(id, body, options) {
    return this.send({ method: "POST", path: ["webhooks", id, "rotate"], body, repeat: "key" }, options);
  }

  deleteWebhook(id, options) {
    return this.send({ method: "DELETE", path: ["webhooks", id], repeat: "key" }, options);
  }

  listHandlers(options) {
    return this.pages((page) => this.listHandlersPage({ ...options, ...page }));
  }

  listHandlersPage(options) {
    return this.send({ method: "GET", path: ["handlers"], query: ["limit", "cursor"], repeat: "read" }, options);
  }

  putHandler(name, body, options) {
    return this.send({ method: "PUT", path: ["handlers", name], body, repeat: "key" }, options);
  }

  getHandler(name, options) {
    return this.send({ method: "GET", path: ["handlers", name], repeat: "read" }, options);
  }

  deleteHandler(name, options) {
    return this.send({ method: "DELETE", path: ["handlers", name], repeat: "key" }, options);
  }

  putLifecycle(name, body, options) {
    return this.send({ method: "PUT", path: ["lifecycles", name], body, yaml: true, query: ["dryRun"], repeat: "key" }, options);
  }

  putSecret(name, body, options) {
    return this.send({ method: "PUT", path: ["secrets", name], body, repeat: "key" }, options);
  }

  listSecrets(options) {
    return this.pages((page) => this.listSecretsPage({ ...options, ...page }));
  }

  listSecretsPage(options) {
    return this.send({ method: "GET", path: ["secrets"], query: ["limit", "cursor"], repeat: "read" }, options);
  }

  getSecret(name, options) {
    return this.send({ method: "GET", path: ["secrets", name], repeat: "read" }, options);
  }

  deleteSecret(name, options) {
    return this.send({ method: "DELETE", path: ["secrets", name], repeat: "key" }, options);
  }

  claimTasks(body, options) {
    return this.send({ method: "POST", path: ["tasks", "claim"], body, repeat: "key" }, options);
  }

  completeTask(id, body, options) {
    return this.send({ method: "POST", path: ["tasks", id, "complete"], body, repeat: "task" }, options);
  }

  failTask(id, body, options) {
    return this.send({ method: "POST", path: ["tasks", id, "fail"], body, repeat: "task" }, options);
  }

  snoozeTask(id, body, options) {
    return this.send({ method: "POST", path: ["tasks", id, "snooze"], body, repeat: "task" }, options);
  }

  renewTask(id, body, options) {
    return this.send({ method: "POST", path: ["tasks", id, "renew"], body, repeat: "task" }, options);
  }

  journalTaskEffect(id, body, options) {
    return this.send({ method: "POST", path: ["tasks", id, "effects"], body, repeat: "task" }, options);
  }

  listWorkspaces(options) {
    return this.pages((page) => this.listWorkspacesPage({ ...options, ...page }));
  }

  listWorkspacesPage(options) {
    return this.send({ method: "GET", path: ["workspaces"], query: ["limit", "cursor"], repeat: "read" }, options);
  }

  createWorkspace(body, options) {
    return this.send({ method: "POST", path: ["workspaces"], body, repeat: "key" }, options);
  }

  listWallets(options) {
    return this.pages((page) => this.listWalletsPage({ ...options, ...page }));
  }

  listWalletsPage(options) {
    return this.send({ method: "GET", path: ["wallets"], query: ["limit", "cursor"], repeat: "read" }, options);
  }

  putWallet(id, body, options) {
    return this.send({ method: "PUT", path: ["wallets", id], body, repeat: "key" }, options);
  }

  getWallet(id, options) {
    return this.send({ method: "GET", path: ["wallets", id], repeat: "read" }, options);
  }

  creditWallet(id, body, options) {
    return this.send({ method: "POST", path: ["wallets", id, "credit"], body, repeat: "key" }, options);
  }

  readLedger(id, options) {
    return this.pages((page) => this.readLedgerPage(id, { ...options, ...page }));
  }

  readLedgerPage(id, options) {
    return this.send({ method: "GET", path: ["wallets", id, "ledger"], query: ["backward", "limit", "cursor"], repeat: "read" }, options);
  }

  auditWallet(id, options) {
    return this.send({ method: "GET", path: ["wallets", id, "audit"], repeat: "read" }, options);
  }

  listScopeKinds(options) {
    return this.pages((page) => this.listScopeKindsPage({ ...options, ...page }));
  }

  listScopeKindsPage(options) {
    return this.send({ method: "GET", path: ["scopes"], query: ["limit", "cursor"], repeat: "read" }, options);
  }

  listScopes(kind, options) {
    return this.pages((page) => this.listScopesPage(kind, { ...options, ...page }));
  }

  listScopesPage(kind, options) {
    return this.send({ method: "GET", path: ["scopes", kind], query: ["prefix", "limit", "cursor"], repeat: "read" }, options);
  }

  putScope(kind, id, body, options) {
    return this.send({ method: "PUT", path: ["scopes", kind, id], body, repeat: "key" }, options);
  }

  getScope(kind, id, options) {
    return this.send({ method: "GET", path: ["scopes", kind, id], query: ["at"], repeat: "read" }, options);
  }

  patchScope(kind, id, body, options) {
    return this.send({ method: "PATCH", path: ["scopes", kind, id], body, repeat: "key" }, options);
  }

  deleteScope(kind, id, options) {
    return this.send({ method: "DELETE", path: ["scopes", kind, id], repeat: "key" }, options);
  }

  incScope(kind, id, body, options) {
    return this.send({ method: "POST", path: ["scopes", kind, id, "inc"], body, repeat: "key" }, options);
  }

  pushScope(kind, id, body, options) {
    return this.send({ method: "POST", path: ["scopes", kind, id, "push"], body, repeat: "key" }, options);
  }

  setScopeRecord(kind, id, field, key, body, options) {
    return this.send({ method: "PUT", path: ["scopes", kind, id, "records", field, key], body, repeat: "key" }, options);
  }

  deleteScopeRecord(kind, id, field, key, options) {
    return this.send({ method: "DELETE", path: ["scopes", kind, id, "records", field, key], repeat: "key" }, options);
  }

  listBatches(options) {
    return this.pages((page) => this.listBatchesPage({ ...options, ...page }));
  }

  listBatchesPage(options) {
    return this.send({ method: "GET", path: ["batches"], query: ["limit", "cursor", "status", "handler", "wallet", "backward", "since", "until", "updatedSince", "updatedUntil"], repeat: "read" }, options);
  }

  createBatch(body, options) {
    return this.send({ method: "POST", path: ["batches"], body, repeat: "key" }, options);
  }

  getBatch(id, options) {
    return this.send({ method: "GET", path: ["batches", id], repeat: "read" }, options);
  }

  listItems(id, options) {
    return this.pages((page) => this.listItemsPage(id, { ...options, ...page }));
  }

  listItemsPage(id, options) {
    return this.send({ method: "GET", path: ["batches", id, "items"], query: ["limit", "cursor", "state"], repeat: "read" }, options);
  }

  addItems(id, body, options) {
    return this.send({ method: "POST", path: ["batches", id, "items"], body, repeat: "key" }, options);
  }

  sealBatch(id, options) {
    return this.send({ method: "POST", path: ["batches", id, "seal"], repeat: "key" }, options);
  }

  cancelBatch(id, options) {
    return this.send({ method: "POST", path: ["batches", id, "cancel"], repeat: "key" }, options);
  }

  acceptItems(id, body, options) {
    return this.send({ method: "POST", path: ["batches", id, "finalize"], body, repeat: "key" }, options);
  }

  readBatchHistory(id, options) {
    return this.pages((page) => this.readBatchHistoryPage(id, { ...options, ...page }));
  }

  readBatchHistoryPage(id, options) {
    return this.send({ method: "GET", path: ["batches", id, "events"], query: ["limit", "cursor"], repeat: "read" }, options);
  }

  putDefinition(body, options) {
    return this.send({ method: "POST", path: ["workflow-definitions"], body, yaml: true, query: ["dryRun"], repeat: "key" }, options);
  }

  listDefinitions(options) {
    return this.pages((page) => this.listDefinitionsPage({ ...options, ...page }));
  }

  listDefinitionsPage(options) {
    return this.send({ method: "GET", path: ["workflow-definitions"], query: ["limit", "cursor"], repeat: "read" }, options);
  }

  getDefinition(id, options) {
    return this.send({ method: "GET", path: ["workflow-definitions", id], repeat: "read" }, options);
  }

  getDefinitionDiagram(id, options) {
    return this.send({ method: "GET", path: ["workflow-definitions", id, "diagram"], query: ["format"], repeat: "read" }, options);
  }

  startRun(body, options) {
    return this.send({ method: "POST", path: ["workflow-runs"], body, repeat: "key" }, options);
  }

  listRuns(options) {
    return this.pages((page) => this.listRunsPage({ ...options, ...page }));
  }

  listRunsPage(options) {
    return this.send({ method: "GET", path: ["workflow-runs"], query: ["limit", "cursor", "status", "definitionId", "key", "step", "handler", "since", "until", "updatedSince", "updatedUntil"], repeat: "read" }, options);
  }

  getRun(id, options) {
    return this.send({ method: "GET", path: ["workflow-runs", id], repeat: "read" }, options);
  }

  listSteps(id, options) {
    return this.pages((page) => this.listStepsPage(id, { ...options, ...page }));
  }

  listStepsPage(id, options) {
    return this.send({ method: "GET", path: ["workflow-runs", id, "steps"], query: ["limit", "cursor"], repeat: "read" }, options);
  }

  readRunHistory(id, options) {
    return this.pages((page) => this.readRunHistoryPage(id, { ...options, ...page }));
  }

  readRunHistoryPage(id, options) {
    return this.send({ method: "GET", path: ["workflow-runs", id, "events"], query: ["limit", "cursor"], repeat: "read" }, options);
  }

  cancelRun(id, body, options) {
    return this.send({ method: "POST", path: ["workflow-runs", id, "cancel"], body, repeat: "key" }, options);
  }

  pauseRun(id, body, options) {
    return this.send({ method: "POST", path: ["workflow-runs", id, "pause"], body, repeat: "key" }, options);
  }

  resumeRun(id, body, options) {
    return this.send({ method: "POST", path: ["workflow-runs", id, "resume"], body, repeat: "key" }, options);
  }

  retryRun(id, body, options) {
    return this.send({ method: "POST", path: ["workflow-runs", id, "retry"], body, repeat: "key" }, options);
  }

  signalRun(id, body, options) {
    return this.send({ method: "POST", path: ["workflow-runs", id, "signals"], body, repeat: "key" }, options);
  }

  listApprovals(options) {
    return this.pages((page) => this.listApprovalsPage({ ...options, ...page }));
  }

  listApprovalsPage(options) {
    return this.send({ method: "GET", path: ["approvals"], query: ["limit", "cursor", "status", "runId"], repeat: "read" }, options);
  }

  getApproval(id, options) {
    return this.send({ method: "GET", path: ["approvals", id], repeat: "read" }, options);
  }

  decideApproval(id, body, options) {
    return this.send({ method: "POST", path: ["approvals", id, "decide"], body, repeat: "key" }, options);
  }

  readTimeline(options) {
    return this.pages((page) => this.readTimelinePage({ ...options, ...page }));
  }

  readTimelinePage(options) {
    return this.send({ method: "GET", path: ["timeline"], query: ["stream", "limit", "cursor"], repeat: "read" }, options);
  }

  listRaces(options) {
    return this.pages((page) => this.listRacesPage({ ...options, ...page }));
  }

  listRacesPage(options) {
    return this.send({ method: "GET", path: ["races"], query: ["limit", "cursor"], repeat: "read" }, options);
  }

  listInbox(options) {
    return this.pages((page) => this.listInboxPage({ ...options, ...page }));
  }

  listInboxPage(options) {
    return this.send({ method: "GET", path: ["inbox"], query: ["kind", "limit", "cursor"], repeat: "read" }, options);
  }

  countInbox(options) {
    return this.send({ method: "GET", path: ["inbox", "counts"], query: ["kind"], repeat: "read" }, options);
  }

  runMaintenance(options) {
    return this.send({ method: "POST", path: ["maintenance"], repeat: "key" }, options);
  }

  listAudit(options) {
    return this.pages((page) => this.listAuditPage({ ...options, ...page }));
  }

  listAuditPage(options) {
    return this.send({ method: "GET", path: ["audit"], query: ["actor", "action", "subject", "since", "until", "limit", "cursor"], repeat: "read" }, options);
  }

  listRequests(options) {
    return this.pages((page) => this.listRequestsPage({ ...options, ...page }));
  }

  listRequestsPage(options) {
    return this.send({ method: "GET", path: ["requests"], query: ["operation", "limit", "cursor"], repeat: "read" }, options);
  }

  getRequest(key, options) {
    return this.send({ method: "GET", path: ["requests", key], repeat: "read" }, options);
  }

  getOverview(options) {
    return this.send({ method: "GET", path: ["overview"], repeat: "read" }, options);
  }

  countEntities(lifecycle, options) {
    return this.send({ method: "GET", path: ["lifecycles", lifecycle, "counts"], repeat: "read" }, options);
  }

  listNodes(options) {
    return this.pages((page) => this.listNodesPage({ ...options, ...page }));
  }

  listNodesPage(options) {
    return this.send({ method: "GET", path: ["nodes"], query: ["limit", "cursor"], repeat: "read" }, options);
  }

  listRates(options) {
    return this.pages((page) => this.listRatesPage({ ...options, ...page }));
  }

  listRatesPage(options) {
    return this.send({ method: "GET", path: ["rates"], query: ["limit", "cursor", "minutes"], repeat: "read" }, options);
  }

  getLive(options) {
    return this.send({ method: "GET", path: ["live"], query: ["watch", "since"], repeat: "read" }, options);
  }

  startBulk(body, options) {
    return this.send({ method: "POST", path: ["bulk"], body, repeat: "key" }, options);
  }

  listBulks(options) {
    return this.pages((page) => this.listBulksPage({ ...options, ...page }));
  }

  listBulksPage(options) {
    return this.send({ method: "GET", path: ["bulk"], query: ["limit", "cursor"], repeat: "read" }, options);
  }

  getBulk(id, options) {
    return this.send({ method: "GET", path: ["bulk", id], repeat: "read" }, options);
  }

  listBulkMembers(id, options) {
    return this.pages((page) => this.listBulkMembersPage(id, { ...options, ...page }));
  }

  listBulkMembersPage(id, options) {
    return this.send({ method: "GET", path: ["bulk", id, "members"], query: ["limit", "cursor", "status"], repeat: "read" }, options);
  }

  cancelBulk(id, options) {
    return this.send({ method: "POST", path: ["bulk", id, "cancel"], repeat: "key" }, options);
  }

  search(options) {
    return this.send({ method: "GET", path: ["search"], query: ["q", "kind"], repeat: "read" }, options);
  }

  listQuotas(options) {
    return this.pages((page) => this.listQuotasPage({ ...options, ...page }));
  }

  listQuotasPage(options) {
    return this.send({ method: "GET", path: ["quotas"], query: ["limit", "cursor"], repeat: "read" }, options);
  }
}
