-- Removes a reaction: it gets no more due notices, and cannot be taken.
WITH {members}, moved AS (
    UPDATE {schema}.reaction r
       SET state = 'removed', waits = NULL, updated_at = {now}
      FROM m
     WHERE r.shard = ANY (ARRAY[m.shard]) AND r.workspace = m.workspace AND r.name = m.name AND r.state <> 'removed'
    RETURNING r.shard, r.workspace, r.name
)
SELECT m.member, CASE WHEN moved.name IS NULL THEN 0 ELSE 1 END
  FROM m LEFT JOIN moved ON moved.shard = m.shard AND moved.workspace = m.workspace AND moved.name = m.name
