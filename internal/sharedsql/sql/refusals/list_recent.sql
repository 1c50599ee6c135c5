-- Lists refusals of a workspace, the latest first.
SELECT r.id, r.stream, r.version, r.action, r.requester, r.actor, r.node, r.request, r.code, r.operation, r.epoch, r.stands_for, r.detail{text}, r.at
  FROM {schema}.refusal AS r
 WHERE r.shard = :shard AND r.workspace = :workspace AND r.id < :id
 ORDER BY r.id DESC
 LIMIT :limit
