-- Keeps the key of a subject that has none, or tells what is kept: of several who
-- make it at once, all get the same. NULL is told of a subject that is forgotten.
-- ?1 shard, ?2 workspace, ?3 command, ?4 subject, ?5 key in hex
-- do
INSERT INTO holdfast_subject (shard, workspace, name, key, created_at)
SELECT ?1, ?2, ?4, unhex(?5), {now}
 WHERE true
ON CONFLICT (shard, workspace, name) DO NOTHING
RETURNING key
-- else
SELECT s.key
  FROM holdfast_subject AS s
 WHERE s.shard = ?1 AND s.workspace = ?2 AND s.name = ?4
