-- Forgets requests, each if it is held under this epoch and the hold has not run
-- out. The conditions are on the row itself, so that one which was waited for is
-- looked at as it is then.
WITH {members}, gone AS (
    DELETE FROM {schema}.request r
     USING m
     WHERE r.shard = ANY (ARRAY[m.shard]) AND r.workspace = m.workspace AND r.key = m.key
       AND r.epoch = m.epoch AND r.state = 'held' AND r.until > {now}
    RETURNING m.member
)
SELECT m.member, CASE WHEN gone.member IS NULL THEN 0 ELSE 1 END, 0
  FROM m LEFT JOIN gone ON gone.member = m.member
