-- Replaces an encrypted value by the same one under another key. A value that was changed meanwhile is left as it is.
-- do
UPDATE holdfast_webhook AS s
   SET secret = CASE WHEN s.secret = :was THEN :resealed ELSE s.secret END, former = CASE WHEN s.former = :was THEN :resealed ELSE s.former END
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.id = :name AND (s.secret = :was OR s.former = :was)
RETURNING 1
-- else
SELECT 0
