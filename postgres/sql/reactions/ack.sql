-- Ends leases, or records progress under them: moves the watermarks and, unless the leases
-- are to be retained, releases the rows. An item with an error counts a failure, the first
-- one of its event if there was progress. An item whose version was not delivered under the
-- lease changes nothing. A requested reset is done when the lease ends, and until then
-- nothing renews the lease. Rows are locked first, and the time is read afterwards. Returns
-- the items that are recorded, now or, if the response was lost, before.
-- One text serves a caller that waits for the rows and a caller that does not: for the
-- latter, a row that another transaction has locked is returned as busy.
-- A list of unknown length meets a table of unknown size here, so nothing is joined: each
-- row is looked up by its key, and changed through ON CONFLICT.
-- :items a JSON list of {w: workspace, r: reaction, s: stream, e: epoch, v: done, k: whether to retain the lease, l: its duration from now, in
-- ms, g: whether it is given back unfinished, d: delay in ms, x: error, n: the version that failed, o: whether it must be recorded now, q:
-- whether the item does not count as a report of a remote holder}
WITH a AS MATERIALIZED (
    SELECT q.nth, q.item ->> 'w'::text AS workspace, q.item ->> 'r'::text AS reaction, q.item ->> 's'::text AS stream,
           (q.item ->> 'e'::text)::bigint AS epoch, (q.item ->> 'v'::text)::bigint AS done,
           coalesce((q.item ->> 'k'::text)::boolean, false) AS keep, coalesce((q.item ->> 'g'::text)::boolean, false) AS given,
           coalesce((q.item ->> 'd'::text)::bigint, 0) AS delay, coalesce((q.item ->> 'l'::text)::bigint, 0) AS lease,
           q.item ->> 'x'::text AS error, (q.item ->> 'n'::text)::bigint AS failing, coalesce((q.item ->> 'o'::text)::boolean, false) AS now,
           coalesce((q.item ->> 'q'::text)::boolean, false) AS unheard
      FROM pg_catalog.jsonb_array_elements(:items::jsonb) WITH ORDINALITY AS q(item, nth)
     WHERE :workspace IS NOT NULL
     ORDER BY (q.item ->> 'w'::text) COLLATE "C", (q.item ->> 'r'::text) COLLATE "C", (q.item ->> 's'::text) COLLATE "C"
), cur AS MATERIALIZED (
    SELECT a.nth, f.shard, f.workspace, f.reaction, f.stream, f.watermark, f.due, f.due_at, f.rank, f.failing, f.failures, f.deaths, f.crash_group, f.generation, f.reset_requested, f.blocked,
           f.error, f.holder, f.epoch, f.until, f.updated_at, f.delivered, f.delivered_epoch, f.quiet, f.lost, a.unheard, a.epoch AS wanted, a.done, a.keep, a.given,
           CASE WHEN f.reset_requested AND NOT a.keep THEN 0 ELSE a.delay END AS delay, a.lease,
           a.error AS said, a.failing AS failed, a.now, (a.given OR a.error IS NOT NULL) AND a.done <= f.watermark AS stays,
           f.reset_requested AND NOT a.keep AS resets
      FROM a
     CROSS JOIN LATERAL (
           SELECT x.shard, x.workspace, x.reaction, x.stream, x.watermark, x.due, x.due_at, x.rank, x.failing, x.failures, x.deaths, x.crash_group, x.generation, x.reset_requested, x.blocked,
                  x.error, x.holder, x.epoch, x.until, x.updated_at, x.delivered, x.delivered_epoch, x.quiet, x.lost
             FROM {schema}.follow x
            WHERE x.shard = :shard AND x.workspace = a.workspace AND x.reaction = a.reaction AND x.stream = a.stream
            LIMIT 1
              FOR UPDATE{skip}) AS f
), moved AS (
    INSERT INTO {schema}.follow AS f
        (shard, workspace, reaction, stream, watermark, due, due_at, rank, failing, failures, error, holder, epoch, until, deaths, crash_group, generation, reset_requested, quiet, lost, updated_at)
    SELECT cur.shard, cur.workspace, cur.reaction, cur.stream, CASE WHEN cur.resets THEN -1 ELSE greatest(cur.watermark, cur.done) END, cur.due,
           {now} + cur.delay::float8 * interval '1 ms', {now} + cur.delay::float8 * interval '1 ms' - (cur.due_at - cur.rank),
           CASE WHEN cur.resets THEN NULL WHEN cur.said IS NOT NULL THEN cur.failed WHEN cur.stays THEN cur.failing END,
           CASE WHEN cur.resets THEN 0 WHEN cur.said IS NOT NULL THEN CASE WHEN cur.stays THEN cur.failures + 1 ELSE 1 END
                WHEN cur.stays THEN cur.failures ELSE 0 END,
           CASE WHEN cur.resets THEN NULL WHEN cur.said IS NOT NULL THEN cur.said WHEN cur.stays THEN cur.error END,
           CASE WHEN cur.keep THEN cur.holder END, cur.epoch,
           CASE WHEN cur.keep AND cur.reset_requested THEN cur.until WHEN cur.keep THEN greatest(cur.until, {now} + cur.lease::float8 * interval '1 ms') END,
           CASE WHEN cur.stays AND NOT cur.resets THEN cur.deaths ELSE 0 END, CASE WHEN cur.stays AND NOT cur.resets THEN cur.crash_group ELSE 0 END,
           cur.generation + CASE WHEN cur.resets THEN 1 ELSE 0 END, cur.reset_requested AND cur.keep,
           cur.quiet AND cur.unheard AND cur.keep, CASE WHEN cur.unheard AND cur.keep THEN cur.lost ELSE 0 END, cur.updated_at
      FROM cur
     WHERE cur.epoch = cur.wanted AND cur.until > {now}
       AND cur.delivered_epoch = cur.epoch AND cur.done <= cur.delivered
    ON CONFLICT (shard, workspace, reaction, stream) DO UPDATE
       SET watermark = excluded.watermark, holder = excluded.holder, until = excluded.until, failures = excluded.failures,
           deaths = excluded.deaths, crash_group = excluded.crash_group, generation = excluded.generation, reset_requested = excluded.reset_requested, failing = excluded.failing, error = excluded.error, due_at = excluded.due_at, rank = excluded.rank,
           quiet = excluded.quiet, lost = excluded.lost
     WHERE f.epoch = excluded.epoch
    RETURNING f.workspace, f.reaction, f.stream, f.epoch, f.failures, f.due_at
)
SELECT moved.workspace, moved.reaction, moved.stream, moved.epoch, moved.failures, moved.due_at, false FROM moved
UNION ALL
SELECT cur.workspace, cur.reaction, cur.stream, cur.epoch, cur.failures, cur.due_at, false FROM cur
 WHERE NOT cur.now AND cur.epoch = cur.wanted AND cur.holder IS NULL AND NOT cur.blocked AND cur.watermark >= cur.done
   AND (CASE WHEN cur.said IS NULL THEN cur.failures = 0 ELSE cur.failing = cur.failed AND cur.error = cur.said END)
UNION ALL
SELECT a.workspace, a.reaction, a.stream, a.epoch, 0, 'epoch', true
  FROM a
 CROSS JOIN LATERAL (SELECT x.epoch FROM {schema}.follow x
                      WHERE x.shard = :shard AND x.workspace = a.workspace AND x.reaction = a.reaction AND x.stream = a.stream
                      LIMIT 1) AS f
 WHERE f.epoch = a.epoch AND a.nth NOT IN (SELECT cur.nth FROM cur)
