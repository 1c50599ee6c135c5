-- Counts the transactions that a reaction waits for and that are still in flight.
SELECT pg_catalog.count(*) FILTER (WHERE u.t IS NOT NULL), coalesce(pg_catalog.max(r.waits::text), '')
  FROM {schema}.reaction r
  LEFT JOIN LATERAL (
       SELECT w.t FROM pg_catalog.jsonb_array_elements_text(r.waits) AS w(t)
        WHERE w.t IN (SELECT 'v' || l.virtualxid FROM pg_catalog.pg_locks l WHERE l.locktype = 'virtualxid'
                      UNION ALL
                      SELECT 'p' || p.transaction::text FROM pg_catalog.pg_prepared_xacts p)) AS u ON true
 WHERE r.shard = :shard AND r.workspace = :workspace AND r.name = :reaction AND r.state <> 'live' AND r.waits IS NOT NULL
