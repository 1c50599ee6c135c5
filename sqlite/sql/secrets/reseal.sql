-- Replaces an encrypted value by the same one under another key. A value that was changed meanwhile is left as it is.
-- do
UPDATE holdfast_named_secret AS s
   SET sealed = CASE WHEN s.sealed = :was THEN :resealed ELSE s.sealed END, former = CASE WHEN s.former = :was THEN :resealed ELSE s.former END
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.name = :name AND (s.sealed = :was OR s.former = :was)
RETURNING 1
-- else
SELECT 0
