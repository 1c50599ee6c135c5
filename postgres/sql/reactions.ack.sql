-- Ends holds, or what was done under them so far: moves the watermarks on and,
-- unless they are to be kept, frees the rows. With an error it counts a failure,
-- the first one of its event where there was progress. Rows are locked first, and
-- the time is looked at afterwards. Answers those that are recorded,
-- now or, where the answer to it was lost, before.
-- The same text serves one who waits for the rows and one who does not: for the
-- latter, a row that somebody else has at this moment is told to be busy.
-- $1 shard, $2 workspace, not looked at, $3 a JSON list of {w: workspace,
-- r: reaction, s: stream, e: epoch, v: done, k: whether to keep the hold,
-- l: for how long from
-- now, in ms, g: whether it is given back unfinished, d: delay in ms, x: error, n: the version
-- that failed, o: whether it must be recorded now}
WITH a AS (
    SELECT q.item ->> 'w' AS workspace, q.item ->> 'r' AS reaction, q.item ->> 's' AS stream,
           (q.item ->> 'e')::bigint AS epoch, (q.item ->> 'v')::bigint AS done,
           coalesce((q.item ->> 'k')::boolean, false) AS keep, coalesce((q.item ->> 'g')::boolean, false) AS given,
           coalesce((q.item ->> 'd')::bigint, 0) AS delay, coalesce((q.item ->> 'l')::bigint, 0) AS lease, q.item ->> 'x' AS error, (q.item ->> 'n')::bigint AS failing,
           coalesce((q.item ->> 'o')::boolean, false) AS now
      FROM jsonb_array_elements($3::text::jsonb) AS q(item)
     WHERE $2::text IS NOT NULL
), cur AS MATERIALIZED (
    SELECT f.shard, f.workspace, f.reaction, f.stream, f.watermark, f.due_at, f.rank, f.failing, f.failures, f.deaths, f.blocked,
           f.error, f.holder, f.epoch, f.until, a.epoch AS wanted, a.done, a.keep, a.given, a.delay, a.lease, a.error AS said, a.failing AS failed, a.now
      FROM a JOIN {schema}.follow f
        ON f.shard = $1::smallint AND f.workspace = a.workspace AND f.reaction = a.reaction AND f.stream = a.stream
     ORDER BY f.shard, f.workspace, f.reaction, f.stream
       FOR UPDATE OF f{skip}
), moved AS (
    UPDATE {schema}.follow f
       SET watermark = greatest(cur.watermark, cur.done),
           holder = CASE WHEN cur.keep THEN cur.holder END, until = CASE WHEN cur.keep THEN greatest(cur.until, {now} + cur.lease * interval '1 ms') END,
           failures = CASE WHEN cur.said IS NOT NULL THEN CASE WHEN cur.done > cur.watermark THEN 1 ELSE cur.failures + 1 END
                           WHEN cur.given AND cur.done <= cur.watermark THEN cur.failures ELSE 0 END,
           deaths = CASE WHEN (cur.given OR cur.said IS NOT NULL) AND cur.done <= cur.watermark THEN cur.deaths ELSE 0 END,
           failing = CASE WHEN cur.said IS NOT NULL THEN cur.failed WHEN cur.given AND cur.done <= cur.watermark THEN cur.failing END,
           error = CASE WHEN cur.said IS NOT NULL THEN cur.said WHEN cur.given AND cur.done <= cur.watermark THEN cur.error END,
           due_at = {now} + cur.delay * interval '1 ms',
           rank = {now} + cur.delay * interval '1 ms' - (cur.due_at - cur.rank)
      FROM cur
     WHERE f.shard = cur.shard AND f.workspace = cur.workspace AND f.reaction = cur.reaction AND f.stream = cur.stream
       AND cur.epoch = cur.wanted AND cur.until > {now}
       AND f.epoch = cur.wanted
    RETURNING f.workspace, f.reaction, f.stream, f.epoch, f.failures, f.due_at
)
SELECT moved.workspace, moved.reaction, moved.stream, moved.epoch, moved.failures, moved.due_at, false FROM moved
UNION ALL
SELECT cur.workspace, cur.reaction, cur.stream, cur.epoch, cur.failures, cur.due_at, false FROM cur
 WHERE NOT cur.now AND cur.epoch = cur.wanted AND cur.holder IS NULL AND NOT cur.blocked AND cur.watermark >= cur.done
   AND (CASE WHEN cur.said IS NULL THEN cur.failures = 0 ELSE cur.failing = cur.failed AND cur.error = cur.said END)
UNION ALL
SELECT a.workspace, a.reaction, a.stream, a.epoch, 0, 'epoch', true
  FROM a JOIN {schema}.follow f ON f.shard = $1::smallint AND f.workspace = a.workspace AND f.reaction = a.reaction AND f.stream = a.stream
 WHERE f.epoch = a.epoch
   AND NOT EXISTS (SELECT 1 FROM cur WHERE cur.workspace = a.workspace AND cur.reaction = a.reaction AND cur.stream = a.stream)
