-- Shifts the database's time for tests, where that is allowed.
WITH {members}, moved AS (
    UPDATE {schema}.clock c SET shift = c.shift + m.by::float8 * interval '1 ms'
      FROM m WHERE c.one AND c.movable
    RETURNING m.member, c.shift
)
SELECT m.member, CASE WHEN moved.member IS NULL THEN 0 ELSE 1 END,
       coalesce((extract(epoch FROM moved.shift) * 1000::numeric)::bigint, 0)
  FROM m LEFT JOIN moved ON moved.member = m.member
