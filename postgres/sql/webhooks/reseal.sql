-- Replaces an encrypted value by the same one under another key. A value that was changed meanwhile is left as it is.
WITH {members}, moved AS (
    UPDATE {schema}.webhook s
       SET secret = CASE WHEN s.secret = m.was THEN m.resealed ELSE s.secret END, former = CASE WHEN s.former = m.was THEN m.resealed ELSE s.former END
      FROM m
     WHERE s.shard = ANY (ARRAY[m.shard]) AND s.workspace = m.workspace AND s.id = m.name AND (s.secret = m.was OR s.former = m.was)
    RETURNING m.member
)
SELECT m.member, CASE WHEN moved.member IS NULL THEN 0 ELSE 1 END
  FROM m LEFT JOIN moved ON moved.member = m.member
