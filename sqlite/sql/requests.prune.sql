-- Forgets requests whose time is over, those that were over first, but none that is
-- held.
-- ?1 shard, ?2 workspace ('' for all), ?3 limit
-- look
SELECT 1
  FROM holdfast_request AS r INDEXED BY holdfast_request_expires
 WHERE r.shard = ?1 AND (?2 = '' OR r.workspace = ?2) AND r.expires_at <= {now}
 LIMIT 1
-- do
DELETE FROM holdfast_request AS r
 WHERE r.shard = ?1 AND (?2 = '' OR r.workspace = ?2)
   AND (r.workspace, r.key) IN (
       SELECT x.workspace, x.key
         FROM holdfast_request AS x INDEXED BY holdfast_request_expires
        WHERE x.shard = ?1 AND (?2 = '' OR x.workspace = ?2)
          AND x.expires_at <= {now} AND (x.state <> 'held' OR x.until <= {now})
        ORDER BY x.expires_at
        LIMIT +?3)
RETURNING 1
