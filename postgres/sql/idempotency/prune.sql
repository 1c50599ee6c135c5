-- Deletes expired requests, the oldest first, except leased ones. Skips locked rows, which
-- may be in the course of being taken again.
WITH old AS MATERIALIZED (
    SELECT x.shard, x.workspace, x.place
      FROM (SELECT o.shard, o.workspace, o.ctid AS place
              FROM {schema}.request o
             WHERE o.shard + 0 = :shard AND (:workspace = '' OR o.workspace = :workspace)
               AND o.expires_at <= (SELECT {now}) AND (o.state <> 'held' OR o.until <= {now})
             ORDER BY o.expires_at
             LIMIT :limit
               FOR UPDATE SKIP LOCKED) AS x
     WHERE x.shard + 0 = :shard -- tells the planner that there are few rows
)
DELETE FROM {schema}.request r
 USING old
 WHERE r.ctid = old.place AND r.shard = old.shard AND r.workspace = old.workspace
   AND r.expires_at <= {now} AND (r.state <> 'held' OR r.until <= {now})
RETURNING 1
