-- Ends the waiting of a reaction, unless it was changed meanwhile. Histories of deleted runs and bulks may have been deleted while
-- its positions on them were not visible yet: these positions are deleted.
WITH live AS MATERIALIZED (
    UPDATE {schema}.reaction r
       SET state = 'live', waits = NULL
     WHERE r.shard = :shard AND r.workspace = :workspace AND r.name = :reaction
       AND r.state = 'waiting' AND r.waits = :awaited::jsonb
    RETURNING r.shard, r.workspace, r.name
), left_over AS MATERIALIZED (
    SELECT f.shard, f.workspace, f.reaction, f.stream
      FROM live l
     CROSS JOIN LATERAL (
           SELECT x.shard, x.workspace, x.reaction, x.stream FROM {schema}.follow x
            WHERE x.shard = l.shard AND x.workspace = l.workspace AND x.reaction = l.name AND x.holder IS NULL
              AND (x.stream >= '$run/' AND x.stream < '$run0' OR x.stream >= '$batch/$bulk/' AND x.stream < '$batch/$bulk0')
              AND (SELECT true FROM {schema}.history h WHERE h.shard = x.shard AND h.workspace = x.workspace AND h.stream = x.stream LIMIT 1) IS NULL
            OFFSET 0) AS f
), positions AS (
    DELETE FROM {schema}.follow f USING left_over o
     WHERE f.shard = ANY (ARRAY[o.shard]) AND f.workspace = o.workspace AND f.reaction = o.reaction AND f.stream = o.stream AND f.holder IS NULL
)
SELECT 1 FROM live
