-- Deletes one page of the rows and due notices of a removed reaction, and returns their
-- number.
WITH r AS (
    SELECT x.shard, x.workspace, x.name FROM {schema}.reaction x
     WHERE x.shard = :shard AND x.workspace = :workspace AND x.name = :reaction AND x.state = 'removed'
), places AS (
    DELETE FROM {schema}.follow f
     USING (SELECT x.shard, x.workspace, x.reaction, x.stream
              FROM r CROSS JOIN LATERAL (
                   SELECT x.shard, x.workspace, x.reaction, x.stream FROM {schema}.follow x
                    WHERE x.shard = r.shard AND x.workspace = r.workspace AND x.reaction = r.name
                    ORDER BY x.stream
                    LIMIT :limit) AS x) AS p
     WHERE f.shard = ANY (ARRAY[p.shard]) AND f.workspace = p.workspace AND f.reaction = p.reaction AND f.stream = p.stream
    RETURNING 1
), marks AS (
    DELETE FROM {schema}.due d
     USING (SELECT x.shard, x.workspace, x.reaction, x.stream, x.version
              FROM r CROSS JOIN LATERAL (
                   SELECT x.shard, x.workspace, x.reaction, x.stream, x.version FROM {schema}.due x
                    WHERE x.shard = r.shard AND x.workspace = r.workspace AND x.reaction = r.name
                    ORDER BY x.stream, x.version
                    LIMIT :limit) AS x) AS p
     WHERE d.shard = ANY (ARRAY[p.shard]) AND d.workspace = p.workspace AND d.reaction = p.reaction AND d.stream = p.stream AND d.version = p.version
    RETURNING 1
)
SELECT 1 FROM places UNION ALL SELECT 1 FROM marks
