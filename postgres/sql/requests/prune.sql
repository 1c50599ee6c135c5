-- Forgets requests whose time is over, those that were over first, but none that is
-- held. What somebody has locked is skipped: it is being taken again, perhaps.
WITH old AS MATERIALIZED (
    SELECT x.shard, x.workspace, x.place
      FROM (SELECT o.shard, o.workspace, o.ctid AS place
              FROM {schema}.request o
             WHERE o.shard + 0 = :shard AND (:workspace = '' OR o.workspace = :workspace)
               AND o.expires_at <= (SELECT {now}) AND (o.state <> 'held' OR o.until <= {now})
             ORDER BY o.expires_at
             LIMIT :limit
               FOR UPDATE SKIP LOCKED) AS x
     WHERE x.shard + 0 = :shard -- few, for the planner
)
DELETE FROM {schema}.request r
 USING old
 WHERE r.ctid = old.place AND r.shard = old.shard AND r.workspace = old.workspace
   AND r.expires_at <= {now} AND (r.state <> 'held' OR r.until <= {now})
RETURNING 1
