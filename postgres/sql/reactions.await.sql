-- Notes which transactions are under way, once, after the reaction was
-- committed: each of those that begin later sees it. A transaction is known by
-- the lock on its own number, which it has from its first moment, before it looks
-- at anything; a prepared one by its name.
-- $1 shard, $2 workspace, $3 reaction
UPDATE {schema}.reaction r
   SET waits = (
       SELECT coalesce(jsonb_agg(u.t), '[]'::jsonb)
         FROM (SELECT 'v' || l.virtualxid AS t
                 FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid
                WHERE l.locktype = 'virtualxid' AND l.pid <> pg_backend_pid() AND l.granted
                  AND (a.datname = current_database() OR a.datname IS NULL)
               UNION ALL
               SELECT 'p' || p.transaction::text FROM pg_catalog.pg_prepared_xacts p WHERE p.database = current_database()) AS u)
 WHERE r.shard = $1::smallint AND r.workspace = $2::text AND r.name = $3::text AND r.state = 'waiting' AND r.waits IS NULL
RETURNING r.waits::text
