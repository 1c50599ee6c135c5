-- Notes for a reaction that there is more on some streams. One that it has not
-- followed yet begins at the beginning or, where that is asked for, behind what
-- is there now.
-- ?1 shard, ?2 workspace, ?3 command, ?4 reaction, ?5 streams, a JSON list of
-- [name, head], ?6 whether what is there now is left out
-- do
INSERT INTO holdfast_follow AS f
    (shard, workspace, reaction, stream, watermark, due, due_at, rank, epoch, updated_at)
SELECT ?1, ?2, ?4, j.value ->> 0, CASE WHEN ?6 = 1 THEN j.value ->> 1 ELSE -1 END, j.value ->> 1,
       {now}, {now} - r.priority * 1000, r.base, {now}
  FROM json_each(?5) AS j
  JOIN holdfast_reaction AS r ON r.shard = ?1 AND r.workspace = ?2 AND r.name = ?4 AND r.state <> 'removed'
 WHERE true
ON CONFLICT (shard, workspace, reaction, stream) DO UPDATE
   SET due = max(f.due, excluded.due),
       due_at = CASE WHEN f.due > f.watermark THEN f.due_at ELSE excluded.due_at END,
       rank = CASE WHEN f.due > f.watermark THEN f.rank ELSE excluded.rank END
 WHERE f.due < excluded.due
RETURNING 1
-- else
SELECT 0
