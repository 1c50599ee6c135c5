-- Repairs the position of a reaction on a stream. :how is 'unblock', which continues where
-- the reaction stopped, 'skip', which continues after the version that failed, or 'reset',
-- which goes back to the beginning. A leased stream and a stream with nothing to repair are
-- not changed; a reset of a leased stream is requested and done at the end of the lease, and
-- no skip cancels it. Increments the epoch: an earlier holder cannot write any more.
-- :failing the version that must have failed, -1 for any
WITH {members}, cur AS (
    SELECT f.shard, f.workspace, f.reaction, f.stream, f.watermark, f.due_at, f.rank, f.failing, f.blocked, f.holder, f.epoch, f.until,
           f.generation, f.reset_requested, f.version, m.member
      FROM m JOIN {schema}.follow f
        ON f.shard = ANY (ARRAY[m.shard]) AND f.workspace = m.workspace AND f.reaction = m.reaction AND f.stream = m.stream
     ORDER BY m.shard, f.workspace, f.reaction, f.stream
       FOR UPDATE OF f{skip}
), moved AS (
    UPDATE {schema}.follow f
       SET watermark = CASE m.how WHEN 'reset' THEN -1 WHEN 'skip' THEN greatest(cur.watermark, cur.failing) ELSE cur.watermark END,
           generation = f.generation + CASE WHEN m.how = 'reset' THEN 1 ELSE 0 END,
           failures = 0, deaths = 0, crash_group = 0, reset_requested = false, quiet = false, lost = 0, blocked = false, failing = NULL, error = NULL,
           epoch = cur.epoch + 1, holder = NULL, until = NULL,
           version = 1 + greatest(cur.version, (SELECT h.version FROM {schema}.history h
                   WHERE h.shard = m.shard AND h.workspace = m.workspace AND h.stream = '$reaction/' || m.reaction || '/' || m.stream
                   ORDER BY h.version DESC LIMIT 1)), due_at = {now}, rank = {now} - (cur.due_at - cur.rank), updated_at = {now}
      FROM m JOIN cur ON cur.member = m.member
     WHERE f.shard = ANY (ARRAY[m.shard]) AND f.workspace = m.workspace AND f.reaction = m.reaction AND f.stream = m.stream
       AND (cur.holder IS NULL OR cur.until <= {now}) AND m.failing IN (-1, cur.failing)
       AND CASE m.how WHEN 'unblock' THEN cur.blocked WHEN 'skip' THEN cur.failing IS NOT NULL AND NOT cur.reset_requested ELSE true END
    RETURNING m.member, f.watermark, f.generation, f.due_at, f.version, f.updated_at
), asked AS (
    UPDATE {schema}.follow f
       SET reset_requested = true,
           version = 1 + greatest(cur.version, (SELECT pg_catalog.max(h.version) FROM {schema}.history h
                   WHERE h.shard = m.shard AND h.workspace = m.workspace AND h.stream = '$reaction/' || m.reaction || '/' || m.stream))
      FROM m JOIN cur ON cur.member = m.member
     WHERE f.shard = ANY (ARRAY[m.shard]) AND f.workspace = m.workspace AND f.reaction = m.reaction AND f.stream = m.stream
       AND m.how = 'reset' AND cur.until > {now} AND NOT cur.reset_requested
    RETURNING m.member, f.generation, f.version
), {include history/write}
    SELECT m.shard, m.command, 0, m.workspace, '$reaction/' || m.reaction || '/' || m.stream, moved.version,
           CASE m.how WHEN 'unblock' THEN 'unblocked' WHEN 'skip' THEN 'skipped' ELSE 'reset' END,
           pg_catalog.json_build_object('watermark', moved.watermark, 'generation', moved.generation), NULL, NULL, m.actor, moved.updated_at
      FROM m JOIN moved ON moved.member = m.member
    UNION ALL
    SELECT m.shard, m.command, 0, m.workspace, '$reaction/' || m.reaction || '/' || m.stream, asked.version, 'reset',
           pg_catalog.json_build_object('watermark', -1, 'generation', asked.generation + 1, 'pending', true), NULL, NULL, m.actor, {now}
      FROM m JOIN asked ON asked.member = m.member
    {due_notices}
SELECT m.member,
       CASE WHEN moved.member IS NOT NULL OR asked.member IS NOT NULL THEN 1
            WHEN cur.member IS NULL AND EXISTS (SELECT 1 FROM {schema}.follow f WHERE f.shard = ANY (ARRAY[m.shard]) AND f.workspace = m.workspace
                                                                               AND f.reaction = m.reaction AND f.stream = m.stream) THEN 2
            ELSE 0 END,
       coalesce(moved.watermark, cur.watermark, -1), coalesce(cur.holder, ''), coalesce(moved.due_at, cur.due_at, 'epoch'),
       m.how = 'reset' AND moved.member IS NULL AND coalesce(asked.member IS NOT NULL OR cur.until > {now} AND cur.reset_requested, false)
  FROM m LEFT JOIN moved ON moved.member = m.member
  LEFT JOIN asked ON asked.member = m.member
  LEFT JOIN cur ON cur.member = m.member
