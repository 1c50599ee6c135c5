-- Forgets tokens that are long past.
-- $1 shard, $2 workspace ('' for all), $3 limit
WITH old AS MATERIALIZED (
    SELECT x.shard, x.workspace, x.place
      FROM (SELECT o.shard, o.workspace, o.ctid AS place
              FROM {schema}.token o
             WHERE o.shard + 0 = $1::smallint AND ($2::text = '' OR o.workspace = $2::text) AND o.expires_at < (SELECT {now})
             ORDER BY o.expires_at
             LIMIT $3::bigint) AS x
     WHERE x.shard + 0 = $1 -- few, for the planner
)
DELETE FROM {schema}.token t
 USING old
 WHERE t.ctid = old.place AND t.shard = old.shard AND t.workspace = old.workspace
RETURNING 1
