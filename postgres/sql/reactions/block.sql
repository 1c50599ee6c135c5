-- Ends a lease without a retry. :how is 'blocked', which blocks the stream for the reaction,
-- 'skipped', which continues after the version that failed, or 'died', which blocks it
-- because the holder crashed. A stream with a requested reset is not changed: the end of
-- the lease resets it. Rows are locked first, and the time is read afterwards.
WITH {members}, cur AS (
    SELECT f.shard, f.workspace, f.reaction, f.stream, f.watermark, f.due_at, f.rank, f.failing, f.failures, f.deaths, f.crash_group, f.reset_requested, f.blocked, f.error,
           f.holder, f.epoch, f.until, f.version, m.member
      FROM m JOIN {schema}.follow f
        ON f.shard = ANY (ARRAY[m.shard]) AND f.workspace = m.workspace AND f.reaction = m.reaction AND f.stream = m.stream
     ORDER BY m.shard, f.workspace, f.reaction, f.stream
       FOR UPDATE OF f{skip}
), moved AS (
    UPDATE {schema}.follow f
       SET watermark = greatest(cur.watermark, m.done, CASE WHEN m.how = 'skipped' THEN m.failing END),
           failures = m.failures, blocked = m.how <> 'skipped',
           deaths = CASE WHEN m.how = 'died' THEN cur.deaths + 1
                         WHEN m.how = 'skipped' OR m.done > cur.watermark THEN 0 ELSE cur.deaths END,
           crash_group = CASE WHEN m.how = 'skipped' OR m.done > cur.watermark THEN 0 ELSE cur.crash_group END,
           failing = CASE WHEN m.how <> 'skipped' THEN m.failing END,
           error = CASE WHEN m.how <> 'skipped' THEN m.error END, holder = NULL, until = NULL, quiet = false, lost = 0,
           epoch = cur.epoch + CASE WHEN m.how = 'died' THEN 1 ELSE 0 END, version = 1 + greatest(cur.version, (SELECT h.version FROM {schema}.history h
                   WHERE h.shard = m.shard AND h.workspace = m.workspace AND h.stream = '$reaction/' || m.reaction || '/' || m.stream
                   ORDER BY h.version DESC LIMIT 1)),
           due_at = {now}, rank = {now} - (cur.due_at - cur.rank), updated_at = {now}
      FROM m JOIN cur ON cur.member = m.member
     WHERE f.shard = ANY (ARRAY[m.shard]) AND f.workspace = m.workspace AND f.reaction = m.reaction AND f.stream = m.stream
       AND NOT cur.reset_requested AND cur.epoch = m.epoch AND CASE WHEN m.how = 'died' THEN cur.until <= {now} ELSE cur.until > {now} END
       AND f.epoch = m.epoch
    RETURNING m.member, f.watermark, f.deaths, f.version, f.updated_at
), {include history/write_without_cause}
    SELECT m.shard, m.command, 0, m.workspace, '$reaction/' || m.reaction || '/' || m.stream, moved.version,
           CASE WHEN m.how = 'skipped' THEN 'skipped' ELSE 'blocked' END,
           pg_catalog.json_build_object('version', m.failing, 'error', m.error, 'deaths', moved.deaths), moved.updated_at
      FROM m JOIN moved ON moved.member = m.member
    {due_notices}
SELECT m.member,
       CASE WHEN moved.member IS NOT NULL THEN 1
            WHEN cur.member IS NULL AND EXISTS (SELECT 1 FROM {schema}.follow f WHERE f.shard = ANY (ARRAY[m.shard]) AND f.workspace = m.workspace
                                                                               AND f.reaction = m.reaction AND f.stream = m.stream) THEN 2
            ELSE 0 END,
       coalesce(cur.epoch = m.epoch AND cur.holder IS NULL
                AND CASE WHEN m.how = 'skipped' THEN NOT cur.blocked AND cur.watermark >= m.failing
                         ELSE cur.blocked AND cur.failing = m.failing END, false),
       coalesce(cur.epoch = m.epoch AND cur.reset_requested, false)
  FROM m LEFT JOIN moved ON moved.member = m.member
  LEFT JOIN cur ON cur.member = m.member
