-- Forgets requests whose time is over, those that were over first, but none that is
-- held. What somebody has locked is skipped: it is being taken again, perhaps.
-- $1 shard, $2 workspace ('' for all), $3 limit
WITH old AS MATERIALIZED (
    SELECT x.shard, x.workspace, x.place
      FROM (SELECT o.shard, o.workspace, o.ctid AS place
              FROM {schema}.request o
             WHERE o.shard + 0 = $1::smallint AND ($2::text = '' OR o.workspace = $2::text)
               AND o.expires_at <= (SELECT {now}) AND (o.state <> 'held' OR o.until <= {now})
             ORDER BY o.expires_at
             LIMIT $3::bigint
               FOR UPDATE SKIP LOCKED) AS x
     WHERE x.shard + 0 = $1 -- few, for the planner
)
DELETE FROM {schema}.request r
 USING old
 WHERE r.ctid = old.place AND r.shard = old.shard AND r.workspace = old.workspace
   AND r.expires_at <= {now} AND (r.state <> 'held' OR r.until <= {now})
RETURNING 1
