-- Lists the kinds of scopes in order, each found from the one before it by the key.
WITH RECURSIVE k(kind) AS (
    SELECT (SELECT s.kind FROM {schema}.scope AS s
             WHERE s.shard = :shard AND s.workspace = :workspace AND s.kind > :after
             ORDER BY s.kind LIMIT 1)
    UNION ALL
    SELECT (SELECT s.kind FROM {schema}.scope AS s
             WHERE s.shard = :shard AND s.workspace = :workspace AND s.kind > k.kind
             ORDER BY s.kind LIMIT 1)
      FROM k
     WHERE k.kind IS NOT NULL
)
SELECT k.kind FROM k WHERE k.kind IS NOT NULL LIMIT :limit
