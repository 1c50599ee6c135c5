-- Deletes expired tokens.
DELETE FROM holdfast_token AS t
 WHERE t.shard = :shard AND (:workspace = '' OR t.workspace = :workspace)
   AND (t.workspace, t.hash) IN (
       SELECT x.workspace, x.hash
         FROM holdfast_token AS x INDEXED BY holdfast_token_expires
        WHERE x.shard = :shard AND (:workspace = '' OR x.workspace = :workspace) AND x.expires_at < {now}
        ORDER BY x.expires_at
        LIMIT :limit)
RETURNING 1
