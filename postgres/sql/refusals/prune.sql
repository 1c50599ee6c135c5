-- Deletes refusals older than their retention.
WITH old AS MATERIALIZED (
    SELECT x.shard, x.workspace, x.place
      FROM (SELECT o.shard, o.workspace, o.ctid AS place
              FROM {schema}.refusal o
             WHERE o.shard = :shard AND (:workspace = '' OR o.workspace = :workspace) AND o.at < (SELECT {now} - :age::float8 * interval '1 ms')
             ORDER BY o.at
             LIMIT :limit) AS x
     WHERE x.shard + 0 = :shard -- tells the planner that there are few rows
)
DELETE FROM {schema}.refusal a
 USING old
 WHERE a.ctid = old.place AND a.shard = old.shard AND a.workspace = old.workspace
RETURNING 1
