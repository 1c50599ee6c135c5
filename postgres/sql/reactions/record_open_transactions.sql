-- Records the transactions in flight, once, after the reaction was committed: later
-- transactions see the reaction. A transaction is identified by the lock on its virtual id,
-- which it has from its start, before it reads anything; a prepared one by its transaction
-- id. Autovacuum processes, which have no user, are left out, because they call no verb. The row
-- is locked first: a concurrent change of the reaction has then ended, and the transactions are
-- read after that. The registry's revision is recorded with them, as the row itself has it, so
-- that the end of one registration does not end a later one.
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
                       AND (a.datname = pg_catalog.current_database() OR a.datname IS NULL) AND a.usesysid IS NOT NULL) AS u) AS waits
      FROM held
)
UPDATE {schema}.reaction r
   SET waits = seen.waits
  FROM seen
 WHERE r.shard = ANY (ARRAY[seen.shard]) AND r.workspace = seen.workspace AND r.name = seen.name AND r.state || '' <> 'live' AND r.waits IS NULL
RETURNING r.waits::text
