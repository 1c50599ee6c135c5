-- Forgets refusals that are long past.
-- ?1 shard, ?2 workspace ('' for all), ?3 age in ms, ?4 limit
-- do
DELETE FROM holdfast_attempt AS a
 WHERE a.shard = ?1 AND (?2 = '' OR a.workspace = ?2)
   AND (a.workspace, a.lifecycle, a.entity, a.id) IN (
       SELECT x.workspace, x.lifecycle, x.entity, x.id
         FROM holdfast_attempt AS x INDEXED BY holdfast_attempt_at
        WHERE x.shard = ?1 AND (?2 = '' OR x.workspace = ?2) AND x.at < {now} - ?3
        ORDER BY x.at
        LIMIT +?4)
RETURNING 1
