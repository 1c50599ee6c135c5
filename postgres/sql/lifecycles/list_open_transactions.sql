-- Lists the transactions in flight or, of a given list, those that still are. A transaction
-- is identified by the lock on its virtual id, which it has from its start; a prepared one
-- by its transaction id.
-- :list a JSON list, or NULL
SELECT u.t
  FROM (SELECT 'v' || l.virtualxid AS t
          FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid
         WHERE l.locktype = 'virtualxid' AND l.pid <> pg_catalog.pg_backend_pid() AND l.granted
           AND (a.datname = pg_catalog.current_database() OR a.datname IS NULL) AND a.usesysid IS NOT NULL
        UNION ALL
        SELECT 'p' || p.transaction::text FROM pg_catalog.pg_prepared_xacts p WHERE p.database = pg_catalog.current_database()) AS u
 WHERE (:list IS NULL OR :list::jsonb ? u.t) AND :shard IS NOT NULL AND :workspace IS NOT NULL
