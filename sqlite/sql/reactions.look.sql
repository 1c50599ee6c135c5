-- Whether there may be something to do: streams that are due.
-- ?1 shard, ?2 workspace ('' for all), ?3 reactions as a JSON list
-- do
SELECT 1
  FROM json_each(?3) AS q
 WHERE EXISTS (SELECT 1
                 FROM holdfast_follow AS d INDEXED BY holdfast_follow_ready
                WHERE d.shard = ?1 AND (?2 = '' OR d.workspace = ?2) AND d.reaction = q.value
                  AND d.holder IS NULL AND d.blocked = 0 AND d.due > d.watermark AND d.due_at <= {now})
 LIMIT 1
