-- Events and history are deleted by functions of the owner's, which delete what retention permits: the runtime role needs
-- no right to delete them; who may call them, and whose they are, is seen to behind the migrations. Their parameters are those of the statements that call them (books.dropevents, history.prune).
-- min_reader: 19

-- Deletes events of a stream that a truncate or a close has dropped: below the first one kept, never the last, and none that is younger
-- than ten minutes (books.Grace). Answers how many.
-- $1 shard, $2 workspace, $3 stream, $4 from, $5 to a version, not included
CREATE FUNCTION {schema}.drop_events(smallint, text, text, bigint, bigint) RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off AS $$
WITH gone AS (
    DELETE FROM {schema}.event e
     USING {schema}.stream s
     WHERE s.shard = $1::smallint AND s.workspace = $2::text AND s.name = $3::text AND s.first >= $5::bigint
       AND e.shard = s.shard AND e.workspace = s.workspace AND e.stream = s.name
       AND e.version >= $4::bigint AND e.version < $5::bigint AND e.version < s.head
       AND e.at < (pg_catalog.clock_timestamp() + (SELECT c.shift FROM {schema}.clock c)) - interval '10 minutes'
    RETURNING 1
)
SELECT pg_catalog.count(*) FROM gone
$$;

-- Deletes, of the streams on a page of the history, what is older than it has to be, an hour at the least (history.Shortest), from the beginning: not the
-- last event of a thing that is there, nor what a reaction has still to handle. Answers a row for each.
-- $1 shard, $2 workspace, not looked at, $3 after, $4 up to, both ids as text, $5 limit, $6 how long it is kept, in ms
CREATE FUNCTION {schema}.prune_history(smallint, text, text, text, bigint, bigint) RETURNS SETOF integer
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off AS $$
WITH page AS MATERIALIZED (
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
)
DELETE FROM {schema}.history h
 USING tops t
 WHERE h.shard = ANY (ARRAY[t.shard]) AND h.workspace = t.workspace AND h.stream = t.stream AND h.version <= t.top
   AND h.at < (pg_catalog.clock_timestamp() + (SELECT c.shift FROM {schema}.clock c)) - greatest($6::bigint, 3600000::bigint)::float8 * interval '1 ms'
   AND (pg_catalog.left(t.stream, 6) IN ('$void/', '$mark/')
        OR (pg_catalog.left(t.stream, 7) = '$scope/' AND h.name IN ('deleted', 'expired')
            AND NOT EXISTS (SELECT 1 FROM {schema}.scope s WHERE s.shard = ANY (ARRAY[t.shard]) AND s.workspace = t.workspace
                                                              AND s.kind = pg_catalog.split_part(t.stream, '/', 2)
                                                              AND s.id = pg_catalog.substr(t.stream, 9 + pg_catalog.length(pg_catalog.split_part(t.stream, '/', 2)))))
        OR EXISTS (SELECT 1 FROM {schema}.history x WHERE x.shard = ANY (ARRAY[t.shard]) AND x.workspace = t.workspace AND x.stream = t.stream
                                                       AND x.version > h.version))
   AND NOT EXISTS (SELECT 1 FROM {schema}.reaction r
                    WHERE r.shard = ANY (ARRAY[t.shard]) AND r.workspace = t.workspace AND r.source = 'history'
                      AND (SELECT f.watermark < h.version AND f.due > f.watermark FROM {schema}.follow f
                            WHERE f.shard = r.shard AND f.workspace = r.workspace AND f.reaction = r.name AND f.stream = t.stream))
RETURNING 1
$$;
