-- Deletes, of a page of the history, what is older than it has to be: not the last
-- event of a thing, nor what a reaction has still to handle.
-- ?1 shard, ?2 workspace, not looked at: all are read in order, ?3 after, ?4 up to,
-- both ids as text, ?5 limit
-- do
DELETE FROM holdfast_history AS h
 WHERE h.shard = ?1 AND h.id > unhex(?3, '-') AND h.id < unhex(?4, '-') AND ?2 IS NOT NULL
   AND h.id <= coalesce((SELECT max(p.id) FROM (
           SELECT o.id FROM holdfast_history AS o
            WHERE o.shard = ?1 AND o.id > unhex(?3, '-') AND o.id < unhex(?4, '-')
            ORDER BY o.id
            LIMIT ?5) AS p), x'')
   AND (substr(h.stream, 1, 6) IN ('$void/', '$mark/')
        OR EXISTS (SELECT 1 FROM holdfast_history AS x WHERE x.shard = h.shard AND x.workspace = h.workspace AND x.stream = h.stream
                                                         AND x.version > h.version))
   AND NOT EXISTS (SELECT 1 FROM holdfast_reaction AS r
                     LEFT JOIN holdfast_follow AS f ON f.shard = r.shard AND f.workspace = r.workspace AND f.reaction = r.name AND f.stream = h.stream
                    WHERE r.shard = h.shard AND r.workspace = h.workspace AND r.source = 'history'
                      AND f.watermark < h.version AND f.due > f.watermark)
RETURNING 1
