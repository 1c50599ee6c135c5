-- Records why the cleanup of an item failed, ends its lease, and schedules a retry. Recording the same end twice changes nothing.
-- :dirty whether the item was not cleaned up yet when the cleanup was taken
WITH {members}, b AS MATERIALIZED (
    SELECT m.member, m.key, m.sweeps, m.dirty, m.delay, m.error, b.status, b.shard, b.workspace, b.id
      FROM m JOIN {schema}.batch b ON b.shard = ANY (ARRAY[m.shard]) AND b.workspace = m.workspace AND b.id = m.batch
       FOR UPDATE OF b
), swept AS (
    UPDATE {schema}.item i
       SET sweep_at = CASE WHEN i.sweeps = b.sweeps THEN {now} + b.delay::float8 * interval '1 ms' ELSE i.sweep_at END, sweeps = b.sweeps + 1
      FROM b
     WHERE i.shard = ANY (ARRAY[b.shard]) AND i.workspace = b.workspace AND i.batch = b.id AND i.key = b.key AND i.dirty = (b.dirty = 1)
       AND (i.sweeps = b.sweeps AND coalesce(i.sweep_at, '-infinity') > {now} OR i.sweeps = b.sweeps + 1)
    RETURNING b.member
), moved AS (
    UPDATE {schema}.batch c
       SET error = CASE WHEN b.status IN ('CANCELLED', 'COMPLETED') THEN c.error ELSE b.error END
      FROM b JOIN swept ON swept.member = b.member
     WHERE c.shard = ANY (ARRAY[b.shard]) AND c.workspace = b.workspace AND c.id = b.id
    RETURNING b.member
)
{include store/select_applied moved}
