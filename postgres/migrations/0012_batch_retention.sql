-- Deleting the items of batches that have ended.
-- min_reader: 10

-- keep is the retention in ms, null for ever. prune_at is when the items of a batch that has ended are due to be deleted, and pruned_at
-- when that began: the batch, with its counts and sums, stays.
ALTER TABLE {schema}.batch ADD COLUMN keep bigint, ADD COLUMN prune_at timestamptz, ADD COLUMN pruned_at timestamptz;
-- An expression, so that a statement that looks for what is due cannot use the key instead, and read all batches.
CREATE INDEX batch_prune ON {schema}.batch ((shard + 0), prune_at) WHERE prune_at IS NOT NULL;

-- As before. The history of a deleted run or bulk gets no more events: when the last one is past its retention, and every reaction has
-- handled all of it, the whole history is deleted with the positions of the reactions.
CREATE OR REPLACE FUNCTION {schema}.prune_history(smallint, text, text, text, bigint, bigint) RETURNS SETOF integer
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off AS $$
WITH old AS MATERIALIZED (
    SELECT pg_catalog.clock_timestamp() + (SELECT c.shift FROM {schema}.clock c) - greatest($6::bigint, 3600000::bigint)::float8 * interval '1 ms' AS at
), page AS MATERIALIZED (
    SELECT h.shard, h.workspace, h.stream, h.version
      FROM {schema}.history h
     WHERE h.shard = $1::smallint AND h.id > $3::text::uuid AND h.id < $4::text::uuid AND $2::text IS NOT NULL
     ORDER BY h.shard, h.id
     LIMIT $5::bigint
), tops AS MATERIALIZED (
    SELECT p.shard, p.workspace, p.stream, pg_catalog.max(p.version) AS top
      FROM page p
     WHERE NOT EXISTS (SELECT 1 FROM {schema}.reaction r
                        WHERE r.shard = ANY (ARRAY[p.shard]) AND r.workspace = p.workspace AND r.source = 'history'
                          AND (r.state = 'waiting'
                               OR (SELECT true FROM {schema}.due d WHERE d.shard = r.shard AND d.reaction = r.name AND d.workspace = r.workspace
                                                                     AND d.stream = p.stream LIMIT 1)))
     GROUP BY p.shard, p.workspace, p.stream
), ended AS MATERIALIZED (
    SELECT t.shard, t.workspace, t.stream
      FROM old, tops t
     CROSS JOIN LATERAL (
           SELECT h.version FROM {schema}.history h
            WHERE h.shard = t.shard AND h.workspace = t.workspace AND h.stream = t.stream
            ORDER BY h.shard DESC, h.workspace DESC, h.stream DESC, h.version DESC
            LIMIT 1) AS last
     WHERE last.version = t.top
       AND NOT EXISTS (SELECT 1 FROM {schema}.history h WHERE h.shard = ANY (ARRAY[t.shard]) AND h.workspace = t.workspace AND h.stream = t.stream AND h.at >= old.at)
       AND (pg_catalog.left(t.stream, 5) = '$run/'
            AND NOT EXISTS (SELECT 1 FROM {schema}.run r WHERE r.shard = ANY (ARRAY[t.shard]) AND r.workspace = t.workspace AND r.id = pg_catalog.substr(t.stream, 6))
            OR pg_catalog.left(t.stream, 13) = '$batch/$bulk/'
            AND NOT EXISTS (SELECT 1 FROM {schema}.batch b WHERE b.shard = ANY (ARRAY[t.shard]) AND b.workspace = t.workspace AND b.id = pg_catalog.substr(t.stream, 8)))
), followed AS MATERIALIZED (
    SELECT e.shard, e.workspace, e.stream, r.name
      FROM ended e
     CROSS JOIN LATERAL (SELECT r.name FROM {schema}.reaction r WHERE r.shard = e.shard AND r.workspace = e.workspace AND r.source = 'history') AS r
     CROSS JOIN LATERAL (
           SELECT 1 FROM {schema}.follow f
            WHERE f.shard = e.shard AND f.workspace = e.workspace AND f.reaction = r.name AND f.stream = e.stream LIMIT 1) AS f
), passed AS MATERIALIZED ( -- as they are now
    SELECT x.shard, x.workspace, x.reaction, x.stream
      FROM followed o
     CROSS JOIN LATERAL (
           SELECT f.shard, f.workspace, f.reaction, f.stream FROM {schema}.follow f
            WHERE f.shard = o.shard AND f.workspace = o.workspace AND f.reaction = o.name AND f.stream = o.stream
              AND f.holder IS NULL AND NOT f.blocked AND NOT f.reset_requested AND f.watermark >= f.due
              FOR UPDATE SKIP LOCKED) AS x
), whole AS MATERIALIZED (
    SELECT e.shard, e.workspace, e.stream
      FROM ended e
     WHERE (SELECT pg_catalog.count(*) FROM followed o WHERE o.workspace = e.workspace AND o.stream = e.stream)
           = (SELECT pg_catalog.count(*) FROM passed p WHERE p.workspace = e.workspace AND p.stream = e.stream)
), positions AS (
    DELETE FROM {schema}.follow f
     USING passed p JOIN whole w ON w.workspace = p.workspace AND w.stream = p.stream
     WHERE f.shard = ANY (ARRAY[p.shard]) AND f.workspace = p.workspace AND f.reaction = p.reaction AND f.stream = p.stream
)
DELETE FROM {schema}.history h
 USING old, tops t
 WHERE h.shard = ANY (ARRAY[t.shard]) AND h.workspace = t.workspace AND h.stream = t.stream AND h.version <= t.top
   AND h.at < old.at
   AND (pg_catalog.left(t.stream, 6) IN ('$void/', '$mark/')
        OR (pg_catalog.left(t.stream, 7) = '$scope/' AND h.name IN ('deleted', 'expired')
            AND NOT EXISTS (SELECT 1 FROM {schema}.scope s WHERE s.shard = ANY (ARRAY[t.shard]) AND s.workspace = t.workspace
                                                              AND s.kind = pg_catalog.split_part(t.stream, '/', 2)
                                                              AND s.id = pg_catalog.substr(t.stream, 9 + pg_catalog.length(pg_catalog.split_part(t.stream, '/', 2)))))
           AND NOT EXISTS (SELECT 1 FROM {schema}.reaction r
                            WHERE r.shard = ANY (ARRAY[t.shard]) AND r.workspace = t.workspace AND r.source = 'history'
                              AND (SELECT true FROM {schema}.follow f WHERE f.shard = r.shard AND f.workspace = r.workspace AND f.reaction = r.name AND f.stream = t.stream))
        OR EXISTS (SELECT 1 FROM whole w WHERE w.workspace = t.workspace AND w.stream = t.stream)
        OR EXISTS (SELECT 1 FROM {schema}.history x WHERE x.shard = ANY (ARRAY[t.shard]) AND x.workspace = t.workspace AND x.stream = t.stream
                                                       AND x.version > h.version))
   AND NOT EXISTS (SELECT 1 FROM {schema}.reaction r
                    WHERE r.shard = ANY (ARRAY[t.shard]) AND r.workspace = t.workspace AND r.source = 'history'
                      AND (SELECT f.watermark < h.version AND f.due > f.watermark FROM {schema}.follow f
                            WHERE f.shard = r.shard AND f.workspace = r.workspace AND f.reaction = r.name AND f.stream = t.stream))
RETURNING 1
$$;
