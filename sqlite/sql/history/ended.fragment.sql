-- Selects, of one page of the history, the histories of deleted runs and bulks whose last event is on the page and past its retention,
-- unless a reaction has yet to handle some of it, or is being registered.
(SELECT t.workspace, t.stream
                       FROM (SELECT o.workspace, o.stream, max(o.version) AS top
                               FROM (SELECT y.workspace, y.stream, y.version FROM holdfast_history AS y
                                      WHERE y.shard = :shard AND y.id > unhex(:after, '-') AND y.id < unhex(:upto, '-')
                                      ORDER BY y.id
                                      LIMIT :limit) AS o
                              WHERE substr(o.stream, 1, 5) = '$run/' OR substr(o.stream, 1, 13) = '$batch/$bulk/'
                              GROUP BY o.workspace, o.stream) AS t
                      WHERE CASE WHEN substr(t.stream, 1, 5) = '$run/'
                                 THEN NOT EXISTS (SELECT 1 FROM holdfast_run AS r WHERE r.shard = :shard AND r.workspace = t.workspace AND r.id = substr(t.stream, 6))
                                 ELSE NOT EXISTS (SELECT 1 FROM holdfast_batch AS b WHERE b.shard = :shard AND b.workspace = t.workspace AND b.id = substr(t.stream, 8)) END
                        AND (SELECT z.version = t.top FROM holdfast_history AS z
                              WHERE z.shard = :shard AND z.workspace = t.workspace AND z.stream = t.stream
                              ORDER BY z.version DESC
                              LIMIT 1)
                        AND NOT EXISTS (SELECT 1 FROM holdfast_history AS z
                                         WHERE z.shard = :shard AND z.workspace = t.workspace AND z.stream = t.stream AND z.version >= 0 AND z.at >= {now} - :keep)
                        AND NOT EXISTS (SELECT 1 FROM holdfast_reaction AS r
                                         WHERE r.shard = :shard AND r.workspace = t.workspace AND r.source = 'history' AND r.state = 'waiting')
                        AND NOT EXISTS (SELECT 1 FROM holdfast_reaction AS r CROSS JOIN holdfast_follow AS p
                                         WHERE r.shard = :shard AND r.workspace = t.workspace AND r.source = 'history'
                                           AND p.shard = :shard AND p.workspace = t.workspace AND p.reaction = r.name AND p.stream = t.stream
                                           AND (p.holder IS NOT NULL OR p.blocked OR p.reset_requested OR p.watermark < p.due))) AS e
