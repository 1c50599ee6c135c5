-- Deletes the positions of reactions on the histories of deleted runs and bulks, of one page of the history, so that history.prune can
-- delete the last event of each. Such a history gets no more events: a reaction that has handled all of them never takes it again.
DELETE FROM holdfast_follow AS f
 WHERE f.shard = :shard AND :workspace IS NOT NULL
   AND (f.workspace, f.reaction, f.stream) IN (
       SELECT x.workspace, x.reaction, x.stream
         FROM (SELECT DISTINCT o.workspace, o.stream
                 FROM (SELECT h.workspace, h.stream FROM holdfast_history AS h
                        WHERE h.shard = :shard AND h.id > unhex(:after, '-') AND h.id < unhex(:upto, '-')
                        ORDER BY h.id
                        LIMIT :limit) AS o
                WHERE substr(o.stream, 1, 5) = '$run/' OR substr(o.stream, 1, 13) = '$batch/$bulk/') AS p
        CROSS JOIN holdfast_reaction AS r
        CROSS JOIN holdfast_follow AS x
        WHERE CASE WHEN substr(p.stream, 1, 5) = '$run/'
                   THEN NOT EXISTS (SELECT 1 FROM holdfast_run AS n WHERE n.shard = :shard AND n.workspace = p.workspace AND n.id = substr(p.stream, 6))
                   ELSE NOT EXISTS (SELECT 1 FROM holdfast_batch AS b WHERE b.shard = :shard AND b.workspace = p.workspace AND b.id = substr(p.stream, 8)) END
          AND r.shard = :shard AND r.workspace = p.workspace AND r.source = 'history' AND r.state = 'live'
          AND x.shard = :shard AND x.workspace = p.workspace AND x.reaction = r.name AND x.stream = p.stream
          AND x.holder IS NULL AND NOT x.blocked AND NOT x.reset_requested AND x.watermark >= x.due)
RETURNING 1
