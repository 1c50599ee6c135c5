-- Records that the holder of a cancelled item has stopped working on it, so that the
-- cleanup does not wait for the end of that lease.
WITH {members}, moved AS (
    UPDATE {schema}.item i
       SET late = {now}, sweep_at = CASE WHEN i.sweep_at = i.late THEN {now} ELSE i.sweep_at END
      FROM m
     WHERE i.shard = ANY (ARRAY[m.shard]) AND i.workspace = m.workspace AND i.batch = m.batch AND i.key = m.key
       AND i.state = 'cancelled' AND i.dirty AND i.epoch = m.epoch + 1 AND i.late > {now}
    RETURNING m.member
)
{include store/select_applied moved}
