-- Lists refusals on a stream, the latest first.
SELECT r.id, r.stream, r.version, r.action, r.requester, r.actor, r.node, r.request, r.code, r.operation, r.epoch, r.stands_for, r.detail{text}, r.at
  FROM {schema}.refusal AS r
 WHERE r.shard = :shard AND r.workspace = :workspace AND r.stream = :stream AND (r.version, r.id) < (:version, :id)
 ORDER BY r.version DESC, r.id DESC
 LIMIT :limit
