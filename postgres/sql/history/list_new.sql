-- Reads the events of a workspace's histories that an earlier read has not returned, in the order of ids, without void
-- events, commit proofs and API keys. Each row has the snapshot of this read, with the number of
-- transactions that have begun since the last one that has ended, and the database's time, and one row is
-- returned even if there is nothing new.
--
-- A row was returned if it is visible in the snapshot :far, or if its id is greater than :from and it is visible in
-- :near. Rows that are not visible in :upto are left for the next read; 0 means no such limit. A snapshot is the first
-- transaction that had not begun, and a JSON list of those that were open. The transaction of a row, xmin, has 32 bits.
-- Transactions are compared by age, which costs little: most rows that are read are not new. The whole number of the
-- transaction is computed from the snapshot of this read, which is younger than all rows.
-- :after and :from are ids as text; :far_read and :near_read are for SQLite
SELECT q.snapshot::text || ':' || q.begun, {now}, coalesce(p.stamp, 0), coalesce(pg_catalog.replace(p.id::text, '-', ''), ''), coalesce(p.n, 0), coalesce(p.stream, ''), coalesce(p.version, -1),
       coalesce(p.name, ''), coalesce(p.data, ''), coalesce(p.correlation, ''), coalesce(p.causation, ''), coalesce(p.actor, ''), coalesce(p.at, 'epoch')
  FROM (SELECT s AS snapshot, pg_catalog.pg_snapshot_xmax(s)::text::bigint AS next,
               pg_catalog.age((pg_catalog.pg_snapshot_xmax(s)::text::bigint & 4294967295)::text::xid) AS begun
          FROM pg_catalog.pg_current_snapshot() AS s
         WHERE :far_read IS NOT NULL AND :near_read IS NOT NULL) AS q
  LEFT JOIN LATERAL (
       SELECT q.next - ((q.next - h.xmin::text::bigint) & 4294967295) AS stamp, h.id, h.n, h.stream, h.version, h.name,
              CASE WHEN pg_catalog.octet_length(h.data::text) <= :bytes THEN h.data::text END AS data, h.correlation, h.causation, h.actor, h.at
         FROM {schema}.history h
        WHERE h.shard = :shard AND h.workspace = :workspace COLLATE "default" AND -- COLLATE makes the planner use the order of ids, not the index of streams
               (h.id, h.n) > (:after::uuid, :n)
          AND CASE WHEN pg_catalog.age(h.xmin) > (SELECT pg_catalog.age((:far_next & 4294967295)::text::xid))
                        AND h.xmin <> ALL (ARRAY(SELECT (x::bigint & 4294967295)::text::xid FROM pg_catalog.json_array_elements_text(:far_open::json) AS x)) THEN false
                   ELSE pg_catalog.left(h.stream, 6) NOT IN ('$void/', '$mark/') AND pg_catalog.left(h.stream, 5) <> '$key/' END -- CASE makes it look at the transaction first
          AND NOT (h.id > :from::uuid AND pg_catalog.age(h.xmin) > (SELECT pg_catalog.age((:near_next & 4294967295)::text::xid))
                   AND h.xmin <> ALL (ARRAY(SELECT (x::bigint & 4294967295)::text::xid FROM pg_catalog.json_array_elements_text(:near_open::json) AS x)))
          AND (:upto_next = 0 OR pg_catalog.age(h.xmin) > (SELECT pg_catalog.age((:upto_next & 4294967295)::text::xid))
                   AND h.xmin <> ALL (ARRAY(SELECT (x::bigint & 4294967295)::text::xid FROM pg_catalog.json_array_elements_text(:upto_open::json) AS x)))
        ORDER BY h.shard, h.id, h.n
        LIMIT :limit) AS p ON true
 ORDER BY p.id, p.n
