-- Deletes expired requests, the oldest first, except leased ones.
-- look
SELECT 1
  FROM holdfast_request AS r INDEXED BY holdfast_request_expires
 WHERE r.shard = :shard AND (:workspace = '' OR r.workspace = :workspace) AND r.expires_at <= {now}
 LIMIT 1
-- do
DELETE FROM holdfast_request AS r
 WHERE r.shard = :shard AND (:workspace = '' OR r.workspace = :workspace)
   AND (r.workspace, r.key) IN (
       SELECT x.workspace, x.key
         FROM holdfast_request AS x INDEXED BY holdfast_request_expires
        WHERE x.shard = :shard AND (:workspace = '' OR x.workspace = :workspace)
          AND x.expires_at <= {now} AND (x.state <> 'held' OR x.until <= {now})
        ORDER BY x.expires_at
        LIMIT :limit)
RETURNING 1
