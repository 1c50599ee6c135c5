-- Deletes refusals older than their retention.
DELETE FROM holdfast_attempt AS a
 WHERE a.shard = :shard AND (:workspace = '' OR a.workspace = :workspace)
   AND (a.workspace, a.lifecycle, a.entity, a.id) IN (
       SELECT x.workspace, x.lifecycle, x.entity, x.id
         FROM holdfast_attempt AS x INDEXED BY holdfast_attempt_at
        WHERE x.shard = :shard AND (:workspace = '' OR x.workspace = :workspace) AND x.at < {now} - :age
        ORDER BY x.at
        LIMIT :limit)
RETURNING 1
