-- Records for a reaction that streams have new events.
-- do
INSERT INTO holdfast_follow AS f
    (shard, workspace, reaction, stream, watermark, due, due_at, rank, epoch, updated_at)
SELECT :shard, :workspace, :reaction, j.value ->> 0, CASE WHEN :skip = 1 THEN j.value ->> 1 ELSE -1 END, j.value ->> 1,
       {now}, {now} - r.priority * 1000, r.base, {now}
  FROM json_each(:streams) AS j
  JOIN holdfast_reaction AS r ON r.shard = :shard AND r.workspace = :workspace AND r.name = :reaction AND r.state <> 'removed'
 WHERE true
ON CONFLICT (shard, workspace, reaction, stream) DO UPDATE
   SET due = max(f.due, excluded.due),
       due_at = CASE WHEN f.due > f.watermark THEN f.due_at ELSE excluded.due_at END,
       rank = CASE WHEN f.due > f.watermark THEN f.rank ELSE excluded.rank END
 WHERE f.due < excluded.due
RETURNING 1
-- else
SELECT 0
