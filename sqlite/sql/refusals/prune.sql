-- Deletes refusals older than their retention.
DELETE FROM holdfast_refusal AS a
 WHERE a.shard = :shard AND (:workspace = '' OR a.workspace = :workspace)
   AND (a.workspace, a.id) IN (
       SELECT x.workspace, x.id
         FROM holdfast_refusal AS x INDEXED BY holdfast_refusal_at
        WHERE x.shard = :shard AND (:workspace = '' OR x.workspace = :workspace) AND x.at < {now} - :age
        ORDER BY x.at
        LIMIT :limit)
RETURNING 1
