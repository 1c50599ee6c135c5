-- Deletes the positions of reactions on the histories of deleted runs and bulks, of one page of the history, so that history.prune can
-- delete the last event of each. Such a history gets no more events: a reaction that has handled all of them, and has no due notice, never
-- takes it again.
-- :after and :upto ids as text
WITH page AS MATERIALIZED (
    SELECT DISTINCT o.shard, o.workspace, o.stream
      FROM (SELECT h.shard, h.workspace, h.stream FROM {schema}.history h
             WHERE h.shard = :shard AND h.id > :after::uuid AND h.id < :upto::uuid AND :workspace IS NOT NULL
             ORDER BY h.shard, h.id
             LIMIT :limit) AS o
     WHERE pg_catalog.left(o.stream, 5) = '$run/' OR pg_catalog.left(o.stream, 13) = '$batch/$bulk/'
), ended AS MATERIALIZED (
    SELECT p.shard, p.workspace, p.stream
      FROM page p
     WHERE CASE WHEN pg_catalog.left(p.stream, 5) = '$run/'
                THEN NOT EXISTS (SELECT 1 FROM {schema}.run r WHERE r.shard = ANY (ARRAY[p.shard]) AND r.workspace = p.workspace AND r.id = pg_catalog.substr(p.stream, 6))
                ELSE NOT EXISTS (SELECT 1 FROM {schema}.batch b WHERE b.shard = ANY (ARRAY[p.shard]) AND b.workspace = p.workspace AND b.id = pg_catalog.substr(p.stream, 8)) END
), picked AS MATERIALIZED (
    SELECT f.shard, f.workspace, f.reaction, f.stream
      FROM ended e
     CROSS JOIN LATERAL (
           SELECT r.name FROM {schema}.reaction r
            WHERE r.shard = e.shard AND r.workspace = e.workspace AND r.source = 'history' AND r.state = 'live') AS r
     CROSS JOIN LATERAL (
           SELECT x.shard, x.workspace, x.reaction, x.stream FROM {schema}.follow x
            WHERE x.shard = e.shard AND x.workspace = e.workspace AND x.reaction = r.name AND x.stream = e.stream
              AND x.holder IS NULL AND NOT x.blocked AND NOT x.reset_requested AND x.watermark >= x.due
              AND (SELECT true FROM {schema}.due d
                    WHERE d.shard = e.shard AND d.reaction = r.name AND d.workspace = e.workspace AND d.stream = e.stream LIMIT 1) IS NULL
              FOR UPDATE SKIP LOCKED) AS f
)
DELETE FROM {schema}.follow f USING picked p
 WHERE f.shard = ANY (ARRAY[p.shard]) AND f.workspace = p.workspace AND f.reaction = p.reaction AND f.stream = p.stream
RETURNING 1
