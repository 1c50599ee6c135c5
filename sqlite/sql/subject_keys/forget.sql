-- Deletes the key of a subject and stores a tombstone, even for a subject that never had a
-- key: no key is stored for it any more. Without a key to delete, the section else writes
-- the tombstone.
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
