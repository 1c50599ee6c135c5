-- Stores a new value of a secret; the previous value stays valid for the overlap. A secret at another version is not
-- changed.
-- do
UPDATE holdfast_named_secret AS s
   SET sealed = :sealed, version = s.version + 1, updated_by = :actor, updated_at = t.now,
       former = CASE WHEN :overlap > 0 THEN s.sealed END,
       former_until = CASE WHEN :overlap > 0 THEN t.now + :overlap END
  FROM (SELECT {now} AS now) AS t
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.name = :name AND s.version = :version
RETURNING 1
-- else
SELECT 0
