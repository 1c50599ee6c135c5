-- Deletes, of a page of the history, what is older than it has to be: not the last
-- event of a thing, nor what a reaction has still to handle. Answers a row for each.
-- $1 shard, $2 workspace, not looked at: all are read in order, $3 after, $4 up to,
-- both ids as text, $5 limit
WITH page AS MATERIALIZED (
    SELECT h.shard, h.id, h.n, h.workspace, h.stream, h.version
      FROM {schema}.history h
     WHERE h.shard = $1::smallint AND h.id > $3::text::uuid AND h.id < $4::text::uuid
     ORDER BY h.shard, h.id
     LIMIT $5::bigint
), gone AS (
    DELETE FROM {schema}.history h
     USING page p
     WHERE h.shard = p.shard AND h.id = p.id AND h.n = p.n AND h.workspace = p.workspace
       AND (left(p.stream, 6) IN ('$void/', '$mark/')
            OR EXISTS (SELECT 1 FROM {schema}.history x WHERE x.shard = p.shard AND x.workspace = p.workspace AND x.stream = p.stream
                                                           AND x.version > p.version))
       AND NOT EXISTS (SELECT 1 FROM {schema}.reaction r
                         LEFT JOIN {schema}.follow f ON f.shard = r.shard AND f.workspace = r.workspace AND f.reaction = r.name AND f.stream = p.stream
                        WHERE r.shard = p.shard AND r.workspace = p.workspace AND r.source = 'history'
                          AND (r.state = 'waiting' OR (f.watermark < p.version AND f.due > f.watermark)
                               OR EXISTS (SELECT 1 FROM {schema}.due d WHERE d.shard = r.shard AND d.reaction = r.name AND d.workspace = r.workspace
                                                                         AND d.stream = p.stream)))
    RETURNING 1
)
SELECT 1 FROM gone WHERE $2::text IS NOT NULL
