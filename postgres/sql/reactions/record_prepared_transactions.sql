-- Makes a reaction wait for prepared transactions, after all recorded transactions have
-- ended: one of them may have been prepared meanwhile, and has lost its virtual id by
-- that.
WITH held AS MATERIALIZED (
    SELECT r.shard, r.workspace, r.name, r.waits -> 0 AS revision
      FROM {schema}.reaction r
     WHERE r.shard = :shard AND r.workspace = :workspace AND r.name = :reaction
       AND r.state <> 'live' AND r.waits = :awaited::jsonb
       FOR UPDATE
), seen AS MATERIALIZED (
    SELECT held.shard, held.workspace, held.name,
           (SELECT pg_catalog.jsonb_build_array('prepared', held.revision) || coalesce(pg_catalog.jsonb_agg('p' || p.transaction::text), '[]'::jsonb)
              FROM pg_catalog.pg_prepared_xacts p WHERE p.database = pg_catalog.current_database() AND held.name IS NOT NULL) AS waits
      FROM held
)
UPDATE {schema}.reaction r
   SET waits = seen.waits
  FROM seen
 WHERE r.shard = ANY (ARRAY[seen.shard]) AND r.workspace = seen.workspace AND r.name = seen.name AND r.state || '' <> 'live'
RETURNING r.waits::text
