-- Forgets tokens that are long past.
-- ?1 shard, ?2 workspace ('' for all), ?3 limit
-- do
DELETE FROM holdfast_token AS t
 WHERE t.shard = ?1 AND (?2 = '' OR t.workspace = ?2)
   AND (t.workspace, t.hash) IN (
       SELECT x.workspace, x.hash
         FROM holdfast_token AS x INDEXED BY holdfast_token_expires
        WHERE x.shard = ?1 AND (?2 = '' OR x.workspace = ?2) AND x.expires_at < {now}
        ORDER BY x.expires_at
        LIMIT +?3)
RETURNING 1
