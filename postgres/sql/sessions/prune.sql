-- Deletes expired sessions.
WITH old AS MATERIALIZED (
    SELECT x.shard, x.workspace, x.place
      FROM (SELECT o.shard, o.workspace, o.ctid AS place
              FROM {schema}.session o
             WHERE o.shard + 0 = :shard AND (:workspace = '' OR o.workspace = :workspace) AND o.expires_at < (SELECT {now})
             ORDER BY o.expires_at
             LIMIT :limit) AS x
     WHERE x.shard + 0 = :shard -- tells the planner that there are few rows
)
DELETE FROM {schema}.session s
 USING old
 WHERE s.ctid = old.place AND s.shard = old.shard AND s.workspace = old.workspace
RETURNING 1
