-- Notes that who held an item when it was cancelled is not at work on it any more, so that
-- nobody waits for the end of that hold.
-- $4 batch, $5 key, $6 epoch of the hold that was ended
WITH m AS (
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::uuid[], $4::text[], $5::text[], $6::bigint[])
             WITH ORDINALITY AS m(shard, workspace, command, batch, key, epoch, member)
), moved AS (
    UPDATE {schema}.item i
       SET late = {now}, sweep_at = CASE WHEN i.sweep_at = i.late THEN {now} ELSE i.sweep_at END
      FROM m
     WHERE i.shard = ANY (ARRAY[m.shard]) AND i.workspace = m.workspace AND i.batch = m.batch AND i.key = m.key
       AND i.state = 'cancelled' AND i.dirty AND i.epoch = m.epoch + 1 AND i.late > {now}
    RETURNING m.member
)
SELECT m.member, CASE WHEN moved.member IS NOT NULL THEN 1 ELSE 0 END, 1
  FROM m
  LEFT JOIN moved ON moved.member = m.member
