-- Stores the key of a subject that has none, or returns the stored one: concurrent callers all get the same key.
-- do
INSERT INTO holdfast_subject (shard, workspace, name, key, created_at)
SELECT :shard, :workspace, :subject, unhex(:key), {now}
 WHERE true
ON CONFLICT (shard, workspace, name) DO NOTHING
RETURNING key
-- else
SELECT s.key
  FROM holdfast_subject AS s
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.name = :subject
