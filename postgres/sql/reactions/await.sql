-- Notes which transactions are under way, once, after the reaction was
-- committed: each of those that begin later sees it. A transaction is known by
-- the lock on its own number, which it has from its first moment, before it looks
-- at anything; a prepared one by its name. The row is locked first: whoever is
-- changing the reaction is then done, and what is under way is looked at after
-- that. The registry's revision goes with them, as the row itself has it, so that whoever
-- finishes a registration does not end a later one.
WITH held AS MATERIALIZED (
    SELECT r.shard, r.workspace, r.name, r.base
      FROM {schema}.reaction r
     WHERE r.shard = :shard AND r.workspace = :workspace AND r.name = :reaction AND r.state <> 'live' AND r.waits IS NULL
       FOR UPDATE
), seen AS MATERIALIZED (
    SELECT held.shard, held.workspace, held.name,
           (SELECT pg_catalog.jsonb_build_array('r' || (held.base >> 32)::text) || coalesce(pg_catalog.jsonb_agg(u.t), '[]'::jsonb)
              FROM (SELECT 'v' || l.virtualxid AS t
                      FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid
                     WHERE l.locktype = 'virtualxid' AND l.pid <> pg_catalog.pg_backend_pid() AND l.granted AND held.name IS NOT NULL
                       AND (a.datname = pg_catalog.current_database() OR a.datname IS NULL)) AS u) AS waits
      FROM held
)
UPDATE {schema}.reaction r
   SET waits = seen.waits
  FROM seen
 WHERE r.shard = ANY (ARRAY[seen.shard]) AND r.workspace = seen.workspace AND r.name = seen.name AND r.state || '' <> 'live' AND r.waits IS NULL
RETURNING r.waits::text
