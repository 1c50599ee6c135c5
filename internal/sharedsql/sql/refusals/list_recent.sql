-- Lists refusals of a workspace, the latest first, each with the event that it lost to, if that is still there.
SELECT r.id, r.stream, r.version, r.action, r.requester, r.actor, r.node, r.request, r.code, r.operation, r.epoch, r.stands_for, r.detail{text}, r.at,
       coalesce(h.name, e.name, ''), coalesce(h.data{text}, '{}'), coalesce(h.actor, e.actor, ''), coalesce(h.at, e.at, {no_time})
  FROM (SELECT x.*
          FROM {schema}.refusal AS x
         WHERE x.shard = :shard AND x.workspace = :workspace AND x.id < :id
         ORDER BY x.id DESC
         LIMIT :limit) AS r
  LEFT JOIN {schema}.history AS h ON h.shard = :shard AND h.workspace = :workspace AND h.stream = r.stream AND h.version = r.version
  LEFT JOIN {schema}.event AS e ON e.shard = :shard AND e.workspace = :workspace AND e.stream = r.stream AND e.version = r.version
 ORDER BY r.id DESC
