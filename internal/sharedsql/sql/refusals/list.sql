-- Lists refused callers, the latest first.
SELECT a.id, a.step, a.requester, a.code, a.detail{text}, a.at
  FROM {schema}.attempt AS a
 WHERE a.shard = :shard AND a.workspace = :workspace AND a.lifecycle = :lifecycle AND a.entity = :entity
 ORDER BY a.id DESC
 LIMIT :limit
