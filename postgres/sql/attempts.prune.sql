-- Forgets refusals that are long past.
-- $1 shard, $2 workspace ('' for all), $3 age in ms, $4 limit
WITH old AS MATERIALIZED (
    SELECT x.shard, x.workspace, x.place
      FROM (SELECT o.shard, o.workspace, o.ctid AS place
              FROM {schema}.attempt o
             WHERE o.shard = $1::smallint AND ($2::text = '' OR o.workspace = $2::text) AND o.at < (SELECT {now} - $3::bigint::float8 * interval '1 ms')
             ORDER BY o.at
             LIMIT $4::bigint) AS x
     WHERE x.shard + 0 = $1 -- few, for the planner
)
DELETE FROM {schema}.attempt a
 USING old
 WHERE a.ctid = old.place AND a.shard = old.shard AND a.workspace = old.workspace
RETURNING 1
