-- Stores new values of secrets; the previous value stays valid for the overlap. A secret at another version is not
-- changed.
WITH {members}, moved AS (
    UPDATE {schema}.named_secret s
       SET sealed = m.sealed, version = s.version + 1, updated_by = m.actor, updated_at = t.now,
           former = CASE WHEN m.overlap > 0 THEN s.sealed END,
           former_until = CASE WHEN m.overlap > 0 THEN t.now + m.overlap::float8 * interval '1 ms' END
      FROM m, (SELECT {now} AS now) AS t
     WHERE s.shard = ANY (ARRAY[m.shard]) AND s.workspace = m.workspace AND s.name = m.name AND s.version = m.version
    RETURNING m.member
)
SELECT m.member, CASE WHEN moved.member IS NULL THEN 0 ELSE 1 END
  FROM m LEFT JOIN moved ON moved.member = m.member
