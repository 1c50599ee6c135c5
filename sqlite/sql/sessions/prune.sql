-- Deletes expired sessions.
DELETE FROM holdfast_session AS s
 WHERE s.shard = :shard AND (:workspace = '' OR s.workspace = :workspace)
   AND (s.workspace, s.api_key, s.id) IN (
       SELECT x.workspace, x.api_key, x.id
         FROM holdfast_session AS x INDEXED BY holdfast_session_expires
        WHERE x.shard = :shard AND (:workspace = '' OR x.workspace = :workspace) AND x.expires_at < {now}
        ORDER BY x.expires_at
        LIMIT :limit)
RETURNING 1
