-- Deletes requests, each if it is leased under this epoch and the lease has not expired. The
-- conditions are on the row itself, so that after a wait they are evaluated on the current
-- row.
WITH {members}, gone AS (
    DELETE FROM {schema}.request r
     USING m
     WHERE r.shard = ANY (ARRAY[m.shard]) AND r.workspace = m.workspace AND r.key = m.key
       AND r.epoch = m.epoch AND r.state = 'held' AND r.until > {now}
    RETURNING m.member
)
SELECT m.member, CASE WHEN gone.member IS NULL THEN 0 ELSE 1 END, 0
  FROM m LEFT JOIN gone ON gone.member = m.member
