-- Drops the key of a subject and keeps a tombstone, also for a subject that never
-- had one: nothing is taken for it any more. What was refused is then to drop a
-- key, and the tombstone is written all the same.
-- do
UPDATE holdfast_subject AS s
   SET key = NULL, forgotten_at = {now}
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.name = :subject AND s.key IS NOT NULL
RETURNING 1
-- else
INSERT INTO holdfast_subject AS s (shard, workspace, name, created_at, forgotten_at)
SELECT :shard, :workspace, :subject, t.now, t.now
  FROM (SELECT {now} AS now) AS t
 WHERE true
ON CONFLICT (shard, workspace, name) DO UPDATE SET created_at = s.created_at
RETURNING 0
