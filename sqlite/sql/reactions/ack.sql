-- Ends leases, or records progress under them: moves the watermarks and, unless the leases
-- are to be retained, releases the rows. An item with an error counts a failure, the first
-- one of its event if there was progress. An item whose version was not delivered under the
-- lease changes nothing. A requested reset is done when the lease ends, and until then
-- nothing renews the lease. Returns the items that are recorded, now or, if the response
-- was lost, before.
WITH q AS MATERIALIZED (
    SELECT j.value ->> 'w' AS workspace, j.value ->> 'r' AS reaction, j.value ->> 's' AS stream, j.value ->> 'e' AS epoch,
           j.value ->> 'v' AS done, coalesce(j.value ->> 'k', 0) AS keep, coalesce(j.value ->> 'g', 0) AS given,
           coalesce(j.value ->> 'd', 0) AS delay, coalesce(j.value ->> 'l', 0) AS lease, j.value ->> 'x' AS error, j.value ->> 'n' AS failing, coalesce(j.value ->> 'o', 0) AS must,
           coalesce(j.value ->> 'q', 0) AS unheard, {now} AS now
      FROM json_each(:items) AS j
     WHERE :workspace IS NOT NULL
)
UPDATE holdfast_follow AS f
   SET watermark = CASE WHEN f.reset_requested AND NOT q.keep THEN -1 ELSE max(f.watermark, q.done) END,
       generation = f.generation + (f.reset_requested AND NOT q.keep), reset_requested = f.reset_requested AND q.keep,
       holder = CASE WHEN q.keep THEN f.holder END, until = CASE WHEN q.keep AND f.reset_requested THEN f.until WHEN q.keep THEN max(f.until, q.now + q.lease) END,
       failures = CASE WHEN f.holder IS NULL THEN f.failures WHEN f.reset_requested AND NOT q.keep THEN 0
                       WHEN q.error IS NOT NULL THEN CASE WHEN q.done > f.watermark THEN 1 ELSE f.failures + 1 END
                       WHEN q.given AND q.done <= f.watermark THEN f.failures ELSE 0 END,
       deaths = CASE WHEN f.holder IS NULL THEN f.deaths WHEN f.reset_requested AND NOT q.keep THEN 0 WHEN (q.given OR q.error IS NOT NULL) AND q.done <= f.watermark THEN f.deaths ELSE 0 END,
       crash_group = CASE WHEN f.holder IS NULL THEN f.crash_group WHEN f.reset_requested AND NOT q.keep THEN 0 WHEN (q.given OR q.error IS NOT NULL) AND q.done <= f.watermark THEN f.crash_group ELSE 0 END,
       failing = CASE WHEN f.holder IS NULL THEN f.failing WHEN f.reset_requested AND NOT q.keep THEN NULL WHEN q.error IS NOT NULL THEN q.failing WHEN q.given AND q.done <= f.watermark THEN f.failing END,
       error = CASE WHEN f.holder IS NULL THEN f.error WHEN f.reset_requested AND NOT q.keep THEN NULL WHEN q.error IS NOT NULL THEN q.error WHEN q.given AND q.done <= f.watermark THEN f.error END,
       due_at = CASE WHEN f.holder IS NULL THEN f.due_at ELSE q.now + CASE WHEN f.reset_requested AND NOT q.keep THEN 0 ELSE q.delay END END,
       rank = CASE WHEN f.holder IS NULL THEN f.rank ELSE q.now + CASE WHEN f.reset_requested AND NOT q.keep THEN 0 ELSE q.delay END - (f.due_at - f.rank) END,
       quiet = f.quiet AND q.unheard AND q.keep, lost = CASE WHEN f.holder IS NULL OR q.unheard AND q.keep THEN f.lost ELSE 0 END
  FROM q
 WHERE f.shard = :shard AND f.workspace = q.workspace AND f.reaction = q.reaction AND f.stream = q.stream
   AND f.epoch = q.epoch
   AND ((f.until > q.now AND f.delivered_epoch = f.epoch AND q.done <= f.delivered)
        OR (NOT q.must AND f.holder IS NULL AND f.blocked = 0 AND f.watermark >= q.done
            AND CASE WHEN q.error IS NULL THEN f.failures = 0 ELSE f.failing = q.failing AND f.error = q.error END))
RETURNING workspace, reaction, stream, epoch, failures, due_at, 0
