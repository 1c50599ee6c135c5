-- Deletes, of the streams on one page of the history, events past their retention, from the
-- beginning; but not the last event of an existing object or of a stream on which a reaction has a
-- position, and no event that a reaction has yet to handle. The page is bounded by ids; the age is measured by the database's clock.
-- The history of a deleted run or bulk gets no more events: when the last one is past its retention, and every reaction has handled all of it,
-- the whole history is deleted with the positions of the reactions. Returns one row for each event.
-- look
SELECT 1 FROM holdfast_history AS y
 WHERE y.shard = :shard AND :workspace IS NOT NULL AND y.id > unhex(:after, '-') AND y.id < unhex(:upto, '-')
 LIMIT 1
-- do
SELECT 1
-- also
DELETE FROM holdfast_follow AS f
 WHERE f.shard = :shard
   AND (f.workspace, f.reaction, f.stream) IN (
       SELECT x.workspace, x.reaction, x.stream
         FROM {include history/ended}
        CROSS JOIN holdfast_reaction AS r
        CROSS JOIN holdfast_follow AS x
        WHERE r.shard = :shard AND r.workspace = e.workspace AND r.source = 'history'
          AND x.shard = :shard AND x.workspace = e.workspace AND x.reaction = r.name AND x.stream = e.stream)
-- also
DELETE FROM holdfast_history AS h
 WHERE h.shard = :shard
   AND (h.id, h.n) IN (
       SELECT x.id, x.n
         FROM (SELECT o.workspace, o.stream, max(o.version) AS top
                 FROM (SELECT y.workspace, y.stream, y.version FROM holdfast_history AS y
                        WHERE y.shard = :shard AND y.id > unhex(:after, '-') AND y.id < unhex(:upto, '-')
                        ORDER BY y.id
                        LIMIT :limit) AS o
                GROUP BY o.workspace, o.stream) AS t
        CROSS JOIN holdfast_history AS x
        WHERE x.shard = :shard AND x.workspace = t.workspace AND x.stream = t.stream AND x.version <= t.top)
   AND h.at < {now} - :keep
   AND (substr(h.stream, 1, 6) IN ('$void/', '$mark/')
        OR (substr(h.stream, 1, 7) = '$scope/' AND h.name IN ('deleted', 'expired')
            AND NOT EXISTS (SELECT 1 FROM holdfast_scope AS s WHERE s.shard = h.shard AND s.workspace = h.workspace
                                                                AND s.kind = substr(h.stream, 8, instr(substr(h.stream, 8), '/') - 1)
                                                                AND s.id = substr(h.stream, 8 + instr(substr(h.stream, 8), '/'))))
           AND NOT EXISTS (SELECT 1 FROM holdfast_reaction AS r CROSS JOIN holdfast_follow AS f
                            WHERE r.shard = h.shard AND r.workspace = h.workspace AND r.source = 'history'
                              AND f.shard = r.shard AND f.workspace = r.workspace AND f.reaction = r.name AND f.stream = h.stream)
        OR (h.workspace, h.stream) IN (SELECT e.workspace, e.stream FROM {include history/ended})
        OR EXISTS (SELECT 1 FROM holdfast_history AS x WHERE x.shard = h.shard AND x.workspace = h.workspace AND x.stream = h.stream
                                                         AND x.version > h.version))
   AND NOT EXISTS (SELECT 1 FROM holdfast_reaction AS r CROSS JOIN holdfast_follow AS f
                    WHERE r.shard = h.shard AND r.workspace = h.workspace AND r.source = 'history'
                      AND f.shard = r.shard AND f.workspace = r.workspace AND f.reaction = r.name AND f.stream = h.stream
                      AND f.watermark < h.version AND f.due > f.watermark)
RETURNING 1
